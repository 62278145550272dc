"""RocketMQ's Proxy in cluster mode before a name server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from scripts.lab.javabroker import JavaServer
from scripts.lab.servers import free_base

#: Its version.
PROXY_VERSION: Final = "5.3.3"


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
