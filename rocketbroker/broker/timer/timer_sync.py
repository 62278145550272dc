# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Requests of a slave to the master about its timers: their progress (60), and counts
of waiting messages (61).

A slave that is to act for its master has to know what was delivered. So it asks every
three seconds, as RocketMQ's slaves do, and for the counts with each twentieth question.

C{docs/facts/ha.md} 11; C{docs/facts/transaction-timer-pop.md} B10.
"""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.context import Caller
from rocketbroker.broker.registration.masters import Masters
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.broker.roles import Role
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.timer.timer_service import TimerService
from rocketbroker.errors import (
    RemoteProtocolError,
    RequestCodeNotSupported,
    RocketbrokerError,
)
from rocketbroker.store.timerwheel.checkpoint import Checkpoint, decode
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads

TIMER_SYNC: Final = Service(
    "look at the master's timers",
    "a slave knows what its master has delivered",
    always(3),
    roles=frozenset({Role.SLAVE}),
)

#: How long a master may take to answer.
ANSWER_SECONDS: Final = 3.0

#: The counts are asked for with each such question.
COUNTS_EACH: Final = 20


@final
class TimerSync:
    """The requests to the master about its timers, 60 and 61.

    @ivar problem: a sentence on why it did not answer the last time; or empty.
    """

    _log = Logger()

    def __init__(
        self,
        client: Caller,
        masters: Masters,
        own_address: str,
        timers: TimerService,
        services: Services,
    ) -> None:
        """
        @param own_address: where this broker is asked.
        """
        self.problem = ""
        self._client = client
        self._masters = masters
        self._own_address = own_address
        self._timers = timers
        self._services = services
        self._asked = 0

    def start(self) -> None:
        """Ask as long as this is a slave."""
        if self._timers.is_on:
            self._services.begin(TIMER_SYNC, self.look)

    def look(self) -> Deferred[None] | None:
        """Ask once; fires when that is done."""
        address = self._masters.current.address
        if address is None or address == self._own_address:
            return None
        return Deferred.fromCoroutine(self._ask(address))

    async def _ask(self, address: str) -> None:
        problem = ""
        try:
            self._take(address, await checkpoint_of(self._client, address))
            if self._asked % COUNTS_EACH == 0:
                code = RequestCode.GET_TIMER_METRICS
                value = loads(await _body(self._client, address, code))
                if isinstance(value, dict) and self._goes_on(address):
                    self._timers.counts.become(value)
            self._asked += 1
        except RequestCodeNotSupported:
            pass  # A master of an older version has no timers.
        except RocketbrokerError as error:
            problem = f"The timers of the master {address} cannot be had: {error}"
            if not self.problem:
                self._log.warn("{problem}; going on to try", problem=problem)
        self.problem = problem

    def _goes_on(self, address: str) -> bool:
        is_master = self._masters.current.address == address
        return is_master and self._services.is_on(TIMER_SYNC)

    def _take(self, address: str, checkpoint: Checkpoint) -> None:
        if self._goes_on(address):
            self._timers.become(checkpoint)


async def checkpoint_of(client: Caller, address: str) -> Checkpoint:
    """How far the timers of a broker are.

    @raise RocketbrokerError: it did not answer, or with nonsense.
    """
    code = RequestCode.GET_TIMER_CHECK_POINT
    found = decode(await _body(client, address, code))
    if found is None:
        raise RemoteProtocolError("the answer is no checkpoint of timers")
    return found


async def _body(client: Caller, address: str, code: RequestCode) -> bytes:
    answer = await client.invoke(address, Command(code), ANSWER_SECONDS)
    return successful(answer).body
