# -*- test-case-name: tests.client.test_consumer -*-
"""Offsets of a group: at the broker, or, if it broadcasts, in a file.

C{docs/facts/client.md} 18.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, Protocol, final

from rocketbroker.client.outages import Outages
from rocketbroker.client.requests import BrokerRequests
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.waits import together
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.names import is_retry_topic
from rocketbroker.routing.topic_view import MessageQueue

_log: Final = logging.getLogger("rocketbroker.client")


class OffsetStore(Protocol):
    """The offsets of one group."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Where the group goes on, None if it has not begun.

        @raise RocketbrokerError: it cannot be known now.
        """

    async def write(self, offsets: Mapping[MessageQueue, int], wait: bool) -> None:
        """Keep where it goes on; what cannot be kept is logged, and comes again.

        @param wait: until it is kept.
        """


@final
class BrokerOffsets:
    """Offsets at the brokers, which all members of a group share."""

    def __init__(
        self,
        runtime: Runtime,
        requests: BrokerRequests,
        outages: Outages,
        group: str,
    ) -> None:
        self._runtime = runtime
        self._requests = requests
        self._outages = outages
        self._group = group

    async def read(self, queue: MessageQueue) -> int | None:
        """See L{OffsetStore}."""
        return await self._requests.committed_offset(queue, self._group)

    async def write(self, offsets: Mapping[MessageQueue, int], wait: bool) -> None:
        """See L{OffsetStore}."""
        commits = [self._write(*entry, wait) for entry in offsets.items()]
        await together(self._runtime, commits)

    async def _write(self, queue: MessageQueue, offset: int, wait: bool) -> None:
        try:
            await self._requests.commit(queue, self._group, offset, wait)
        except RocketbrokerError as problem:
            # What stands there says so already, or will: pulls go there, too.
            _log.debug("Offset %s of %s is not committed: %s", offset, queue, problem)


async def start_offset(
    requests: BrokerRequests,
    store: OffsetStore,
    queue: MessageQueue,
    settings: ConsumerSettings,
) -> int:
    """Where to begin in a queue.

    @raise RocketbrokerError: it cannot be known now.
    """
    known = await store.read(queue)
    if known is not None and known >= 0:
        return known
    start = settings.start
    is_retry = is_retry_topic(queue.topic)
    if start == "earliest" or (start == "latest" and is_retry):
        return 0
    if start == "latest" or is_retry:
        return await requests.max_offset(queue)
    return await requests.offset_by_time(queue, round(float(start) * 1000))
