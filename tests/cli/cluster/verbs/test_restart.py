"""Verbs that go on while a broker, or the name server, is restarted."""

from __future__ import annotations

from collections.abc import Callable

from rocketbroker.testing.scripted import answer
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.routes import ClusterInfo
from tests.blocking.cluster import hang_up
from tests.cli.cluster.cluster import BROKER, NAME_SERVER, VerbCase

#: After this long the user interrupts, or what was waited for comes.
END = 40.0


class RestartTests(VerbCase):
    """Topic T with one message; a server is away from the 5th to the 30th second."""

    def setUp(self) -> None:
        super().setUp()
        self.cluster.topic("T", 1)
        self.cluster.group("G")
        self.call("message", "send", "T", "one")
        self.machine = self.cluster.machine
        self.begun = self.machine.now

    def steps(self, *steps: tuple[float, Callable[[], None]]) -> None:
        """Do things so many seconds after the beginning."""
        left = [*steps]

        def meanwhile() -> None:
            while left and self.machine.now - self.begun >= left[0][0]:
                left.pop(0)[1]()

        self.machine.meanwhile = meanwhile

    def interrupt(self) -> None:
        """The user has seen enough."""
        raise KeyboardInterrupt

    def stop(self, address: str) -> None:
        """A server is stopped."""
        self.stopped = self.machine.servers[address]
        self.machine.servers[address] = hang_up

    def append(self) -> None:
        """A message comes."""
        self.cluster.rig.append(b"after")

    def unregister(self) -> None:
        """The name server forgets the broker and its topics."""
        self.cluster.faults[106] = lambda _: answer(body=fastjson.dumps(ClusterInfo()))
        self.cluster.faults[105] = lambda _: answer(17, remark="No topic route info")

    def start(self, address: str) -> None:
        """A server is back."""
        self.cluster.faults.clear()
        self.machine.servers[address] = self.stopped

    def restart_broker(self, end: Callable[[], None]) -> None:
        """The broker stops, leaves the name server, and is back."""
        self.steps(
            (5, lambda: self.stop(BROKER)),
            (12, self.unregister),
            (30, lambda: self.start(BROKER)),
            (END, end),
        )

    def test_watchedPagesLiveThroughIt(self) -> None:
        """Each is shown before and after; between, it is said since when."""
        for words in (
            ("topic", "show", "T", "--watch"),
            ("group", "show", "G", "--watch"),
            ("cluster", "ls", "--watch"),
            ("broker", "status", "broker-a", "--watch"),
            ("consumer", "ls", "--watch"),
            ("top",),
        ):
            self.begun = self.machine.now
            self.restart_broker(self.interrupt)
            result = self.call(*words, status=1)
            lines = result.stderr.splitlines()
            self.assertIn(": broker-a does not answer: ", lines[0], (words, lines))
            self.assertTrue(lines[0].startswith("rocketbroker: since 20"), lines)
            again = "rocketbroker: broker-a answers again, after 2"
            self.assertTrue(lines[1].startswith(again), (words, lines))
            self.assertEqual(lines[2:], ["", "Aborted!"], words)
            if words[0] != "consumer":
                pages = result.stdout.count("broker-a")
                self.assertGreater(pages, 5, words)

    def test_nameServerIsRestarted(self) -> None:
        """It is told, and asked again."""
        self.steps(
            (5, lambda: self.stop(NAME_SERVER)),
            (30, lambda: self.start(NAME_SERVER)),
            (END, self.interrupt),
        )
        result = self.call("topic", "show", "T", "--watch", status=1)
        first, second, *_ = result.stderr.splitlines()
        self.assertIn(f"the connection to {NAME_SERVER} is gone", first)
        self.assertIn("it works again, after 2", second)

    def test_absentAtFirst(self) -> None:
        """What was never there is 3, and not waited for."""
        self.call("topic", "show", "X", "--watch", status=3)

    def test_followGoesOn(self) -> None:
        """A message that comes after the restart is received, and nothing twice."""
        alone = ("--follow", "-g", "G", "--queue", "broker-a:0")
        for words in (("--follow",), ("--wait", "60"), alone):
            self.begun = self.machine.now
            count = self.cluster.rig.store.queue("T", 0).max_offset + 1
            self.restart_broker(self.append)
            result = self.call(
                "message", "receive", "T", "-c", f"{count}", "-F", r"%o ", *words
            )
            self.assertEqual(result.stdout, "".join(f"{n} " for n in range(count)))
            first, second = result.stderr.splitlines()
            self.assertIn(": broker-a does not answer: ", first)
            self.assertIn("it works again, after 2", second)

    def test_waitIsOver(self) -> None:
        """A broker that is away at the end of --wait is an error."""
        self.steps((5, lambda: self.stop(BROKER)))
        words = ("message", "receive", "T", "--wait", "10")
        result = self.call(*words, status=1)
        self.assertEqual(result.stdout, "one\n")
        self.assertIn("broker-a does not answer", result.stderr.splitlines()[-1])
