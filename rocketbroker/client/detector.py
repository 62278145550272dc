# -*- test-case-name: tests.client.test_detector -*-
"""Asks brokers that could not be reached whether they are there again.

Beside C{avoid_slow}, with which a broker is avoided that was slow or failed: while one
is out of reach, no message is spent on finding out. RocketMQ: startDetectorEnable;
C{docs/facts/client.md} 4.4.
"""

from __future__ import annotations

import logging
from typing import Final, final

from rocketbroker.client.instance import Instance
from rocketbroker.client.queue_choice import QueueChoice
from rocketbroker.client.settings import ProducerSettings
from rocketbroker.client.waits import together
from rocketbroker.errors import NoBroker, RocketbrokerError
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import GetMaxOffsetRequestHeader

#: How often brokers are looked for that are to be asked.
ROUND_SECONDS: Final = 3.0

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Detector:
    """The detector of one producer.

    @ivar topics: a topic of each broker that messages were sent to.
    """

    def __init__(
        self, instance: Instance, choice: QueueChoice, settings: ProducerSettings
    ) -> None:
        self._instance = instance
        self._choice = choice
        self._settings = settings
        self._next: dict[str, float] = {}
        self.topics: dict[str, str] = {}

    async def run(self) -> None:
        """Ask, round by round, until the task is cancelled."""
        runtime = self._instance.runtime
        while True:
            await runtime.sleep(ROUND_SECONDS)
            now = runtime.monotonic()
            due = [
                broker
                for broker in self._choice.unreachable
                if self._next.get(broker, 0.0) <= now
            ]
            await together(runtime, [self._ask(broker, now) for broker in due])

    async def _ask(self, broker: str, now: float) -> None:
        topic = self.topics.get(broker)
        if topic is None:
            return
        self._next[broker] = now + self._settings.detect_interval
        instance = self._instance
        header = GetMaxOffsetRequestHeader(topic=topic, queue_id=0)
        command = Command(RequestCode.GET_MAX_OFFSET, header.to_ext())
        try:
            address = instance.routes.master(topic, broker)
            await instance.connections.ask(
                address, command, self._settings.detect_seconds
            )
        except NoBroker:
            self._choice.forget(broker)
            self._next.pop(broker, None)
        except RocketbrokerError as problem:
            _log.debug("Broker %s is still out of reach: %s", broker, problem)
        else:
            self._choice.reached(broker)
            self._next.pop(broker, None)
