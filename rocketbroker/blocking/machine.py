# -*- test-case-name: tests.blocking.test_machine -*-
"""The machine that a client runs on: sockets, clocks, an identity.

A L{Machine} is given to everything here, so that tests need neither; it travels to
executors as it is.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, final

import attrs

from rocketbroker.config import forks
from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity, identity
from rocketbroker.errors import ConnectionLost

#: Events, as C{select.poll} has them where it is there.
POLLIN: Final[int] = getattr(select, "POLLIN", 0x01)
POLLOUT: Final[int] = getattr(select, "POLLOUT", 0x04)
POLLERR: Final[int] = getattr(select, "POLLERR", 0x08)
POLLHUP: Final[int] = getattr(select, "POLLHUP", 0x10)
POLLNVAL: Final[int] = getattr(select, "POLLNVAL", 0x20)

#: The most that one read takes; larger buffers cost more than the call saves.
READ_SIZE: Final = 65536


class Readiness(NamedTuple):
    """What a stream can do at once."""

    readable: bool
    writable: bool


class Stream(Protocol):
    """One connection. All but C{wait} return at once."""

    def wait(self, to_write: bool, seconds: float) -> Readiness:
        """Wait until it can be read, or written if C{to_write}, or the time is over."""

    def receive(self) -> bytes | None:
        """What has arrived; empty if the other side has closed; None if nothing has.

        @raise ConnectionLost: it is broken.
        """

    def send(self, data: memoryview) -> int:
        """Send some of C{data}; how much was taken.

        @raise ConnectionLost: it is broken.
        """

    def close(self) -> None:
        """Close it; idempotent."""


class Machine(Protocol):
    """Sockets, clocks, identity."""

    def connect(self, host: str, port: int, seconds: float) -> Stream:
        """Connect.

        @raise ConnectionLost: it could not be done in that time.
        """

    def monotonic(self) -> float:
        """Seconds that only ever go forward."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""

    def sleep(self, seconds: float) -> None:
        """Do nothing for that long."""

    def identity(self) -> Identity:
        """The identity of this process; asked for once by each producer."""

    def watch_fork(self, one: Forked) -> None:
        """Tell it in each child of a fork."""


def reason(problem: OSError | UnicodeError) -> str:
    """Why a socket failed, in the words of the system."""
    if isinstance(problem, UnicodeError):
        return "no host has such a name"
    if isinstance(problem, TimeoutError) and not problem.strerror:
        return "no answer in time"
    return problem.strerror or str(problem)


@attrs.frozen
class ThisMachine:
    """The machine we run on; it has no state."""

    def connect(self, host: str, port: int, seconds: float) -> Stream:
        """Connect by TCP."""
        try:
            made = socket.create_connection((host, port), seconds)
        except (OSError, UnicodeError) as problem:
            raise ConnectionLost(
                f"cannot connect to {host}:{port}: {reason(problem)}"
            ) from problem
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return TcpStream(made)

    def monotonic(self) -> float:
        """The monotonic clock."""
        return time.monotonic()

    def wall_ms(self) -> int:
        """The wall clock."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def identity(self) -> Identity:
        """See L{rocketbroker.config.machine.identity}."""
        return identity()

    def watch_fork(self, one: Forked) -> None:
        """See L{rocketbroker.config.forks.watch}."""
        forks.watch(one)


class Poll(Protocol):
    """The part of what C{select.poll} makes that is used here."""

    def register(self, connected: socket.socket, events: int, /) -> None:
        """Wait for these events of a socket, too."""

    def modify(self, connected: socket.socket, events: int, /) -> None:
        """Wait for these instead."""

    def poll(self, milliseconds: float, /) -> list[tuple[int, int]]:
        """Wait for one of them; descriptors with their events."""


@final
class Selected:
    """C{select.poll} of one socket, where there is none, as on Windows."""

    def register(self, connected: socket.socket, events: int, /) -> None:
        """See L{Poll.register}."""
        self._socket, self._events = connected, events

    modify = register

    def poll(self, milliseconds: float, /) -> list[tuple[int, int]]:
        """See L{Poll.poll}."""
        watched = [self._socket]
        asked = watched if self._events & POLLOUT else []
        try:
            found = select.select(watched, asked, (), milliseconds / 1000.0)
        except (OSError, ValueError):  # another thread has closed it
            return [(-1, POLLNVAL)]
        readable, writable, _ = found
        events = (POLLIN if readable else 0) | (POLLOUT if writable else 0)
        return [(-1, events)] if events else []


#: Makes what waits for a socket.
POLL: Final[Callable[[], Poll]] = getattr(select, "poll", Selected)


@final
class TcpStream:
    """A L{Stream} on a socket that does not block."""

    def __init__(
        self, connected: socket.socket, make_poll: Callable[[], Poll] = POLL
    ) -> None:
        self._socket = connected
        self._poll = make_poll()
        self._mask = POLLIN
        self._poll.register(connected, self._mask)

    def wait(self, to_write: bool, seconds: float) -> Readiness:
        """See L{Stream.wait}."""
        mask = POLLIN | POLLOUT if to_write else POLLIN
        if mask != self._mask:
            try:
                self._poll.modify(self._socket, mask)
            except ValueError:  # another thread has closed it
                return Readiness(True, True)
            self._mask = mask
        events = 0
        for _, event in self._poll.poll(max(0.0, seconds) * 1000.0):
            events |= event
        broken = events & (POLLERR | POLLHUP | POLLNVAL)
        return Readiness(bool(events & POLLIN or broken), bool(events & POLLOUT))

    def receive(self) -> bytes | None:
        """See L{Stream.receive}."""
        try:
            return self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except OSError as problem:
            raise ConnectionLost(
                f"the connection broke: {reason(problem)}"
            ) from problem

    def send(self, data: memoryview) -> int:
        """See L{Stream.send}."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as problem:
            raise ConnectionLost(
                f"the connection broke: {reason(problem)}"
            ) from problem

    def close(self) -> None:
        """See L{Stream.close}; a thread that waits for it is woken."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
