# -*- test-case-name: tests.testing.test_connections -*-
"""A connection without a wire: what responders send is there to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from twisted.internet.defer import Deferred
from zope.interface import implementer

from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import decode


@final
@implementer(IConnection)
class RecordedConnection:
    """Keeps what is sent.

    @ivar frames: the frames sent, whole.
    @ivar oneways: the requests sent that want no answer.
    @ivar requests: the requests sent that want one, each with what fires with it.
    """

    def __init__(
        self, host: bytes = b"\x7f\0\0\1", port: int = 50000, local: str = ""
    ) -> None:
        """
        @param local: the address by which the other side reached this one.
        """
        self._local = local
        self.peer = f"{'.'.join(str(part) for part in host)}:{port}"
        self.peer_host = host + port.to_bytes(4, "big")
        self.user = ""
        self.closed = False
        self.congested = False
        self.crowded = False
        self.frames: list[bytes] = []
        self.oneways: list[Command] = []
        self.requests: list[tuple[Command, Deferred[Command]]] = []
        self._callbacks: list[Callable[[IConnection], None]] = []

    @property
    def who(self) -> str:
        """See L{IConnection.who}."""
        return f"{self.user} at {self.peer}" if self.user else self.peer

    def answers(self) -> list[Command]:
        """The frames sent, decoded."""
        return [decode(frame[4:]) for frame in self.frames]

    def send(self, frames: bytes, count: int = 1) -> None:
        """See L{IConnection.send}."""
        if self.closed:
            return
        at = 0
        for _ in range(count):
            end = at + 4 + int.from_bytes(frames[at : at + 4], "big")
            self.frames.append(frames[at:end])
            at = end
        assert at == len(frames), "those are not so many frames"

    def send_now(self, frames: bytes, count: int = 1) -> None:
        """See L{IConnection.send_now}."""
        self.send(frames, count)

    def send_parts(
        self, head: bytes, body: Sequence[bytes | memoryview], size: int
    ) -> None:
        """See L{IConnection.send_parts}."""
        assert size == sum(map(len, body)), "that is not the size of the body"
        self.send(b"".join([head, *body]))

    def request(self, command: Command, timeout: float) -> Deferred[Command]:
        """See L{IConnection.request}."""
        answered: Deferred[Command] = Deferred()
        self.requests.append((command, answered))
        return answered

    def oneway(self, command: Command) -> None:
        """See L{IConnection.oneway}."""
        if not self.closed:
            self.oneways.append(command)

    def local_host(self) -> str:
        """See L{IConnection.local_host}."""
        return self._local

    def watch_close(self, callback: Callable[[IConnection], None]) -> None:
        """See L{IConnection.watch_close}."""
        if self.closed:
            callback(self)
        else:
            self._callbacks.append(callback)

    def close(self) -> None:
        """See L{IConnection.close}."""
        if self.closed:
            return
        self.closed = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
