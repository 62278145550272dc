# -*- test-case-name: tests.broker.pull.test_slow_groups -*-
"""The switch that turns off groups that read far behind, if the operator wants that.

Old messages come from the disk, and their pages take the place of those that everybody
else reads. With disableConsumeIfConsumerReadSlowly a group that has pulled a message
more than consumerFallbehindThreshold bytes behind the end of the log may not pull any
more: its setting consumeEnable becomes false, in memory, until an administrator sets it
again or the broker starts anew. Like every setting of a group it goes to the disk with
the next change of any group.

RocketMQ notes a distance at each pull. Here it is worked out every three minutes, from
where the groups that have pulled meanwhile would go on.

docs/facts/broker.md 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.cooperative_tasks import only_stopped
from rocketbroker.remoting.interfaces import ISlices
from rocketbroker.store.interfaces import IQueue, IStore

#: So many groups and topics are looked at in one step.
KEYS_A_STEP: Final = 64

#: So many places are looked up in one go: each may cost a read of the disk.
BATCH_SIZE: Final = 16


class GroupOffset(NamedTuple):
    """Where a group goes on in a queue."""

    group: str
    queue: IQueue
    offset: int


@final
class SlowGroups:
    """Looks for groups that read slowly.

    @ivar disabled: how many were switched off.
    """

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        offsets: OffsetTable,
        groups: GroupTable,
        settings: BrokerSettings,
        slices: ISlices,
        in_thread: InThread,
    ) -> None:
        self.disabled = 0
        self._store = store
        self._offsets = offsets
        self._groups = groups
        self._slices = slices
        self._in_thread = in_thread
        self._seen: dict[str, dict[int, int]] = {}
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._is_on = (
            settings.broker.disable_consume_if_consumer_read_slowly
            and settings.store.disk_fall_recorded
        )
        self._threshold = settings.broker.consumer_fallbehind_threshold

    def look(self) -> Deferred[None]:
        """Switch off the groups that are too slow; fires when it is done."""
        done = Deferred.fromCoroutine(self._look())
        return done.addErrback(only_stopped)

    async def _look(self) -> None:
        if not self._is_on:
            self._seen = {}
            return
        places: list[GroupOffset] = []
        await self._slices.run(self, self._moved(places))
        for start in range(0, len(places), BATCH_SIZE):
            batch = places[start : start + BATCH_SIZE]
            distances = await self._in_thread(partial(self._distances, batch))
            for place, behind in zip(batch, distances, strict=True):
                if behind > self._threshold:
                    self._disable(place, behind)

    def _moved(self, places: list[GroupOffset]) -> Iterator[None]:
        """Find the places of the groups that have pulled since the last look."""
        seen, self._seen = self._seen, {}
        for at, (key, queues) in enumerate(self._offsets.pulled(), 1):
            if at % KEYS_A_STEP == 0:
                yield
            topic, _, group = key.partition("@")
            before = seen.get(key, {})
            self._seen[key] = queues.copy()
            if not self._may_consume(group):
                continue
            for queue_id, offset in queues.items():
                if before.get(queue_id) == offset:
                    continue
                queue = self._store.queue(topic, queue_id)
                if offset < queue.max_offset:
                    places.append(
                        GroupOffset(group, queue, max(offset, queue.min_offset))
                    )

    def _may_consume(self, group: str) -> bool:
        config = self._groups.config(group)
        return config is not None and config.consume_enable

    def _distances(self, places: list[GroupOffset]) -> list[int]:
        """I{Blocking.} How many bytes of the log are behind each place."""
        store = self._store
        found = []
        for _, queue, offset in places:
            entries = store.entries(queue, offset, 1)
            found.append(store.published_position - entries[0][0] if entries else 0)
        return found

    def _disable(self, place: GroupOffset, behind: int) -> None:
        if not (self._may_consume(place.group) and self._groups.disable(place.group)):
            return
        self.disabled += 1
        self._log.warn(
            "Group {group} reads topic {topic} {behind} bytes behind the end of the "
            "log, more than consumerFallbehindThreshold ({threshold}): it may not pull "
            "any more, until its consumeEnable is set to true",
            group=place.group,
            topic=place.queue.topic,
            behind=behind,
            threshold=self._threshold,
        )
