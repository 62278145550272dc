"""Listening sockets that the hub's server accepts from."""

from __future__ import annotations

import errno
import resource
import socket
from typing import Any, cast

from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.listener import (
    MAX_ACCEPTED,
    PAUSE_SECONDS,
    Listener,
    cannot_listen,
    connections_of,
    descriptor_limit,
    highest_descriptor,
    listening_socket,
)


class Scripted(socket.socket):
    """A socket whose accept does what the test says, and then would block."""

    def __init__(self, *steps: OSError | None) -> None:
        super().__init__(socket.AF_UNIX)
        self.steps = list(steps)
        self.peers: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """The next step: an error, or a connection."""
        if not self.steps:
            raise BlockingIOError
        step = self.steps.pop(0)
        if step is not None:
            raise step
        ours, peer = socket.socketpair()
        self.peers.append(peer)
        return ours, ("1.2.3.4", 5)


class ListenerTests(SynchronousTestCase):
    """Accepting, without a network."""

    def setUp(self) -> None:
        """A reactor that notes its readers."""
        self.reactor = MemoryReactorClock()
        self.counts = Counts()
        self.accepted: list[tuple[socket.socket, str, int]] = []
        #: Those of other ports.
        self.others = 0

    def listen(self, *steps: OSError | None, limit: int = 1 << 20) -> Listener:
        """A listener whose socket does this."""
        self.socket = Scripted(*steps)
        self.listener = Listener(
            cast(Any, self.reactor),
            self.socket,
            lambda sock, host, port: self.accepted.append((sock, host, port)),
            self.counts,
            limit,
            lambda: len(self.accepted) + self.others,
        )
        self.addCleanup(self.close_all)
        return self.listener

    def close_all(self) -> None:
        self.listener.stop()
        for sock in [each[0] for each in self.accepted] + self.socket.peers:
            sock.close()

    def test_accepts(self) -> None:
        """All that wait are handed on, with their addresses."""
        self.listen(None, None).doRead()
        self.assertEqual([each[1:] for each in self.accepted], [("1.2.3.4", 5)] * 2)

    def test_most(self) -> None:
        """A crowd at the door does not keep the reactor from its other work."""
        self.listen(*[None] * (MAX_ACCEPTED + 1)).doRead()
        self.assertEqual(len(self.accepted), MAX_ACCEPTED)
        self.listener.doRead()
        self.assertEqual(len(self.accepted), MAX_ACCEPTED + 1)

    def test_goneBefore(self) -> None:
        """One that went away before it was accepted does not keep out the next."""
        self.listen(OSError(errno.ECONNABORTED, "gone"), None).doRead()
        self.assertEqual(len(self.accepted), 1)

    def test_exhausted(self) -> None:
        """Without descriptors nobody is accepted for a moment; then it goes on."""
        self.listen(OSError(errno.EMFILE, "too many"), None).doRead()
        self.assertEqual(self.accepted, [])
        self.assertEqual(self.counts.refused, 1)
        self.assertEqual(self.reactor.getReaders(), [])
        self.reactor.advance(PAUSE_SECONDS)
        self.assertEqual(self.reactor.getReaders(), [self.listener])
        self.listener.doRead()
        self.assertEqual(len(self.accepted), 1)

    def refused(self) -> None:
        """The last connection was closed, and none is accepted for a moment."""
        self.assertEqual(self.counts.refused, 1)
        self.assertEqual(self.socket.peers[-1].recv(1), b"")
        self.assertEqual(self.reactor.getReaders(), [])
        self.reactor.advance(PAUSE_SECONDS)
        self.assertEqual(self.reactor.getReaders(), [self.listener])

    def test_connections(self) -> None:
        """Connections of all ports have three quarters of the descriptors, whatever
        numbers theirs are: files that are open do not count."""
        self.others = 749
        self.listen(None, None, limit=1000).doRead()
        self.assertEqual(len(self.accepted), 1)
        self.refused()

    def test_reserve(self) -> None:
        """The last descriptors are left for files: who would take one is closed."""
        lowest = socket.socket()
        self.addCleanup(lowest.close)
        self.listen(None, limit=lowest.fileno()).doRead()
        self.assertEqual(self.accepted, [])
        self.refused()

    def test_limits(self) -> None:
        """Connections may have three quarters of what this process may have, and none
        has a descriptor of the last sixteenth."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.assertEqual(descriptor_limit(), soft)
        self.assertEqual(connections_of(1024), 768)
        self.assertEqual(connections_of(resource.RLIM_INFINITY), 805306368)
        self.assertEqual(highest_descriptor(1024), 960)
        self.assertEqual(highest_descriptor(resource.RLIM_INFINITY), 15 << 26)

    def test_stop(self) -> None:
        """A stopped one has no reader and no socket, also after a pause."""
        self.listen(OSError(errno.ENFILE, "too many")).doRead()
        self.listener.connectionLost(None)
        self.listener.stop()
        self.reactor.advance(PAUSE_SECONDS)
        self.assertEqual(self.reactor.getReaders(), [])
        self.assertEqual(self.socket.fileno(), -1)


class SentenceTests(SynchronousTestCase):
    """What an operator reads when a port cannot be had."""

    def test_inUse(self) -> None:
        """That it is in use."""
        error = OSError(errno.EADDRINUSE, "Address already in use")
        self.assertEqual(
            str(cannot_listen("::", 9876, error)),
            "Cannot listen on [::]:9876: the port is in use.",
        )

    def test_other(self) -> None:
        """Or what the system says."""
        error = OSError(errno.EACCES, "Permission denied")
        self.assertEqual(
            str(cannot_listen("0.0.0.0", 80, error)),
            "Cannot listen on 0.0.0.0:80: Permission denied.",
        )

    def test_noAddress(self) -> None:
        """An address that is none is refused with such a sentence, too."""
        error = self.assertRaises(
            ConfigurationError, listening_socket, "no such address", 0, 5
        )
        self.assertTrue(str(error).startswith("Cannot listen on no such address:0: "))
