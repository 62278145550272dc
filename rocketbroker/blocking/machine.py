# -*- test-case-name: tests.blocking.test_machine -*-
"""The machine that a client runs on: sockets, clocks, an identity.

A L{Machine} is given to everything here, so that tests need neither; it travels to
executors as it is.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from typing import Final, NamedTuple, Protocol, final

import attrs

from rocketbroker.errors import ConfigurationError, ConnectionLost

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


class Identity(NamedTuple):
    """What unique keys are made of: address (4 or 16 bytes), process, a number."""

    address: bytes
    process_id: int
    token: int


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


def split_address(address: str) -> tuple[str, int]:
    """Host and port of C{host:port}, split at the last colon.

    @raise ConfigurationError: it is not of that form.
    """
    host, colon, port = address.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(f"{address!r} is not an address of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


@attrs.frozen
class ThisMachine:
    """The machine we run on; it has no state."""

    def connect(self, host: str, port: int, seconds: float) -> Stream:
        """Connect by TCP."""
        try:
            made = socket.create_connection((host, port), seconds)
        except (OSError, UnicodeError) as problem:
            raise ConnectionLost(
                f"cannot connect to {host}:{port}: {problem}"
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
        """The address of the way out, the process, and a number by chance.

        Finding the way out sends nothing. Without one it is the loopback address; the
        number keeps such clients apart.
        """
        address = "127.0.0.1"
        with contextlib.suppress(OSError):
            probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with probe:
                probe.connect(("192.0.2.1", 9))
                address = probe.getsockname()[0]
        token = int.from_bytes(os.urandom(4), "big")
        return Identity(socket.inet_aton(address), os.getpid(), token)


@final
class TcpStream:
    """A L{Stream} on a socket that does not block."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._poll = select.poll()
        self._mask = select.POLLIN
        self._poll.register(connected, self._mask)

    def wait(self, to_write: bool, seconds: float) -> Readiness:
        """See L{Stream.wait}."""
        mask = select.POLLIN | select.POLLOUT if to_write else select.POLLIN
        if mask != self._mask:
            try:
                self._poll.modify(self._socket, mask)
            except ValueError:  # another thread has closed it
                return Readiness(True, True)
            self._mask = mask
        events = 0
        for _, event in self._poll.poll(max(0.0, seconds) * 1000.0):
            events |= event
        broken = events & (select.POLLERR | select.POLLHUP | select.POLLNVAL)
        return Readiness(
            bool(events & select.POLLIN or broken), bool(events & select.POLLOUT)
        )

    def receive(self) -> bytes | None:
        """See L{Stream.receive}."""
        try:
            return self._socket.recv(READ_SIZE)
        except BlockingIOError:
            return None
        except OSError as problem:
            raise ConnectionLost(f"the connection broke: {problem}") from problem

    def send(self, data: memoryview) -> int:
        """See L{Stream.send}."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as problem:
            raise ConnectionLost(f"the connection broke: {problem}") from problem

    def close(self) -> None:
        """See L{Stream.close}; a thread that waits for it is woken."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
