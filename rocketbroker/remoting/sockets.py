# -*- test-case-name: tests.workers -*-
"""The sockets of a hub: the system's in an epoll, relayed ones at their links.

A I{relayed socket} stands for a connection that another process has. It does what a
socket that does not block does, and a number beyond those of descriptors names it. All
those of one process share a I{link}, one descriptor in the same epoll.
"""

from __future__ import annotations

import select
from collections.abc import Iterable
from typing import Protocol, final

from rocketbroker.remoting.hubconnection import (
    FIRST_RELAYED,
    IN,
    ByteSocket,
    HubConnection,
)


class RelayedSocket(ByteSocket, Protocol):
    """A connection of another process."""

    def rearm(self, events: int) -> None:
        """Only C{events} are wanted from now on."""


class ProcessLink(Protocol):
    """The link to another process.

    @ivar peer: that process, for the log.
    """

    peer: str

    def fileno(self) -> int:
        """Its descriptor."""

    def ready(self, events: int) -> Iterable[HubConnection]:
        """It is ready, within a turn: read once.

        @return: the connections for which something came.
        """

    def flush(self) -> None:
        """A turn ends: send what is to be sent."""

    def abort(self) -> None:
        """A mistake of ours, in one of the above: close it."""


@final
class Sockets:
    """All that one epoll watches.

    @ivar poll: which descriptors are ready.
    @ivar links: the links by descriptor.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.poll = self._epoll.poll
        self.fileno = self._epoll.fileno
        self.close = self._epoll.close
        self.links: dict[int, ProcessLink] = {}
        self._relayed: dict[int, RelayedSocket] = {}

    def watch_link(self, link: ProcessLink) -> None:
        """Watch a link."""
        self.links[link.fileno()] = link
        self._epoll.register(link.fileno(), IN)

    def forget_link(self, link: ProcessLink) -> None:
        """Its descriptor is about to be closed."""
        del self.links[link.fileno()]
        self._epoll.unregister(link.fileno())

    def register(self, descriptor: int) -> None:
        """Watch a socket of the system."""
        self._epoll.register(descriptor, IN)

    def relay(self, sock: RelayedSocket) -> None:
        """Know a relayed socket."""
        self._relayed[sock.fileno()] = sock

    def rearm(self, descriptor: int, events: int) -> None:
        """Wait for C{events} on that descriptor."""
        if descriptor < FIRST_RELAYED:
            self._epoll.modify(descriptor, events)
        else:
            self._relayed[descriptor].rearm(events)

    def unregister(self, descriptor: int) -> None:
        """That descriptor is about to be closed."""
        if descriptor < FIRST_RELAYED:
            self._epoll.unregister(descriptor)
        else:
            del self._relayed[descriptor]
