"""What C{rocketbroker doctor} says of access, and of certificates."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.doctor.access_checks import judged, of_access
from rocketbroker.cli.cluster.doctor.certificates import Certificate
from rocketbroker.errors import ConnectionLost
from rocketbroker.testing.scripted import ScriptedMachine, answer
from rocketbroker.wire.command import Command

DAY_MS = 24 * 3_600_000

#: What a name server knows.
INFO = (
    b'{"brokerAddrTable":{"b":{"brokerAddrs":{0:"%s"},"brokerName":"b","cluster":"C"}},'
    b'"clusterAddrTable":{"C":["b"]}}'
)


def closed(command: Command) -> Command:
    """A server that speaks only TLS."""
    raise ConnectionLost("closed")


class OpenTests(SynchronousTestCase):
    """L{of_access}, without TLS: the scripted machine has none."""

    def found(self, broker: Any, host: str = "10.0.0.1") -> list[tuple[str, str]]:
        """Status and beginning of what is found.

        @param broker: what it does with a request.
        """
        address = f"{host}:10911"
        body = INFO % address.encode()
        machine = ScriptedMachine(
            {f"{host}:9876": lambda _: answer(body=body), address: broker}
        )
        with Client(Settings(f"{host}:9876", machine=machine, attempts=1)) as client:
            findings = [*of_access(Cluster(client))]
        self.assertEqual({each.what for each in findings}, {"access"})
        return [(each.status, each.words.partition(": ")[0]) for each in findings]

    def test_open(self) -> None:
        """Whoever is asked answers: a warning for all of them, by their names."""
        names = "name server 10.0.0.1:9876"
        wanted = [
            ("warning", f"{names}, b 10.0.0.1:10911"),
            ("warning", "b 10.0.0.1:10911"),
        ]
        self.assertEqual(self.found(lambda _: answer()), wanted)

    def test_controlled(self) -> None:
        """A refusal shows that there is access control, and no TLS."""
        for code in (1, 16):
            found = self.found(lambda _, code=code: answer(code))
            self.assertEqual([status for status, _ in found], ["warning"])

    def test_closed(self) -> None:
        """Only the name server is named."""
        wanted = [("warning", "name server 10.0.0.1:9876")]
        self.assertEqual(self.found(closed), wanted)

    def test_ownMachine(self) -> None:
        """What nobody else reaches is in order."""
        found = self.found(lambda _: answer(), "127.0.0.1")
        self.assertEqual([status for status, _ in found], ["ok", "ok"])

    def test_askedWithoutKeys(self) -> None:
        """Our own say nothing about strangers."""
        asked: list[Command] = []

        def broker(command: Command) -> Command:
            asked.append(command)
            return answer()

        self.found(broker)
        self.assertTrue(asked)
        self.assertFalse(any("AccessKey" in (each.ext or {}) for each in asked))


class JudgedTests(SynchronousTestCase):
    """L{judged}."""

    def status(
        self,
        days: int,
        is_own: bool,
        is_checked: bool = False,
        is_wanted: bool = True,
    ) -> str | None:
        """What is found of a certificate that ends in so many days."""
        certificate = Certificate(is_own, days * DAY_MS)
        found = [*judged("b", certificate, 0, is_checked, is_wanted)]
        self.words = found[0].words if found else ""
        return found[0].status if found else None

    def test_time(self) -> None:
        """Expired ones are a problem, and soon there will be one."""
        self.assertEqual(self.status(-2, False), "problem")
        self.assertIn("has expired 2 d ago", self.words)
        self.assertEqual(self.status(-2, True, is_wanted=False), "problem")
        self.assertEqual(self.status(30, False, is_checked=True), "warning")
        self.assertIn("expires in 30 d", self.words)
        self.assertEqual(self.status(31, False), "ok")
        self.assertIn("valid until 1970-02-01", self.words)

    def test_own(self) -> None:
        """One that nobody has signed is a warning where it is used and not checked."""
        self.assertEqual(self.status(99, True), "warning")
        self.assertIn("nobody has signed", self.words)
        self.assertEqual(self.status(99, True, is_checked=True), "ok")
        self.assertIsNone(self.status(99, True, is_wanted=False))
