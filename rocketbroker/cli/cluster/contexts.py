# -*- test-case-name: tests.cli.cluster.test_contexts -*-
"""Contexts: names for clusters: the addresses of name servers, TLS and keys.

Contexts are kept in C{contexts.json} below C{$XDG_CONFIG_HOME/rocketbroker}, or
C{~/.config/rocketbroker}, which only its owner may read::

    {"current": "test", "contexts": {"test": {
        "namesrv": "10.0.0.1:9876;other:9876",
        "tls": true, "tls_ca": "/etc/rocketmq/ca.crt", "access_key": "operator", ...}}}

In this order: C{-n}, C{--context}, C{ROCKETMQ_NAMESRV}, C{NAMESRV_ADDR} (as RocketMQ's
clients and tools know it), the current context, C{127.0.0.1:9876}. A context says all
about access, so that the keys of one cluster are not used at another; where no context
is used, variables say it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any, Final

import attrs

from rocketbroker.cli.cluster.access import (
    Access,
    access_of,
    access_of_environment,
)
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.errors import ConfigurationError

VARIABLES: Final = ("ROCKETMQ_NAMESRV", "NAMESRV_ADDR")

#: Where a name server of this machine listens.
DEFAULT_NAME_SERVER: Final = "127.0.0.1:9876"


@attrs.frozen
class Context:
    """One context.

    @ivar options: of its access, as L{access_of} takes them.
    """

    name_servers: str
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)


@attrs.frozen
class Contexts:
    """The content of the file.

    @ivar known: by the context's name.
    @ivar current: the one that is used where nothing else is said.
    """

    known: dict[str, Context] = attrs.field(factory=dict)
    current: str | None = None

    def of(self, name: str) -> Context:
        """The context of a name.

        @raise NotThere: there is no such context.
        """
        if name not in self.known:
            names = ", ".join(sorted(self.known)) or "none"
            raise NotThere(
                f"There is no context {name}; there are: {names}. rocketbroker context "
                "set NAME HOST:PORT makes one."
            )
        return self.known[name]


@attrs.frozen
class Target:
    """Which cluster is asked, and how."""

    name_servers: str
    access: Access


def path_of(environ: Mapping[str, str]) -> str:
    """Where the file is."""
    root = environ.get("XDG_CONFIG_HOME") or os.path.join(
        environ.get("HOME") or os.path.expanduser("~"), ".config"
    )
    return os.path.join(root, "rocketbroker", "contexts.json")


def load(path: str) -> Contexts:
    """Read the file; without one there are no contexts.

    @raise ConfigurationError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        known = {
            str(name): Context(str(options.pop("namesrv")), options)
            for name, options in content["contexts"].items()
        }
        return Contexts(known, content.get("current"))
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} holds no contexts that can be read: mend it, or remove it"
        ) from error


def save(path: str, contexts: Contexts) -> None:
    """Replace the file as a whole; nobody else may ever read it.

    @raise OSError: it cannot be written.
    """
    content = {
        "current": contexts.current,
        "contexts": {
            name: {"namesrv": context.name_servers, **context.options}
            for name, context in sorted(contexts.known.items())
        },
    }
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{path}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.remove(new)  # it would keep its mode, and who has opened it
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    os.replace(new, path)


def choose(
    namesrv: str | None, context: str | None, environ: Mapping[str, str]
) -> Target:
    """Which cluster is asked, and how.

    @param namesrv: the value of C{-n}.
    @param context: the value of C{--context}.
    @raise NotThere: there is no such context.
    @raise ConfigurationError: the contexts cannot be read, or what is said of access
        is not in order.
    """
    if not namesrv and not context:
        namesrv = next(filter(None, map(environ.get, VARIABLES)), None)
    if not namesrv:
        contexts = load(path_of(environ))
        name = context or contexts.current
        if name:
            found = contexts.of(name)
            access = access_of(found.options, f"context {name}")
            return Target(found.name_servers, access)
    return Target(namesrv or DEFAULT_NAME_SERVER, access_of_environment(environ))
