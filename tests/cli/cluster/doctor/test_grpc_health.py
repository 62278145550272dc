"""The health check of gRPC without grpcio."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.doctor.grpc_health import (
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    REQUEST,
    RST_STREAM,
    Health,
    frame,
    health_of,
)
from rocketbroker.errors import ConnectionLost
from tests.cli.cluster.doctor.ports import FIRST, Ports, message


class HealthTests(SynchronousTestCase):
    """L{health_of}."""

    def found(self, *connections: list[bytes]) -> Health:
        """What is said of a port that answers so."""
        self.ports = Ports({"a:1": list(connections)})
        return health_of(self.ports, "a", 1, 5.0)

    def test_answersAreReadInOneAndInPieces(self) -> None:
        """The request is sent whole."""
        for data, wanted in (
            (message(1), Health.SERVES),
            (message(2), Health.SERVES_NOT),
            (message(0), Health.SERVES_NOT),
            (FIRST + frame(GOAWAY, 0, 0, bytes(8)), Health.SERVES_NOT),
            (
                FIRST + frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x88"),
                Health.NOT_TOLD,
            ),
            (FIRST + frame(RST_STREAM, 0, 1, bytes(4)), Health.NOT_TOLD),
        ):
            pieces = [data[at : at + 1] for at in range(len(data))]
            for form in ([data], pieces):
                self.assertEqual(self.found(list(form)), wanted, data)
                self.assertEqual(self.ports.sent, [REQUEST])

    def test_othersAreNotTakenForProxies(self) -> None:
        """What speaks something else, ends in the middle, or sends too much."""
        for pieces in (
            [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
            [b"SSH", b""],
            [FIRST, b""],
            [FIRST + b"\xff" * 9],
        ):
            self.assertEqual(self.found(pieces), Health.OTHER, pieces)

    def test_silenceEndsInTime(self) -> None:
        """Also after the first frame."""
        for pieces in ([], [FIRST]):
            self.assertEqual(self.found(pieces), Health.SILENT)
            self.assertEqual(self.ports.monotonic(), 1005.0)

    def test_closedPlainTextIsTriedByTLS(self) -> None:
        """By the first record of a handshake."""
        for second, wanted in (
            ([b"\x16\x03\x03"], Health.TLS_ONLY),
            ([b""], Health.CLOSED),
        ):
            self.assertEqual(self.found([b""], second), wanted)
            self.assertEqual(self.ports.sent[1][0], 0x16)

    def test_nobodyIsAnError(self) -> None:
        """It names the address."""
        problem = self.assertRaises(ConnectionLost, self.found)
        self.assertIn("a:1", str(problem))
