# -*- test-case-name: tests.app -*-
"""What `twistd` offers once rocketbroker is installed: strings, no imports."""

from __future__ import annotations

import sys

from twisted.application.service import ServiceMaker

#: Where no server runs, its options say so.
_IS_WINDOWS = sys.platform == "win32"

broker = ServiceMaker(  # type: ignore[no-untyped-call]  # Twisted's has no types
    "rocketbroker",
    "rocketbroker.app.windows" if _IS_WINDOWS else "rocketbroker.app.broker",
    "A message broker compatible with Apache RocketMQ.",
    "rocketbroker",
)

namesrv = ServiceMaker(  # type: ignore[no-untyped-call]  # likewise
    "rocketbroker name server",
    "rocketbroker.app.windows" if _IS_WINDOWS else "rocketbroker.app.namesrv",
    "A name server compatible with Apache RocketMQ.",
    "namesrv",
)

proxy = ServiceMaker(  # type: ignore[no-untyped-call]  # likewise
    "rocketbroker proxy",
    "rocketbroker.app.windows" if _IS_WINDOWS else "rocketbroker.app.proxy",
    "A proxy for gRPC clients, compatible with Apache RocketMQ.",
    "rocketmq-proxy",
)
