# -*- test-case-name: tests.broker.acting.test_escape_halves -*-
"""Transfer of an absent master's open transactions to another group.

A slave that acts for a master cannot check transactions back: it may store neither the
copies nor what becomes of them. So it sends each open half message to another group, as
its producer would; that group makes a half message of its own, and asks the producer.
How far it is stands in the table of offsets, as the master notes it itself, so that the
master does not ask again when it has come back and has taken that table over.

Where no other group takes a half, RocketMQ passes it after ten attempts; here the next
round begins with it.

C{docs/facts/transaction-timer-pop.md} A6, 3c; C{docs/facts/ha.md} 13, 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.acting.escape_delays import Put
from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.forwarded_message import half_message
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.roles import ACTING
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.transaction.check_back import GROUP, CheckBack, Found
from rocketbroker.broker.transaction.op_queue import OpQueue
from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC

ESCAPE_HALVES: Final = Service(
    "open transactions in a master's place",
    "half messages go to another group, which asks their producers",
    lambda s: max(1, s.broker.transaction_check_interval) / 1000,
    always(1),
    roles=ACTING,
)

#: How many halves are read at once.
MAX_READ: Final = 32


@final
class EscapeHalves:
    """The service that gives open transactions to another group.

    @ivar given: how many transactions other groups have taken.
    """

    def __init__(
        self,
        context: BrokerContext,
        checks: CheckBack,
        marks: OpQueue,
        offsets: OffsetTable,
        appends: OwnAppends,
        put: Put,
    ) -> None:
        """
        @param checks: finds the open transactions; it does not run while this does.
        """
        self.given = 0
        self._store = context.store
        self._checks = checks
        self._state = marks.state
        self._marks = marks
        self._offsets = offsets
        self._appends = appends
        self._put = put
        self._in_thread: InThread = context.in_thread
        self._services: Services = context.services
        self._round: Deferred[None] = succeed(None)

    def start(self) -> None:
        """Do it whenever this broker acts for a master."""
        self._services.begin(ESCAPE_HALVES, self._begin, self._resume)

    def _resume(self) -> Deferred[None]:
        """Find the transactions that are open by the log."""
        return self._in_thread(self._checks.find).addCallback(self._resumed)

    def _resumed(self, older: Sequence[tuple[int, int]]) -> None:
        # There is a newer half of these. The mark stays in memory.
        for offset, _ in older:
            self._state.mark(offset)

    def ended(self) -> Deferred[None]:
        """Fires when nothing is under way."""
        done: Deferred[None] = Deferred()
        self._round.addBoth(lambda _: done.callback(None))
        return done

    def _goes_on(self) -> bool:
        return self._services.is_on(ESCAPE_HALVES)

    def _begin(self) -> Deferred[None]:
        over = self._round = Deferred()
        done = Deferred.fromCoroutine(self._run())
        return done.addBoth(self._over, over)

    @staticmethod
    def _over(result: None, over: Deferred[None]) -> None:
        over.callback(None)
        return result

    async def _run(self) -> None:
        """Give away all that are open now."""
        self._appends.dispatch()
        end = self._store.queue(HALF_TOPIC, 0).max_offset
        while (block := await self._in_thread(self._marks.read)) is not None:
            self._marks.take(block)
        offset = self._state.base
        while self._goes_on():
            wanted = self._checks.open_from(offset, end, MAX_READ)
            if not wanted:
                self._advance(max(offset, end))
                return
            found = await self._in_thread(partial(self._checks.read, wanted))
            offset = await self._give(found)
            self._advance(offset)
            if offset <= found[-1][0]:
                return

    async def _give(self, found: Sequence[Found]) -> int:
        """Give some away.

        @return: the offset of the first one that is not over.
        """
        for offset, half in found:
            if not self._goes_on():
                return offset
            if half is None:
                if not self._checks.is_passed(offset):
                    return offset
            elif not await self._put(half_message(half)):
                return offset
            else:
                self.given += 1
                self._state.mark(offset)
        return found[-1][0] + 1

    def _advance(self, offset: int) -> None:
        """Every half before C{offset} is over: note it for the master."""
        self._state.advance(offset)
        if not offset and self._offsets.query(GROUP, HALF_TOPIC, 0) < 0:
            return  # Without transactions nobody sees the group, as in RocketMQ.
        for topic, reached in (
            (HALF_TOPIC, self._state.base),
            (OP_HALF_TOPIC, self._marks.needed_offset()),
        ):
            if self._offsets.query(GROUP, topic, 0) != reached:
                self._offsets.commit(GROUP, topic, 0, reached)
