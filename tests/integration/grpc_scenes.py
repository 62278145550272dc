"""Where official gRPC clients work: before our proxy, and before RocketMQ's own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from scripts.lab.javaclient import JavaError, Program
from scripts.lab.servers import STOP_SECONDS, environment
from tests.integration.grpc_scenarios import SCENARIOS
from tests.integration.javaproxy import JavaProxy
from tests.integration.official import MISSING, Maker
from tests.integration.proxied import (
    PROXY_SETTINGS,
    SETTINGS,
    SHORTEST_MS,
    JavaCluster,
    User,
)

#: The least invisible time of a proxy that has no settings.
DEFAULT_SHORTEST_MS: Final = 10_000

#: What a scenario has come to: all was as it should be, the client has no such thing,
#: or something was not as it should be.
DONE: Final = "yes"
LACKS: Final = "-"
FAILED: Final = "no"


@dataclass
class Scene:
    """A cluster with a proxy before it.

    @ivar names: the name server: host and port.
    @ivar address: the broker: host and port.
    @ivar endpoint: the proxy: host and port.
    @ivar folder: for what clients say.
    @ivar shortest_ms: the least invisible time that the proxy permits.
    """

    names: str
    address: str
    endpoint: str
    folder: Path
    shortest_ms: int


@contextmanager
def command(folder: Path, *words: str) -> Iterator[dict[str, Any]]:
    """A server of the command line; what its ready line says."""
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command"),
                *(*words, "--output", "json"),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            cwd=folder,
        )
    assert process.stdout is not None
    with process.stdout as output:
        try:
            yield json.loads(output.readline())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


def set_words(settings: Mapping[str, object]) -> list[str]:
    """Settings as the command line takes them."""
    return [
        word for key, value in settings.items() for word in ("--set", f"{key}={value}")
    ]


@contextmanager
def standalone(folder: Path) -> Iterator[Scene]:
    """C{rocketbroker standalone --grpc-port}: our proxy before our broker."""
    words = "standalone --temporary --namesrv-port 0 --port 0 --metrics-port off"
    more = set_words({**SETTINGS, "enablePropertyFilter": "true"})
    with command(folder, *words.split(), "--grpc-port", "0", *more) as ready:
        address = ready["brokers"][0]["address"]
        endpoint, names = ready["grpc"], ready["namesrv"]
        yield Scene(names, address, endpoint, folder, DEFAULT_SHORTEST_MS)


@contextmanager
def java_cluster() -> Iterator[JavaCluster]:
    """RocketMQ's name server and broker."""
    cluster = JavaCluster(**SETTINGS)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@contextmanager
def before_java(folder: Path) -> Iterator[Scene]:
    """C{rocketbroker proxy run}: our proxy before RocketMQ's broker."""
    settings = {
        key: value
        for key, value in PROXY_SETTINGS.items()
        if key != "transactionHeartbeatPeriodSecond"
    }
    words = set_words({**settings, "grpcServerPort": 0})
    with java_cluster() as cluster:
        run = ("proxy", "run", "-n", cluster.names, "--metrics-port", "off")
        with command(folder, *run, *words) as ready:
            endpoint = ready["proxy"]
            yield Scene(cluster.names, cluster.address, endpoint, folder, SHORTEST_MS)


@contextmanager
def java_proxy(folder: Path) -> Iterator[Scene]:
    """RocketMQ's Proxy before RocketMQ's broker."""
    with java_cluster() as cluster:
        proxy = JavaProxy(cluster.names, folder / "proxy", **PROXY_SETTINGS)
        try:
            proxy.start()
            endpoint = proxy.address
            yield Scene(cluster.names, cluster.address, endpoint, folder, SHORTEST_MS)
        finally:
            proxy.stop()


#: All, by what users call them.
SCENES: Final[dict[str, Callable[[Path], Any]]] = {
    "ours": standalone,
    "ours before RocketMQ's broker": before_java,
    "RocketMQ's": java_proxy,
}


@contextmanager
def folder_of_its_own() -> Iterator[Path]:
    """A directory that is removed."""
    path = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def users(make: Maker, scene: Scene) -> Iterator[User]:
    """Somebody with a client in a scene."""
    with ExitStack() as stack:
        client: Program = make(scene.endpoint, scene.folder)
        stack.callback(client.stop)
        user = User(client, scene, scene.shortest_ms)
        stack.callback(user.close)
        yield user


def outcome(name: str, user: User) -> tuple[str, str]:
    """What comes of one scenario, and the words of what went wrong."""
    try:
        SCENARIOS[name](user)
    except JavaError as error:
        return (LACKS, "") if error.kind == MISSING else (FAILED, str(error))
    except AssertionError as error:
        return FAILED, str(error)
    return DONE, ""
