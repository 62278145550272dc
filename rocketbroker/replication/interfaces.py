# -*- test-case-name: tests.replication -*-
"""Both sides of replication, as a broker sees them.

A position is a byte position in the commit log; all before a slave's position is
stored there, not necessarily on its disk (C{docs/facts/ha.md}, trap 10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred
from zope.interface import Attribute, Interface

from rocketbroker.store.raw_log import IRawLog

T = TypeVar("T")


class InThread(Protocol):
    """Runs a blocking function in a worker, as C{deferToThread} does."""

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function}; fires in the reactor's thread with its result."""


class ReplicatedStore(Protocol):
    """The part of a store that replication uses."""

    @property
    def min_position(self) -> int:
        """The start of the oldest segment."""

    @property
    def published_position(self) -> int:
        """The end of the log."""

    @property
    def raw_log(self) -> IRawLog:
        """The log as bytes."""


class Membership(Protocol):
    """Says whose connections are slaves'."""

    @property
    def serves_strangers(self) -> bool:
        """Whether others are sent the log, too; they count for nothing."""

    def is_slave(self, host: str, /) -> bool:
        """Whether a connection from C{host} is a slave's."""

    def look_soon(self) -> None:
        """There is a connection that is no slave's: it may be known by now."""

    def watch(self, changed: Callable[[bool], object], /) -> None:
        """Call C{changed} when the answers may be others; with C{True} if settings are
        others, so that a slave may be none any more."""


class IReplica(Interface):
    """A slave that is connected to this master."""

    address: str = Attribute("Its side of the connection: 1.2.3.4:5678.")
    acked: int = Attribute(
        "The position that it has reported, and was sent; -1 before the first report."
    )
    sent: int = Attribute("The position up to which it was sent the log; -1 likewise.")
    bytes_per_second: int = Attribute("What it was sent in the last whole second.")
    caught_up_ms: int = Attribute(
        "When it last had all that the master had, by the time of day."
    )
    problem: str = Attribute("A sentence on why it is sent nothing now; or empty.")

    def is_in_sync(end: int) -> bool:
        """Whether it is less than haMaxGapNotInSync bytes behind C{end}."""


class IReplicaServer(Interface):
    """The master's side: listens, and sends each slave what it lacks.

    A slave listens too, so that others can follow it when it becomes the master.
    """

    replicas: Sequence[IReplica] = Attribute("The slaves that are connected now.")
    strangers: Sequence[str] = Attribute(
        "The addresses of connections that count for nothing."
    )

    def listen(port: int) -> int:
        """Accept slaves from now on; the port.

        @raise ConfigurationError: the port cannot be had; one sentence.
        """

    def appended() -> None:
        """Something was published: send it soon. It costs next to nothing."""

    def push() -> None:
        """Send what was published now; for the end of turns."""

    def watch(reported: Callable[[], None]) -> None:
        """Call C{reported} after reports of slaves, and after one has gone: once in
        each turn in which that happened."""

    def acked(copies: int) -> int:
        """The position up to which the log is stored at least C{copies} times.

        @param copies: the master's counts as one; at least 2.
        @return: -1 if there are not so many that have reported more than where they
            want to begin: only then it is known that their logs agree with this one.
        """

    def in_sync(end: int) -> int:
        """How many copies are in sync with C{end}, the master's included."""

    def stop() -> Deferred[None]:
        """Accept no slave any more and let all go; fires when they are gone."""


class IMasterLink(Interface):
    """The slave's side: follows one master.

    It tries again and again for as long as it runs; what keeps it from following is in
    C{problem}, and in the log once.
    """

    state: str = Attribute('"READY", "TRANSFER", "SUSPEND" or "SHUTDOWN".')
    master: str | None = Attribute("The HA address that it follows; None for none.")
    problem: str = Attribute("A sentence on what is wrong now; or empty.")
    bytes_per_second: int = Attribute("What came in the last whole second.")
    last_read_ms: int = Attribute("When bytes last came, by the time of day; 0: never.")
    last_write_ms: int = Attribute("When it last reported; 0: never.")
    received: int = Attribute("How many bytes of the log it has stored.")

    def start() -> None:
        """Follow, as soon as there is an address."""

    def follow(master: str | None) -> None:
        """The master's HA address is this one from now on."""

    def watch(received: Callable[[], None]) -> None:
        """Call C{received} after each append of what has come."""

    def stop() -> Deferred[None]:
        """Let the master go; fires when nothing is stored any more."""
