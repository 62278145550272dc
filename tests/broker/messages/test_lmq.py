"""Messages in LMQs, from the send to the pull."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import MessageIllegal, SystemFailure
from rocketbroker.records.batches import encode_part
from rocketbroker.records.record import decode_all
from rocketbroker.wire.command import Command
from tests.broker.rig import Rig, answered, pull_ext, send_ext
from tests.broker.transactions import COMMIT, ROLLBACK, ConnectionGroup

SETTINGS = {"enableLmq": "true", "enableMultiDispatch": "true"}


class LmqCase(SynchronousTestCase):
    """A broker with LMQs, and topic T."""

    def setUp(self) -> None:
        """No messages yet."""
        self.rig = self.make()

    def make(self, **settings: str) -> Rig:
        """A data path."""
        rig = Rig({**SETTINGS, **settings})
        self.addCleanup(rig.close)
        rig.topic("T", 2)
        return rig

    def ext(self, names: str, more: str = "", **ext: str) -> dict[str, str]:
        """The fields of a send that names queues."""
        text = f"UNIQ_KEY\x01U\x02INNER_MULTI_DISPATCH\x01{names}\x02{more}"
        return send_ext(properties=text, **ext)

    def send(self, names: str, body: bytes, more: str = "", **ext: str) -> Command:
        """Send a message; it is dispatched too."""
        answer = self.rig.ask(310, self.ext(names, more, **ext), body)
        self.rig.scheduler.dispatch()
        return answer

    def pull(self, topic: str, offset: int = 0, **more: str) -> list[bytes]:
        """The bodies that a pull brings."""
        ext = pull_ext(offset, topic=topic, consumerGroup="%LMQ%g", **more)
        answer = answered(self.rig.begin(11, ext))
        return [message.body for message in decode_all(answer.body)]


class SendTests(LmqCase):
    """What happens to a message that names LMQs."""

    def test_stored(self) -> None:
        """It is one record, which says where it stands in each; each gives it to who
        pulls from it."""
        self.send("%LMQ%a", b"1")
        self.send("%LMQ%b,%LMQ%a", b"2")
        (_, second) = self.rig.records()
        self.assertEqual(
            second.properties["INNER_MULTI_QUEUE_OFFSET"], "0,1", second.properties
        )
        self.assertEqual(second.topic, "T")
        self.assertEqual(self.pull("%LMQ%a"), [b"1", b"2"])
        self.assertEqual(self.pull("%LMQ%a", 1), [b"2"])
        self.assertEqual(self.pull("%LMQ%b"), [b"2"])
        self.assertEqual(self.pull("T"), [b"1", b"2"])

    def test_twice(self) -> None:
        """A queue that is named twice gets it once."""
        self.send("%LMQ%a,%LMQ%a", b"1")
        (stored,) = self.rig.records()
        self.assertEqual(stored.properties["INNER_MULTI_DISPATCH"], "%LMQ%a")
        self.assertEqual(stored.properties["INNER_MULTI_QUEUE_OFFSET"], "0")
        self.assertEqual(self.pull("%LMQ%a"), [b"1"])

    def test_names(self) -> None:
        """What is no LMQ is refused, and so are too many."""
        for names in ("a", "%LMQ%a,", "%LMQ%a,b", "%LMQ%a/b", "%LMQ%../a", "%LMQ%\0"):
            ext = self.ext(names)
            self.assertRaises(MessageIllegal, self.rig.begin, 310, ext, b"x")
        for count, refused in ((1024, False), (1025, True)):
            ext = self.ext(",".join(f"%LMQ%{number}" for number in range(count)))
            if refused:
                self.assertRaises(MessageIllegal, self.rig.begin, 310, ext, b"x")
            else:
                self.assertEqual(self.rig.ask(310, ext, b"x").code, 0)

    def test_itself(self) -> None:
        """A message that is sent to an LMQ cannot name the same one."""
        ext = self.ext("%LMQ%a", b="%LMQ%a")
        self.assertRaises(MessageIllegal, self.rig.begin, 310, ext, b"x")

    def test_most(self) -> None:
        """There are no more LMQs than maxLmqConsumeQueueNum, whoever names
        them."""
        self.rig = self.make(maxLmqConsumeQueueNum="2")
        self.send("%LMQ%a,%LMQ%b", b"1")
        ext = self.ext("%LMQ%c")
        error = self.assertRaises(SystemFailure, self.rig.begin, 310, ext, b"x")
        self.assertIn("[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]", error.remark)
        self.assertRaises(SystemFailure, self.pull, "%LMQ%d")
        self.send("%LMQ%a", b"2")
        self.assertEqual(self.pull("%LMQ%a"), [b"1", b"2"])

    def test_offsetsOfClients(self) -> None:
        """Only the broker says offsets: those of a client are dropped, and a batch
        with them is refused."""
        self.send("%LMQ%a", b"1", "INNER_MULTI_QUEUE_OFFSET\x0177\x02")
        (stored,) = self.rig.records()
        self.assertEqual(stored.properties["INNER_MULTI_QUEUE_OFFSET"], "0")
        own = b"INNER_MULTI_DISPATCH\x01%LMQ%a\x02INNER_MULTI_QUEUE_OFFSET\x015\x02"
        body = encode_part(0, b"x", own)
        ext = send_ext(m="true")
        self.assertRaises(MessageIllegal, self.rig.begin, 320, ext, body)
        self.assertFalse(self.rig.hot(320, ext, body))

    def test_exempt(self) -> None:
        """Messages of the system and those to be consumed again stand in their own
        queue alone."""
        self.rig.topic("%RETRY%G", 1)
        self.send("%LMQ%a", b"1", b="%RETRY%G")
        self.assertEqual(self.pull("%LMQ%a"), [])

    def test_off(self) -> None:
        """Without enableLmq the property is one like others, and the topics are not
        there; without enableMultiDispatch offsets are given, and nothing else."""
        self.rig = self.make(enableLmq="false")
        self.send("nonsense", b"1")
        self.assertEqual(len(self.rig.records()), 1)
        self.assertIsNone(self.rig.topics.config("%LMQ%a"))
        self.rig = self.make(enableMultiDispatch="false")
        self.send("%LMQ%a", b"1")
        (stored,) = self.rig.records()
        self.assertEqual(stored.properties["INNER_MULTI_QUEUE_OFFSET"], "0")
        self.assertEqual(self.pull("%LMQ%a"), [])

    def test_delayed(self) -> None:
        """One with a delay stands in LMQs when it is delivered."""
        self.rig.schedule.start()
        self.send("%LMQ%a", b"1", "DELAY\x011\x02")
        self.assertEqual(self.pull("%LMQ%a"), [])
        for _ in range(20):
            self.rig.clock.advance(0.1)
        self.rig.scheduler.dispatch()
        self.assertEqual(self.pull("%LMQ%a"), [b"1"])

    def test_transactional(self) -> None:
        """One of a transaction stands in LMQs when it is committed."""
        party = ConnectionGroup(self.rig)
        more = "INNER_MULTI_DISPATCH\x01%LMQ%a\x02"
        halves = [party.half(f"k{n}", b"%d" % n, more) for n in range(2)]
        self.assertEqual(self.pull("%LMQ%a"), [])
        self.assertEqual(party.end(halves[0], ROLLBACK), 0)
        self.assertEqual(party.end(halves[1], COMMIT), 0)
        self.rig.scheduler.dispatch()
        self.assertEqual(self.pull("%LMQ%a"), [b"1"])

    def test_held(self) -> None:
        """A pull that is held at an LMQ is woken."""
        ext = pull_ext(0, topic="%LMQ%a", consumerGroup="%LMQ%g", sysFlag="6")
        waiting = self.rig.begin(11, ext)
        self.send("%LMQ%a", b"1")
        (message,) = decode_all(answered(waiting).body)
        self.assertEqual(message.body, b"1")


class TopicTests(LmqCase):
    """Topics and groups that nobody has made."""

    def test_there(self) -> None:
        """They are there, with one queue, and are in no table."""
        config = self.rig.topics.config("%LMQ%a")
        assert config is not None
        self.assertEqual((config.read_queue_nums, config.perm), (1, 6))
        self.assertNotIn("%LMQ%a", self.rig.topics.names())
        self.assertIsNone(self.rig.topics.config("%LMQ%a/b"))
        self.assertIsNone(self.rig.topics.config("LMQ"))
        before = len(self.rig.groups.configs())
        self.assertIsNotNone(self.rig.groups.find("%LMQ%g"))
        self.assertIsNone(self.rig.groups.find("%LMQ%g/"))
        self.assertEqual(len(self.rig.groups.configs()), before)

    def test_sent(self) -> None:
        """One can be sent to."""
        answer = self.rig.ask(310, send_ext("%LMQ%a"), b"x")
        self.assertEqual(answer.code, 0)
        self.rig.scheduler.dispatch()
        self.assertEqual(self.pull("%LMQ%a"), [b"x"])
