# -*- test-case-name: tests.app -*-
"""What `twistd` offers once rocketbroker is installed: strings, no imports."""

from __future__ import annotations

from twisted.application.service import ServiceMaker

broker = ServiceMaker(
    "rocketbroker",
    "rocketbroker.app.broker",
    "A message broker compatible with Apache RocketMQ.",
    "rocketbroker",
)

namesrv = ServiceMaker(
    "rocketbroker name server",
    "rocketbroker.app.namesrv",
    "A name server compatible with Apache RocketMQ.",
    "namesrv",
)
