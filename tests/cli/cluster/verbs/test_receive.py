"""C{rocketbroker message receive}."""

from __future__ import annotations

import json

from rocketbroker.wire.command import Command
from tests.cli.cluster.cluster import VerbCase

#: A group that reads given queues, and is no member.
ALONE = ("--queue", "broker-a:0", "--queue", "broker-a:1", "-g")


class ReceiveTests(VerbCase):
    """Messages a to e in the two queues of topic T."""

    def setUp(self) -> None:
        """Send them, a minute apart."""
        super().setUp()
        self.cluster.topic("T", 2)
        for number, body in enumerate("abcde"):
            queue = ("--queue", f"broker-a:{number % 2}")
            tag = ("--tag", "odd" if number % 2 else "even")
            self.call("message", "send", "T", body, *queue, *tag)
            self.cluster.rig.clock.advance(60)

    def receive(self, *words: str, status: int = 0) -> str:
        """What is written, line by line, sorted."""
        result = self.call("message", "receive", "T", *words, status=status)
        return "".join(sorted(result.stdout.split()))

    def test_all(self) -> None:
        """All that is there now; nothing is committed."""
        self.assertEqual(self.receive(), "abcde")
        self.assertEqual(self.receive(), "abcde")
        self.assertNotIn(15, self.cluster.machine.codes())

    def test_where(self) -> None:
        """From the end, from a time, of one queue, with a tag, so many."""
        self.assertEqual(self.receive("--from", "latest"), "")
        self.assertEqual(self.receive("--from", "1700000100000"), "cde")
        self.assertEqual(self.receive("--queue", "broker-a:1"), "bd")
        self.assertEqual(self.receive("--tag", "odd"), "bd")
        self.assertEqual(len(self.receive("-c", "3")), 3)

    def test_tooFew(self) -> None:
        """Fewer than --count is 3."""
        self.assertEqual(self.receive("-c", "6", status=3), "abcde")

    def test_group(self) -> None:
        """A group goes on where it is; what is not written is not committed."""
        first = self.receive(*ALONE, "G", "-c", "3")
        self.assertEqual(len(first), 3)
        second = self.receive(*ALONE, "G", "-c", "1")
        rest = self.receive(*ALONE, "G")
        self.assertEqual("".join(sorted(first + second + rest)), "abcde")
        self.assertEqual(self.receive(*ALONE, "G"), "")
        self.assertEqual(self.receive(*ALONE, "H", "--from", "latest"), "")
        self.call("message", "receive", "T", "-g", "a b", status=2)
        self.call("message", "receive", "T", "-g", "G", "--from", "1h", status=2)

    def test_middle(self) -> None:
        """A group that has enough in the middle of a queue goes on there."""
        self.assertEqual(self.receive(*ALONE, "G", "-c", "1"), "a")
        self.assertEqual(self.receive(*ALONE, "G", "-c", "1"), "c")

    def test_unwanted(self) -> None:
        """What a group does not want is behind it, too."""
        self.assertEqual(self.receive(*ALONE, "G", "--tag", "odd"), "bd")
        self.assertEqual(self.receive(*ALONE, "G"), "")

    def test_end(self) -> None:
        """What comes while it reads is not read."""

        def send(command: Command) -> None:
            if self.cluster.rig.store.queue("T", 0).max_offset == 3:
                self.cluster.rig.append(b"f")
                self.cluster.rig.scheduler.dispatch()

        self.cluster.faults[11] = send
        self.assertEqual(self.receive(), "abcde")
        self.assertEqual(self.receive(), "abcdef")

    def test_wait(self) -> None:
        """It ends when nothing has come for so long."""
        before = self.cluster.machine.now
        self.assertEqual(self.receive("--wait", "3"), "abcde")
        waited = self.cluster.machine.now - before
        self.assertTrue(3 <= waited < 3.2, waited)

    def test_follow(self) -> None:
        """It waits for more at the end, until there are enough."""
        machine, rig = self.cluster.machine, self.cluster.rig

        def send() -> None:
            if machine.now > 1005 and rig.store.queue("T", 0).max_offset == 3:
                rig.append(b"f")

        machine.meanwhile = send
        self.assertEqual(self.receive("--follow", "-c", "6"), "abcdef")

    def test_queuesThatComeLaterAreRead(self) -> None:
        """By whoever waits, unless told which queues."""
        machine, rig = self.cluster.machine, self.cluster.rig

        def grow() -> None:
            if machine.now > 1005 and rig.store.queue("T", 2).max_offset == 0:
                self.cluster.topic("T", 3)
                rig.append(b"f", queue_id=2)

        machine.meanwhile = grow
        self.assertEqual(self.receive("--follow", "-c", "6"), "abcdef")

    def test_topicIsWaitedFor(self) -> None:
        """By whoever waits for messages; for so long if it is said."""
        machine = self.cluster.machine
        call = ("message", "receive", "U", "--wait", "5")
        before = machine.now
        self.call(*call, status=3)
        self.assertGreaterEqual(machine.now - before, 5.0)
        created: list[bool] = []

        def create() -> None:
            if machine.now > before + 8 and not created:
                created.append(True)
                self.cluster.topic("U", 1)

        machine.meanwhile = create
        result = self.call(*call)
        told = "rocketbroker: There is no topic U yet; it is waited for.\n"
        self.assertEqual(result.stderr, told)

    def test_formats(self) -> None:
        """Lines of JSON, or a format of one's own."""
        result = self.call("message", "receive", "T", "-o", "jsonl", "--tag", "odd")
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([row["body"] for row in rows], ["b", "d"])
        self.assertEqual((rows[0]["broker"], rows[0]["queue"]), ("broker-a", 1))
        words = (
            "-F",
            r"%t/%b/%p/%o/%T/%g/%S/%h/%k%%\t%s\n\x",
            "--queue",
            "broker-a:1",
            "-c",
            "1",
        )
        result = self.call("message", "receive", "T", *words)
        wanted = "T/broker-a/1/0/1700000060000/odd/1//%\tb\n\\x"
        self.assertEqual(result.stdout, wanted)
        self.call("message", "receive", "T", "-F", "%z", status=1)

    def test_again(self) -> None:
        """What was received can be sent again."""
        words = ("message", "receive", "T", "-o", "jsonl")
        text = self.call(*words).stdout
        self.cluster.topic("U", 1)
        self.call("message", "send", "U", "-i", "jsonl", stdin=text)
        found = [(m.body, m.tags) for m in self.cluster.rig.records(0, "U")]
        self.assertEqual(sorted(found)[:2], [(b"a", "even"), (b"b", "odd")])

    def test_notThere(self) -> None:
        """No topic is 3."""
        self.call("message", "receive", "X", status=3)
