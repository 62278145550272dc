# -*- test-case-name: tests.remoting.test_contract -*-
"""The wire of a connection under test: the test is the peer at its other end."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rocketbroker.remoting.command_channel import CommandChannel
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection


class Wire(ABC):
    """A connection and its peer.

    @ivar connection: the connection under test.
    """

    connection: CommandChannel

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Send as the peer, and let everything happen."""

    @abstractmethod
    def taken(self) -> bytes:
        """Let everything happen; what the peer received since the last time."""

    def commands(self) -> list[Command]:
        """What the peer received, which must be whole frames."""
        incoming = Connection()
        commands = incoming.receive(self.taken())
        assert not incoming.held, "half a frame"
        return commands

    @abstractmethod
    def ended(self) -> bool:
        """Whether the peer has seen the end of the connection."""

    @abstractmethod
    def hang_up(self) -> None:
        """End it as the peer."""

    @abstractmethod
    def pass_time(self, seconds: float) -> None:
        """Time passes."""

    @abstractmethod
    def pause(self) -> None:
        """The peer reads nothing."""

    @abstractmethod
    def resume(self) -> None:
        """The peer reads again."""

    @abstractmethod
    def end(self) -> None:
        """The test is over."""
