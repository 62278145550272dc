# -*- test-case-name: tests.proxy.test_renewal -*-
"""The renewal of invisible times: a push consumer may take as long as it needs.

Each message that is given with I{auto_renew} is kept here by what names it. Before its
invisible time ends, the broker is asked for more, 1, 3, 5, ... minutes, up to three
hours. The client has the first handle for ever; the one that counts is found here.

A client that does not call here any more may have gone to another proxy, and may have
acknowledged its messages there. A broker that is asked for more time then gives them
out again, so it is not asked.

RocketMQ's Proxy means to do this, and never starts: C{docs/facts/proxy.md} 7.11.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, final

from rocketbroker.errors import RocketbrokerError
from rocketbroker.proxy.received import Handle
from rocketbroker.proxy.settings import ProxySettings

_log: Final = logging.getLogger("rocketbroker.proxy")

#: How long a message stays invisible after its first, second, ... renewal.
STEPS_MS: Final = tuple(minutes * 60_000 for minutes in (1, 3, 5, 10, 30, 60))

#: So many messages of one client are kept invisible: sixteen times what official
#: clients hold, unless they are told to. One more comes again when its invisible time
#: ends. So a client that never acknowledges takes 20 MB of memory at the most.
MAX_KEPT: Final = 16_384

#: Gives a message a new invisible time: topic, group, handle, milliseconds; the new
#: handle.
Change = Callable[[str, str, Handle, int], Awaitable[Handle]]


class Place(NamedTuple):
    """What names a message that was given to a client."""

    client_id: str
    group: str
    message_id: str
    broker: str
    queue_id: int
    offset: int | None


def place_of(client_id: str, group: str, message_id: str, handle: Handle) -> Place:
    """The place of a message."""
    receipt = handle.receipt
    return Place(
        client_id,
        group,
        message_id,
        receipt.broker_name,
        receipt.queue_id,
        receipt.offset,
    )


@final
class _Kept:
    """One message that is kept invisible."""

    __slots__ = ("first_pop_ms", "handle", "problems", "renewals", "topic")

    def __init__(self, topic: str, handle: Handle) -> None:
        self.topic = topic
        self.handle = handle
        self.first_pop_ms = handle.receipt.pop_ms
        self.renewals = 0
        self.problems = 0


@final
class Renewals:
    """All messages that are kept invisible."""

    def __init__(
        self,
        settings: ProxySettings,
        change: Change,
        is_here: Callable[[str], bool],
    ) -> None:
        """
        @param is_here: whether a client has called lately.
        """
        self._settings = settings
        self._change = change
        self._is_here = is_here
        self._kept: dict[Place, _Kept] = {}
        self._counts: Counter[str] = Counter()
        self.renewed = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, place: Place, topic: str, handle: Handle) -> None:
        """Keep a message invisible from now on, unless its client has too many."""
        if place not in self._kept:
            if self._counts[place.client_id] >= MAX_KEPT:
                return
            self._counts[place.client_id] += 1
        self._kept[place] = _Kept(topic, handle)

    def current(self, place: Place, given: Handle) -> Handle:
        """The handle that counts of a message.

        @param given: the one that the client has.
        """
        kept = self._kept.get(place)
        return given if kept is None else kept.handle

    def drop(self, place: Place) -> None:
        """Keep a message invisible no longer."""
        self._forget(place)

    def _forget(self, place: Place) -> _Kept | None:
        kept = self._kept.pop(place, None)
        if kept is not None:
            self._counts[place.client_id] -= 1
            if not self._counts[place.client_id]:
                del self._counts[place.client_id]
        return kept

    def due(self, now_ms: int) -> list[Place]:
        """The messages that would soon be visible."""
        ahead = self._settings.renew_ahead_time_millis
        return [
            place
            for place, kept in self._kept.items()
            if kept.handle.visible_at - now_ms <= ahead
        ]

    async def renew(self, place: Place, now_ms: int) -> None:
        """Ask for more time for one message."""
        kept = self._kept.get(place)
        if kept is None:
            return
        if not self._is_here(place.client_id):
            if kept.handle.visible_at <= now_ms:
                self._forget(place)
            return
        before = kept.handle
        step = STEPS_MS[min(kept.renewals, len(STEPS_MS) - 1)]
        is_last = now_ms - kept.first_pop_ms >= self._settings.renew_max_time_millis
        if is_last:
            self._forget(place)
            _log.warning(
                "A message is given out again, after the longest time: %s", place
            )
            return
        try:
            handle = await self._change(kept.topic, place.group, kept.handle, step)
        except RocketbrokerError as problem:
            kept.problems += 1
            if kept.problems >= self._settings.max_renew_retry_times:
                self._forget(place)
                _log.warning("A message is given out again: %s: %s", place, problem)
            return
        if kept.handle is before:
            kept.handle = handle
        kept.renewals += 1
        kept.problems = 0
        self.renewed += 1

    async def clear(self, client_id: str, group: str | None = None) -> None:
        """Let others have at once what a client that is gone has in hand."""
        gone = [
            place
            for place in self._kept
            if place.client_id == client_id and group in (None, place.group)
        ]
        for place in gone:
            kept = self._forget(place)
            if kept is None:
                continue
            rest = self._settings.invisible_time_millis_when_clear
            try:
                await self._change(kept.topic, place.group, kept.handle, rest)
            except RocketbrokerError as problem:
                _log.debug("%s waits for its time to end: %s", place, problem)
