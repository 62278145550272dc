# -*- test-case-name: tests.broker.replicas.test_slave_progress -*-
"""The progress of a slave behind its master, for operators who watch or promote it.

Replication does not tell a slave where its master's log ends: what comes, comes. So the
slave asks its master for its figures (28, which masters of all versions answer), and
looks later whether it has reached that end. What it says stays true when the master is
gone: then it is how much is known to be missing.

How long a slave is behind is measured by its own clock alone: since the last look at
whose end it has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from rocketbroker.broker.context import Caller
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.errors import RemoteProtocolError, RocketbrokerError
from rocketbroker.replication.interfaces import IMasterLink
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.bodies.topics import KVTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fields import object_of

#: How long the master may take to answer.
ANSWER_SECONDS: Final = 3.0

#: RocketMQ's name of the end of the log.
END: Final = "commitLogMaxOffset"


@final
class SlaveProgress:
    """What a slave knows of its master's log.

    @ivar master_end: where it ended at the last look that succeeded; None before one.
    @ivar looked_ms: when that was, by the time of day.
    @ivar caught_up_ms: when this log last had all that the master's had; 0: not yet.
    """

    def __init__(
        self,
        client: Caller,
        store: IStore,
        link: IMasterLink,
        address: Callable[[], str | None],
        wall_ms: Callable[[], int],
    ) -> None:
        """
        @param address: the master's main port, as far as it is known.
        """
        self.master_end: int | None = None
        self.looked_ms = 0
        self.caught_up_ms = 0
        self._client = client
        self._store = store
        self._link = link
        self._address = address
        self._wall_ms = wall_ms
        #: An end that this log has not reached yet, and when the master's was there.
        self._ahead: tuple[int, int] | None = None

    def look(self) -> Deferred[None]:
        """Ask the master where its log ends."""
        address = self._address()
        if address is None:
            return succeed(None)
        asked_ms = self._wall_ms()
        command = Command(RequestCode.GET_BROKER_RUNTIME_INFO)
        called = self._client.invoke(address, command, ANSWER_SECONDS)
        ended = called.addCallback(end_in)
        return ended.addCallback(self._note, asked_ms).addErrback(unanswered)

    def _note(self, end: int, asked_ms: int) -> None:
        self._arrive()
        self.master_end, self.looked_ms = end, asked_ms
        if self._ahead is None:
            self._ahead = end, asked_ms
            self._arrive()

    def _arrive(self) -> None:
        """Look whether the end that was seen is reached by now.

        A log that differs from the master's may be longer, and lacks all the same.
        """
        ahead = self._ahead
        if ahead is not None and not self._link.problem:
            end, seen_ms = ahead
            if self._store.published_position >= end:
                self.caught_up_ms = seen_ms
                self._ahead = None

    def behind(self) -> int | None:
        """How many bytes of the master's log are missing, as far as is known; None: the
        master has not been heard yet."""
        if self.master_end is None:
            return None
        return max(0, self.master_end - self._store.published_position)

    def behind_ms(self) -> int | None:
        """For how long this log has not had all; None: it has not had all yet."""
        self._arrive()
        if not self.caught_up_ms:
            return None
        return 0 if self._ahead is None else max(0, self._wall_ms() - self.caught_up_ms)

    def sentence(self) -> str:
        """How far behind, for people."""
        behind, master = self.behind(), self._link.master
        if behind is None:
            return "This slave has not heard yet where its master's log ends."
        seconds = max(0, self._wall_ms() - self.looked_ms) // 1000
        has = f"lacks {behind} bytes of" if behind else "has all of"
        return (
            f"This slave {has} the log of {master}, as it was {seconds} s ago "
            f"(to {self.master_end})."
        )

    def not_ready(self) -> str | None:
        """Why nobody should rely on this copy; None: it has had all since the start, or
        there is no master to compare with, and no better copy is known."""
        self._arrive()
        if self.caught_up_ms or self.master_end is None:
            return None
        return f"{self.sentence()} It has not caught up since its start."


def end_in(answer: Command) -> int:
    """Where the log of a broker ends, in its figures.

    @raise RemoteProtocolError: they do not say.
    @raise BrokerError: it refuses to tell.
    """
    table = object_of(successful(answer).body, KVTable.from_json).table
    try:
        return int(table[END])
    except (KeyError, ValueError) as error:
        raise RemoteProtocolError(f"a broker's figures have no {END}") from error


def unanswered(failure: Failure) -> None:
    """The master does not say it: what is known stays, and the link has the reason."""
    failure.trap(RocketbrokerError)  # type: ignore[no-untyped-call]
