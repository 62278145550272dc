"""A client that keeps what it is asked to send."""

from __future__ import annotations

from typing import final

from twisted.internet.defer import Deferred

from rocketbroker.errors import ConnectionLost
from rocketbroker.wire.command import Command, response_to


@final
class Call:
    """One request that waits for its answer."""

    def __init__(self, address: str, command: Command, timeout: float) -> None:
        self.address = address
        self.command = command
        self.timeout = timeout
        self.answered: Deferred[Command] = Deferred()

    def answer(
        self, code: int = 0, body: bytes = b"", ext: dict[str, str] | None = None
    ) -> None:
        """Answer it."""
        self.answered.callback(response_to(self.command, code, "why", ext, body))

    def fail(self) -> None:
        """The connection is lost."""
        self.answered.errback(ConnectionLost("gone"))


@final
class Caller:
    """The broker's client, with name servers that a test plays.

    @ivar calls: the requests that wait.
    @ivar oneways: those that want no answer, each with its address.
    @ivar error: what the next request raises.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.oneways: list[tuple[str, Command]] = []
        self.error: Exception | None = None

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """See L{rocketbroker.remoting.client.RemotingClient.invoke}."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        call = Call(address, command, timeout)
        self.calls.append(call)
        return call.answered

    def oneway(self, address: str, command: Command) -> None:
        """See L{rocketbroker.remoting.client.RemotingClient.oneway}."""
        self.oneways.append((address, command))

    def take(self) -> list[Call]:
        """The requests that wait; the next ones come into a new list."""
        calls, self.calls = self.calls, []
        return calls
