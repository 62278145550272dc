# -*- test-case-name: tests.broker.acting.test_acting_master -*-
"""The choice of the acting master: the broker with the least id does the work of an
absent master.

An acting master serves no sends: it delivers what is due, and gives open transactions
to another group, so that nothing waits for the master's return. Its log stays a copy of
the master's.

A master that comes back says so to each slave (906) before it takes over what the slave
has done meanwhile. From that moment on the slave does no more: what it did after the
master had asked would be done twice. If the master does not get on after all, the slave
acts again when it has not heard of it for L{PAUSE_SECONDS}.

C{docs/facts/ha.md} 13; C{docs/facts/controller.md} 23.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.acting.ha_exchange import HAInfo
from rocketbroker.broker.registration.member_group import MASTER_ID, Least
from rocketbroker.errors import RocketbrokerError

#: For how long a slave does nothing in a master's place that is coming back; masters
#: say so again each second.
PAUSE_SECONDS: Final = 15.0


class Work(Protocol):
    """What an absent master cannot do."""

    def begin(self) -> None:
        """Do it from now on."""

    def end(self) -> Deferred[None]:
        """Do it no more; fires when what is under way has ended."""


class Follower(Protocol):
    """The part of a slave that is told which master to follow."""

    def follow(self, master: str | None, ha_address: str | None) -> None:
        """The master is there, and sends its log from there; None: there is none."""


@final
class ActingMaster:
    """The choice, of one slave.

    @ivar is_acting: whether this broker does the master's work.
    @ivar least: the least id of the group.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        own_id: int,
        work: Work,
        following: Follower,
        ask: Callable[[str], Deferred[HAInfo]],
        master_returned: Callable[[], object],
    ) -> None:
        """
        @param ask: asks a master where it is followed.
        @param master_returned: called when a master is there again.
        """
        assert own_id != MASTER_ID
        self.is_acting = False
        self.least = MASTER_ID
        self._is_online = False
        self._clock = clock
        self._own_id = own_id
        self._work = work
        self._following = following
        self._ask = ask
        self._master_returned = master_returned
        self._paused_until = 0.0
        self._asked: str | None = None

    def online(self, least: int) -> None:
        """Name servers may know this broker from now on.

        @param least: the least id of its group.
        """
        self._is_online = True
        self.least = least
        self._choose()

    def heard(self, least: Least) -> None:
        """Something was heard of the least id."""
        if not self._is_online:
            return
        before, self.least = self.least, least.broker_id
        self._choose()
        if least.broker_id == before:
            return
        if before == MASTER_ID:
            self._following.follow(None, None)
        if least.broker_id == MASTER_ID:
            if least.address is not None:
                self._master_is_at(least.address, least.ha_address)
            self._master_returned()

    def _master_is_at(self, address: str, ha_address: str | None) -> None:
        """A master is there: follow it."""
        if ha_address is not None:
            self._following.follow(address, ha_address)
        elif self._asked != address:
            self._asked = address
            asked = self._ask(address)
            asked.addCallbacks(self._follow, self._no_answer, callbackArgs=(address,))

    def _follow(self, info: HAInfo, address: str) -> None:
        self._asked = None
        if self.least == MASTER_ID and info.ha_address is not None:
            self._following.follow(info.address or address, info.ha_address)

    def _no_answer(self, failure: Failure) -> None:
        """The next registration says where it is, too."""
        self._asked = None
        failure.trap(RocketbrokerError)  # type: ignore[no-untyped-call]

    def _choose(self) -> None:
        """Do the master's work, or leave it."""
        wanted = (
            self.least == self._own_id and self._clock.seconds() >= self._paused_until
        )
        if wanted == self.is_acting:
            return
        self.is_acting = wanted
        if wanted:
            self._log.info(
                "This slave has the least id of its group, {id}, and does the "
                "master's work until one is there.",
                id=self._own_id,
            )
            self._work.begin()
        else:
            self._log.info("This slave leaves the master's work to others.")
            self._work.end()

    def pause(self) -> Deferred[None]:
        """A master is about to come back: do nothing in its place.

        @return: fires when what is under way has ended.
        """
        self._paused_until = self._clock.seconds() + PAUSE_SECONDS
        if self.is_acting:
            self.is_acting = False
            self._log.info("The master comes back; this slave leaves its work to it.")
        return self._work.end()

    def stop(self) -> Deferred[None]:
        """Do nothing in a master's place any more; fires as L{pause} does."""
        self._is_online = self.is_acting = False
        return self._work.end()
