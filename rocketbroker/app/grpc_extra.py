# -*- test-case-name: tests.app.test_grpc_extra -*-
"""The extra C{grpc}: what a proxy needs that is not installed with everything else.

Its parts are made of generated code, which compares the versions of the others when it
is imported, and raises errors of several kinds. Here each of them is one sentence that
says what to install.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from rocketbroker.errors import ConfigurationError

#: Where clients of RocketMQ 5 look for a proxy.
GRPC_PORT: Final = 8081

#: The parts, with the oldest version that serves: as in setup.cfg.
NEEDED: Final = (
    ("grpcio", "1.76"),
    ("grpcio-health-checking", "1.76"),
    ("protobuf", "6.31.1"),
)

#: What fails when it is imported if they do not fit each other, or our own messages.
MODULES: Final = (
    "grpc.aio",
    "grpc_health.v1.health_pb2_grpc",
    "rocketbroker.proxy.messages_pb2",
)

#: What installs them all.
INSTALL: Final = "pip install 'rocketbroker[grpc]'"


def installed_version(name: str) -> str | None:
    """The version of a distribution; C{None}: it is not installed."""
    # A standalone broker that nobody asks by gRPC does without these.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def extra_problem(
    version_of: Callable[[str], str | None] = installed_version,
) -> str | None:
    """What keeps a proxy from being here, and what to install; C{None}: nothing.

    @return: the end of a sentence with the proxy as its subject.
    """
    for name, oldest in NEEDED:
        found = version_of(name)
        if found is None:
            return f"needs {name}, which is not installed: {INSTALL}."
        if numbers(found) < numbers(oldest):
            return f"needs {name} {oldest} or newer, and {found} is here: {INSTALL}."
    return None


def numbers(version: str) -> list[int]:
    """The numbers of a version, as C{1.76.0rc1} has 1, 76, and 0."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return found


def import_extra(modules: Sequence[str] = MODULES) -> None:
    """Import the parts.

    @raise ConfigurationError: they are not all here, or do not fit each other; one
        sentence.
    """
    problem = extra_problem()
    if problem is not None:
        raise ConfigurationError(f"A proxy {problem}")
    try:
        for name in modules:
            import_module(name)
    except Exception as error:  # ImportError, RuntimeError, protobuf's VersionError
        words = str(error).partition("\n")[0].rstrip(".")
        raise ConfigurationError(
            f"The parts of the extra grpc cannot be used together ({words}): "
            f"{INSTALL.replace('install', 'install --upgrade', 1)}."
        ) from error
