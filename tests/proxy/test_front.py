"""The front of a proxy: what is decided of a connection."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.front import (
    HANDSHAKE_RECORD,
    KEEPALIVE_IDLE_SECONDS,
    KEEPALIVE_PROBES,
    KEEPALIVE_STEP_SECONDS,
    keep_alive,
    listening_socket,
    peer_text,
    refusal_of,
)
from rocketbroker.proxy.settings import DISABLED, ENFORCING, PERMISSIVE

PREFACE = ord("P")


class DecisionTests(SynchronousTestCase):
    """By mode and first byte."""

    def test_modesSayWhatIsServed(self) -> None:
        """As RocketMQ's C{tls.server.mode} does."""
        for mode, first, is_served in (
            (DISABLED, PREFACE, True),
            (DISABLED, HANDSHAKE_RECORD, False),
            (PERMISSIVE, PREFACE, True),
            (PERMISSIVE, HANDSHAKE_RECORD, True),
            (ENFORCING, PREFACE, False),
            (ENFORCING, HANDSHAKE_RECORD, True),
        ):
            refusal = refusal_of(mode, first, True)
            self.assertEqual(refusal is None, is_served, (mode, first, refusal))

    def test_withoutCertificateTLSIsRefused(self) -> None:
        """Plain text is not."""
        self.assertEqual(
            refusal_of(PERMISSIVE, HANDSHAKE_RECORD, False),
            "it speaks TLS, and there is no certificate",
        )
        self.assertIsNone(refusal_of(PERMISSIVE, PREFACE, False))

    def test_addressesAreThoseOfTheirFamily(self) -> None:
        """A socket for both families names those of IPv4 in its own way."""
        self.assertEqual(peer_text(("1.2.3.4", 5)), "1.2.3.4:5")
        self.assertEqual(peer_text(("::ffff:1.2.3.4", 5, 0, 0)), "1.2.3.4:5")
        self.assertEqual(peer_text(("::1", 5, 0, 0)), "[::1]:5")


class KeepAliveTests(SynchronousTestCase):
    """L{keep_alive}."""

    def test_peerThatIsGoneIsNoticedInTwoMinutes(self) -> None:
        """The kernel's own times would be two hours and more."""
        with socket.socket() as sock:
            keep_alive(sock)
            self.assertEqual(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1)
            found = [
                sock.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                )
            ]
        idle, step, probes = found
        self.assertEqual(
            found, [KEEPALIVE_IDLE_SECONDS, KEEPALIVE_STEP_SECONDS, KEEPALIVE_PROBES]
        )
        self.assertLessEqual(idle + step * probes, 120)


class ListeningTests(SynchronousTestCase):
    """L{listening_socket}; the port is one that the kernel chooses."""

    def test_takenPortIsOneSentence(self) -> None:
        """It names the setting."""
        first = listening_socket("127.0.0.1", 0)
        self.addCleanup(first.close)
        port = first.getsockname()[1]
        problem = self.assertRaises(
            ConfigurationError, listening_socket, "127.0.0.1", port
        )
        self.assertEqual(
            str(problem),
            f"Cannot listen on 127.0.0.1:{port} (grpcServerPort): the port is in use.",
        )

    def test_otherPortsAreOneSentence(self) -> None:
        """There is no such number."""
        problem = self.assertRaises(ConfigurationError, listening_socket, "", 70000)
        self.assertEqual(
            str(problem),
            "Cannot listen on *:70000 (grpcServerPort): there is no such port.",
        )

    def test_allAddressesAreThoseOfBothFamilies(self) -> None:
        """Clients of IPv4 reach it."""
        listening = listening_socket("", 0)
        self.addCleanup(listening.close)
        address = "127.0.0.1", listening.getsockname()[1]
        socket.create_connection(address, 5).close()
