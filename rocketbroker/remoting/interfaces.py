# -*- test-case-name: tests.remoting -*-
"""Connections and responder tables as responders see them.

Two things provide L{IConnection}: a connection of the hub (one epoll for all data
connections) and one on a Twisted transport (TLS, no epoll, the memory network of
tests).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from zope.interface import Attribute, Interface

from rocketbroker.wire.command import Command


class IConnection(Interface):
    """One client of a server, or one server of a client."""

    peer: str = Attribute("The other side, as tables and logs show it: 1.2.3.4:5678.")
    peer_host: bytes = Attribute(
        "The other side as a record stores it: 4 or 16 bytes of address, then the port "
        "as 32 bits big-endian."
    )
    user: str = Attribute(
        "Who has signed the last request, where access is controlled; empty: nobody."
    )
    who: str = Attribute("User and peer, for lines about what administrators do.")
    closed: bool = Attribute("Whether it is gone.")
    congested: bool = Attribute(
        "Whether so much waits to be sent that nothing is read from it any more."
    )
    crowded: bool = Attribute(
        "Whether the unread answers of all connections take so much memory that no "
        "large one is to be made."
    )

    def send(frames: bytes, count: int = 1) -> None:
        """Send whole frames, at the end of this turn; nothing once it is closed.

        @param count: how many they are.
        """

    def send_now(frames: bytes, count: int = 1) -> None:
        """Send whole frames at once if no others wait, else as L{send} does.

        For what is done last in a turn, when a connection has one answer: it need not
        be noted for the end of the turn.
        """

    def send_parts(head: bytes, body: Sequence[bytes | memoryview], size: int) -> None:
        """Send one frame as L{send} does; of a large body no copy is made in a turn.

        @param head: all before the body.
        @param body: its pieces, which are not kept longer than the turn.
        @param size: the bytes of these.
        """

    def request(command: Command, timeout: float) -> Deferred[Command]:
        """Send a request over this connection and wait for the answer.

        The command gets an opaque of its own here.

        @param timeout: in seconds.
        @return: fires with the response, whatever its code; fails with RequestTimeout
            or ConnectionLost.
        """

    def oneway(command: Command) -> None:
        """Send a request that wants no answer."""

    def local_host() -> str:
        """The address by which the other side reached this one; empty if there is none:
        it is closed, or another process has it."""

    def watch_close(callback: Callable[[IConnection], None]) -> None:
        """Call C{callback} once, when it is closed; at once if it is already."""

    def close() -> None:
        """Close it; bytes sent before still go out if the peer takes them."""


#: The answer of a responder: the response; a Deferred of it; or None: no answer now,
#: the responder itself sends one later, or never. The server sets the opaque and the
#: response flag, drops answers to oneway requests, and turns a BrokerError into a
#: response with its code and remark and any other failure into SYSTEM_ERROR.
Answer: TypeAlias = "Command | Deferred[Command | None] | None"

#: Answers one request code.
Responder: TypeAlias = Callable[[IConnection, Command], Answer]

#: Answers one request code within the turn, without a L{Command} for each request: it
#: is given the connection, the bytes of a JSON header that begins with its code,
#: and the body. True: it took the request and sends the answer itself, now or later.
#: False: it cannot read this header; the request then goes the general way, to the
#: responder registered for the same code.
HotResponder: TypeAlias = Callable[[IConnection, bytes, bytes], bool]


#: Takes requests of one code that came together: given the connection, received bytes,
#: where the first frame begins, and how long a frame may be without its first word.
#: Returns how many it took, and where the first begins that it did not take.
HotRun: TypeAlias = Callable[[IConnection, bytes, int, int], tuple[int, int]]


class IResponderTable(Interface):
    """The responders of one port. A broker fills one for the main and one for the VIP
    port."""

    def register(code: int, responder: Responder) -> None:
        """Answer C{code} with C{responder}."""

    def register_hot(
        code: int,
        responder: HotResponder,
        quick: bool = False,
        run: HotRun | None = None,
    ) -> None:
        """Let C{responder} try first when a data connection brings C{code} as JSON.

        @param quick: no request takes more than some ten microseconds, so that the time
            of a connection need not be looked at after each.
        @param run: tries first where data connections bring several at once. It raises
            nothing, and takes no longer than the connection has.
        """


class ITurns(Interface):
    """The turns of the hub: all that one wake-up brought, answered together."""

    def watch_turn_end(callback: Callable[[], None]) -> None:
        """Call C{callback} at the end of each turn, before the answers are written."""

    def within(work: Callable[[], object]) -> None:
        """Do work of a timer that answers requests, as a turn of its own.

        The answers go out at its end. They would go out in the reactor's next round
        otherwise, which costs more than most of them. Within a turn it belongs to that.
        """


class ISlices(Interface):
    """Long work in the reactor's thread, a bounded slice at a time."""

    def run(owner: object, work: Iterator[None]) -> Deferred[None]:
        """Do C{work} in slices, from the reactor's next round on; owners take turns.

        @param owner: who asks for it: a connection, or a part of the server.
        @param work: each C{next()} is one step: about a hundred microseconds.
        @return: fires when the iterator ends, and fails with what it raises. Cancelled,
            it drops the work.
        """

    def stop() -> None:
        """Drop all work: what waits for it fails with C{CancelledError}."""


class HubReactor(Protocol):
    """A reactor, as the hub uses it."""

    def seconds(self) -> float:
        """The time."""

    def callLater(
        self, delay: float, callable: Callable[..., object], *args: Any
    ) -> IDelayedCall:
        """Call later."""

    def addReader(self, reader: Any) -> object:
        """Call C{reader.doRead} when its descriptor is readable."""

    def removeReader(self, reader: Any) -> object:
        """Do not, any more."""
