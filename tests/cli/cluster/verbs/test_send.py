"""C{rocketbroker message send}."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.verbs.send import _pieces
from rocketbroker.records.record import StoredMessage
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.command import Command
from tests.cli.cluster.cluster import BROKER, VerbCase, refusal


class Terminal(io.BytesIO):
    """An input that somebody types."""

    def isatty(self) -> bool:
        """It is one."""
        return True


class SlowPipe(io.BytesIO):
    """An input that comes in pieces.

    @ivar between: called before each but the first.
    """

    def __init__(
        self, *pieces: bytes, between: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__()
        self.pieces = list(pieces)
        self._between = between
        self._is_first = True

    def read1(self, size: int | None = -1) -> bytes:
        """The next piece."""
        if not self.pieces:
            return b""
        if not self._is_first:
            self._between()
        self._is_first = False
        return self.pieces.pop(0)


class SendTests(VerbCase):
    """To topic T of one queue."""

    def setUp(self) -> None:
        """Make it."""
        super().setUp()
        self.cluster.topic("T", 1)

    def stored(self) -> list[StoredMessage]:
        """What the broker has."""
        return self.cluster.rig.records()

    def bodies(self) -> list[bytes]:
        """Their bodies."""
        return [message.body for message in self.stored()]

    def test_one(self) -> None:
        """A body with all that belongs to it; where it went is shown."""
        options = (
            "--tag A -k k1 -k k2 -p a=b=c --sharding-key s --delay-level 0".split()
        )
        (row,) = self.kind("sent", "message", "send", "T", "hällo", *options)
        (message,) = self.stored()
        self.assertEqual((message.body.decode(), message.tags), ("hällo", "A"))
        self.assertEqual((message.keys, message.properties["a"]), (["k1", "k2"], "b=c"))
        self.assertEqual(message.properties["__SHARDINGKEY"], "s")
        self.assertEqual(row["id"], message.unique_key)
        self.assertEqual(
            (row["broker"], row["queue"], row["offset"]), ("broker-a", 0, 0)
        )
        self.assertEqual(row["outcome"], "stored")

    def test_delay(self) -> None:
        """A delay level."""
        self.call("message", "send", "T", "x", "--delay-level", "3")
        self.assertEqual(self.stored(), [])
        (message,) = self.cluster.rig.records(2, "SCHEDULE_TOPIC_XXXX")
        self.assertEqual(message.body, b"x")

    def test_timers(self) -> None:
        """A delay, or a time: the broker has a timer for each."""
        now = self.cluster.machine.wall_ms()
        for words, name, value in (
            (("--delay", "90s"), "TIMER_DELAY_MS", "90000"),
            (("--at", str(now + 60_000)), "TIMER_DELIVER_MS", str(now + 60_000)),
        ):
            seen: list[Command] = []
            self.cluster.faults[310] = seen.append
            self.call("message", "send", "T", "x", *words)
            ext = seen[0].ext or {}
            self.assertIn(f"{name}\x01{value}", ext["i"])
        self.assertEqual(self.stored(), [])

    def test_timerOfABatch(self) -> None:
        """A delayed message is in no batch."""
        words = ("--batch", "--delay", "90s", "--ids", "-o", "jsonl")
        result = self.call("message", "send", "T", *words, stdin="a\nb\n")
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.assertEqual(self.stored(), [])

    def test_localTimeIsTold(self) -> None:
        """A time without a zone is local, and that is said."""
        result = self.call(
            "message", "send", "T", "x", "--at", "2024-01-01T00:00", status=1
        )
        told = "--at 2024-01-01T00:00 is 2024-01-01 00:00:00.000+"
        self.assertIn(told, result.stderr)

    def test_oneTime(self) -> None:
        """One of the three; none that is past."""
        for words in (
            ("--delay", "1s", "--at", "now"),
            ("--delay", "1s", "--delay-level", "1"),
            ("--at", "2h"),
        ):
            self.call("message", "send", "T", "x", *words, status=2)
        self.call("message", "send", "T", "x", "--delay", "soon", status=1)

    def test_terminalIsTold(self) -> None:
        """Who forgets the body reads what is waited for."""
        result = self.call("message", "send", "T", stdin=Terminal(b"a\n"))
        wanted = "Reads lines from the terminal, each a message; Ctrl-D ends it."
        self.assertEqual(result.stderr.splitlines(), [wanted, "1 message sent to T"])
        result = self.call("message", "send", "T", stdin=b"a\n")
        self.assertEqual(result.stderr, "1 message sent to T\n")

    def test_lines(self) -> None:
        """A message for each line, but empty ones; the count goes to standard error."""
        result = self.call("message", "send", "T", stdin=b"a\nb\r\n\n\xff c")
        self.assertEqual(self.bodies(), [b"a", b"b", b"\xff c"])
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, "3 messages sent to T, 1 empty line left out\n")

    def test_ids(self) -> None:
        """Each can be shown."""
        call = ("message", "send", "T", "--ids", "-o", "jsonl")
        rows = [
            json.loads(x) for x in self.call(*call, stdin="a\nb\n").stdout.splitlines()
        ]
        self.assertEqual([row["offset"] for row in rows], [0, 1])

    def test_batch(self) -> None:
        """Several in one request; each has its id and offset."""
        call = ("message", "send", "T", "--batch", "--ids", "-o", "jsonl")
        out = self.call(*call, stdin="a\nb\nc\n").stdout
        rows = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([row["offset"] for row in rows], [0, 1, 2])
        keys = [message.unique_key for message in self.stored()]
        self.assertEqual([row["id"] for row in rows], keys)
        self.assertEqual(self.bodies(), [b"a", b"b", b"c"])
        self.assertEqual(self.cluster.machine.codes("10.0.0.1:10911"), [320])

    def test_whole(self) -> None:
        """All of the input is one message."""
        self.call("message", "send", "T", "-i", "whole", stdin=b"a\nb\n")
        self.assertEqual(self.bodies(), [b"a\nb\n"])

    def test_keys(self) -> None:
        """A line may begin with a key."""
        self.call("message", "send", "T", "-K", "::", stdin=b"k1::a\nb\n")
        found = [(message.keys, message.body) for message in self.stored()]
        self.assertEqual(found, [(["k1"], b"a"), ([], b"b")])

    def test_json(self) -> None:
        """Lines of JSON; the command line counts more."""
        lines = [
            {
                "body": "ä",
                "tag": "A",
                "keys": ["k"],
                "properties": {"p": "1", "q": "1"},
            },
            {"body_base64": "/w=="},
        ]
        stdin = "".join(json.dumps(line) + "\n" for line in lines)
        self.call("message", "send", "T", "-i", "jsonl", "-p", "p=2", stdin=stdin)
        first, second = self.stored()
        self.assertEqual(
            (first.body.decode(), first.tags, first.keys), ("ä", "A", ["k"])
        )
        self.assertEqual((first.properties["p"], first.properties["q"]), ("2", "1"))
        self.assertEqual(second.body, b"\xff")

    def test_badJson(self) -> None:
        """A line that is none stops; those before it are sent and counted."""
        for line in ("x", "[]", "{}", '{"body": 5}', '{"body_base64": "?"}'):
            stdin = '{"body": "a"}\n' + line
            result = self.call(
                "message", "send", "T", "-i", "jsonl", stdin=stdin, status=1
            )
            self.assertIn("a line of JSON needs", result.stderr)

    def test_queue(self) -> None:
        """To one queue."""
        self.cluster.topic("U", 4)
        words = ("message", "send", "U", "--queue", "broker-a:3")
        self.call(*words, stdin="a\nb\n")
        self.assertEqual(len(self.cluster.rig.records(3, "U")), 2)
        self.call("message", "send", "U", "x", "--queue", "3", status=1)
        unknown = ("message", "send", "X", "x", "--queue", "broker-a:0")
        self.assertIn("There is no topic X.", self.call(*unknown, status=3).stderr)

    def test_refused(self) -> None:
        """A refusal says how many were sent before; no topic is 3."""
        result = self.call("message", "send", "X", "x", status=3)
        self.assertIn("X", result.stderr)
        self.call("message", "send", "T", "x", "-p", "novalue", status=2)
        self.call("message", "send", "T", "", status=1)
        self.cluster.faults[310] = refusal(16, "the broker's sending is forbidden")
        result = self.call("message", "send", "T", stdin="a\n", status=1)
        self.assertIn("After 0 messages: the broker's sending", result.stderr)

    def test_restartBetweenTwoLinesIsRiddenOver(self) -> None:
        """Servers that were never there are not waited for."""
        machine, servers = self.cluster.machine, {**self.cluster.machine.servers}
        before = machine.now

        def restart() -> None:
            if machine.now >= before + 60:
                machine.servers.update(servers)

        def stop() -> None:
            machine.servers.clear()
            machine.meanwhile = restart
            for stream in machine.streams:
                stream.hung_up = True

        pipe = SlowPipe(b"a\n", b"b\n", between=stop)
        result = self.call("message", "send", "T", stdin=pipe)
        self.assertEqual(self.bodies(), [b"a", b"b"])
        self.assertEqual(result.stderr.splitlines()[-1], "2 messages sent to T")
        stop()
        machine.meanwhile = lambda: None
        before = machine.now
        self.call("message", "send", "T", stdin=b"a\n", status=1)
        self.assertLess(machine.now - before, 2.0)

    def test_brokersThatAreAwayAreNamedAtOnce(self) -> None:
        """In one sentence; nobody waits for those that were never there."""
        self.cluster.with_broker_away()
        del self.cluster.machine.servers[BROKER]
        before = self.cluster.machine.now
        for words, begin in (
            (("x",), ""),
            ((), "After 0 messages: "),
            (("--batch",), "After 0 messages: "),
        ):
            result = self.call("message", "send", "T", *words, stdin="a\n", status=1)
            (line,) = result.stderr.splitlines()
            wanted = f"rocketbroker: {begin}broker-[ab] does not answer: cannot connect"
            self.assertRegex(line, wanted)
        self.assertLess(self.cluster.machine.now - before, 3.0)

    def test_firstMessageGoesToABrokerThatIsThere(self) -> None:
        """Another one of the topic's is away."""
        self.cluster.with_broker_away()
        for _ in range(2):
            self.call("message", "send", "T", "x")
        self.assertEqual(self.bodies(), [b"x", b"x"])

    def test_errorSaysHowManyAreStoredBeforeIt(self) -> None:
        """Though others were under way."""
        seen: list[Command] = []

        def third(command: Command) -> Command | None:
            seen.append(command)
            return answer(13, remark="no") if len(seen) == 3 else None

        self.cluster.faults[310] = third
        result = self.call("message", "send", "T", stdin="a\nb\nc\nd\n", status=1)
        self.assertIn("After 2 messages: no", result.stderr)
        self.assertEqual(self.bodies()[:2], [b"a", b"b"])

    def test_errorSaysHowManyOfBatchesAreStored(self) -> None:
        """Each request is counted when it is answered."""
        ext = {"msgId": "a,b", "queueId": "0", "queueOffset": "0"}
        answers = [answer(0, ext), answer(13, remark="no")]
        self.cluster.faults[320] = lambda _: answers.pop(0)
        lines = "\n".join(100_000 * letter for letter in "abcde")
        result = self.call("message", "send", "T", "--batch", stdin=lines, status=1)
        self.assertIn("After 2 messages: no", result.stderr)

    def test_linesBeforeABadOneAreSent(self) -> None:
        """And counted."""
        lines = '{"body": "a"}\n' * 3 + "x"
        for words in ((), ("--batch",)):
            call = ("message", "send", "T", "-i", "jsonl", *words)
            result = self.call(*call, stdin=lines, status=1)
            self.assertIn("After 3 messages: a line of JSON", result.stderr)
        self.assertEqual(self.bodies(), [b"a"] * 6)

    def test_shardingKeyChoosesTheQueue(self) -> None:
        """The same one for all lines, in which they keep their order."""
        self.cluster.topic("U", 4)
        lines = [f"{number}".encode() for number in range(200)]
        words = ("message", "send", "U", "--sharding-key", "s")
        self.call(*words, stdin=b"\n".join(lines))
        found = [self.cluster.rig.records(number, "U") for number in range(4)]
        (messages,) = filter(None, found)
        self.assertEqual([message.body for message in messages], lines)

    def test_notSafe(self) -> None:
        """A message that is stored, but not as safely as it should be, is told."""
        original = self.cluster.machine.servers["10.0.0.1:10911"]

        def late(command: Command) -> Sequence[Command]:
            answers = original(command)
            found = [answers] if isinstance(answers, Command) else [*(answers or ())]
            for each in found if command.code == 310 else ():
                each.code = 10
            return found

        self.cluster.machine.servers["10.0.0.1:10911"] = late
        (row,) = self.kind("sent", "message", "send", "T", "x")
        self.assertEqual(row["outcome"], "stored, but FLUSH_DISK_TIMEOUT")


class PiecesTests(SynchronousTestCase):
    """Lines of a pipe."""

    def test_asTheyCome(self) -> None:
        """What has come is given at once; a line may come in several pieces."""
        pipe = SlowPipe(b"a\nb\nc", b"c", b"c\n", b"d")
        self.assertEqual(list(_pieces(pipe)), [[b"a", b"b"], [b"ccc"], [b"d"]])
