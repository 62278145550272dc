# -*- test-case-name: tests.broker.acting.test_reverse_sync -*-
"""Reverse synchronisation: a master that comes back takes over the progress that a
slave made meanwhile.

While a master is gone, consumers commit their offsets at the slave that acts for it,
and that slave delivers what is due. So before clients find the master again it asks
each slave for both tables (43, 45). RocketMQ takes a whole table if its data version is
not older than the master's. But a version moves only with each 500th commit, and each
200th delivery, so what is taken can be behind what the master had itself. Here offsets
of delay levels only move ahead, and so do those of consumers, unless the slave's
version is newer: then they are taken as they are, as somebody may have reset them.

C{docs/facts/ha.md} 13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, final

from rocketbroker.broker.context import Caller
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.errors import RemoteProtocolError, RequestCodeNotSupported
from rocketbroker.store.timerwheel.checkpoint import Checkpoint, decode
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads

#: How long a slave may take to send a table; that of all consumers can be large.
TABLE_SECONDS: Final = 10.0


@final
class ReverseSync:
    """Takes over the tables of slaves."""

    def __init__(
        self,
        client: Caller,
        offsets: OffsetTable,
        take_delays: Callable[[Mapping[str, object]], None],
        take_timers: Callable[[Checkpoint], None],
    ) -> None:
        """
        @param take_delays: takes the offsets of delay levels.
        @param take_timers: takes how far the timers are.
        """
        self._client = client
        self._offsets = offsets
        self._take_delays = take_delays
        self._take_timers = take_timers

    async def take(self, address: str) -> None:
        """Take over what the slave at C{address} has.

        @raise RocketbrokerError: it did not answer, or with nonsense; then nothing was
            taken.
        """
        delays = await self._table(address, RequestCode.GET_ALL_DELAY_OFFSET)
        consumers = await self._table(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        timers = await self._timers(address)
        self._offsets.take_back(consumers)
        self._take_delays(delays)
        if timers is not None:
            self._take_timers(timers)

    async def _timers(self, address: str) -> Checkpoint | None:
        """How far the timers are; None if there are none."""
        try:
            body = await self._body(address, RequestCode.GET_TIMER_CHECK_POINT)
        except RequestCodeNotSupported:
            return None
        return decode(body)

    async def _body(self, address: str, code: RequestCode) -> bytes:
        answer = await self._client.invoke(address, Command(code), TABLE_SECONDS)
        return successful(answer).body

    async def _table(self, address: str, code: RequestCode) -> Mapping[str, object]:
        value = loads(await self._body(address, code))
        if not isinstance(value, dict):
            raise RemoteProtocolError(f"the answer to {int(code)} is no table")
        return value
