"""RocketMQ's Proxy in cluster mode before a name server, and the official gRPC clients.

The clients are programs that carry out commands: java/grpc/GrpcDriver.java and
node/driver.js know the same ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SkipTest

from scripts.lab.grpcjava import java_client
from scripts.lab.javabroker import JavaServer
from scripts.lab.javaclient import PROJECT, Program, building
from scripts.lab.servers import free_base

#: The Proxy, and Node's client.
PROXY_VERSION: Final = "5.3.3"
NODE_VERSION: Final = "1.0.8"

NODE_DRIVER: Final = Path(__file__).resolve().parent / "node" / "driver.js"


class JavaProxy(JavaServer):
    """The Proxy.

    @ivar address: for gRPC clients: host and port.
    """

    name = "proxy"
    main = "ProxyStartup"
    option = "-pc"
    ready = "rocketmq-proxy startup successfully"

    def __init__(self, names: str, folder: Path, **settings: object) -> None:
        """
        @param names: the name server: host and port.
        @param settings: more, as its JSON file has them.
        """
        base = free_base()
        self.address = f"127.0.0.1:{base}"
        own: dict[str, object] = {
            "proxyMode": "CLUSTER",
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": names,
            "localServeAddr": "127.0.0.1",
            "grpcServerPort": base,
            "remotingListenPort": base + 1,
            **settings,
        }
        super().__init__(PROXY_VERSION, folder, own)

    def written(self, settings: dict[str, object]) -> str:
        """Settings as it reads them."""
        return json.dumps(settings, default=str, indent=1)


def no_node() -> str | None:
    """Why Node.js cannot run here, None if it can."""
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        return f"needs Node.js with npm; not found: {', '.join(missing)}"
    return None


def node_package(name: str, version: str) -> Path:
    """The folder with a package of npm's, and with what it needs."""
    target = PROJECT / "target" / f"{name}-{version}"
    stamp = target / "complete"
    with building():
        if not stamp.exists():
            target.mkdir(exist_ok=True)
            words = "--no-save --no-audit --no-fund --ignore-scripts --prefix".split()
            done = subprocess.run(
                ["npm", "install", *words, str(target), f"{name}@{version}"],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise RuntimeError(f"npm: {done.stdout[-2000:]}{done.stderr[-2000:]}")
            stamp.touch()
    return target / "node_modules"


def node_client(address: str, folder: Path) -> Program:
    """Node's client before the Proxy at an address."""
    reason = no_node()
    if reason is not None:
        raise SkipTest(reason)
    modules = node_package("rocketmq-client-nodejs", NODE_VERSION)
    variables = {**os.environ, "NODE_PATH": str(modules), "HOME": str(folder)}
    words = ["node", str(NODE_DRIVER), address]
    return Program(words, folder, "grpc-node.log", variables)


#: What makes a client, by its language.
CLIENTS: Final[dict[str, Callable[[str, Path], Program]]] = {
    "java": java_client,
    "node": node_client,
}
