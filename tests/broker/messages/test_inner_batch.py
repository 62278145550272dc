"""Batches that stay one, from the send to the pull."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import MessageIllegal
from rocketbroker.records.batches import encode_part, unwrap
from rocketbroker.records.record import decode_all
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.command import Command
from tests.broker.rig import (
    HOST_TEXT,
    UNIQUE,
    Rig,
    answered,
    fields_for,
    pull_ext,
    send_ext,
)
from tests.broker.transactions import COMMIT, ROLLBACK, ConnectionGroup


class InnerBatchTests(SynchronousTestCase):
    """Sends to a topic with batch queues, and pulls from it."""

    def setUp(self) -> None:
        """The topic."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})

    def send(self, *bodies: bytes, **ext: str) -> Command:
        """Send a batch."""
        body = b"".join(
            encode_part(7, each, b"UNIQ_KEY\x01%b\x02TAGS\x01A\x02" % each)
            for each in bodies
        )
        return self.rig.ask(320, send_ext("B", **{"m": "true", **ext}), body)

    def pull(self, offset: int) -> Command:
        """Pull from the queue."""
        return self.rig.ask(11, pull_ext(offset, topic="B"))

    def test_send(self) -> None:
        """A batch becomes one record, with the bits that tell the consumer; the answer
        has its place and its id."""
        self.send(b"x")
        answer = self.send(b"a", b"b", b"c")
        self.assertEqual(answer.code, 0)
        (_, stored) = self.rig.records(topic="B")
        assert answer.ext is not None
        self.assertEqual(answer.ext["msgId"], f"{HOST_TEXT}{stored.position:016X}")
        self.assertEqual(answer.ext["queueOffset"], "1")
        self.assertEqual(answer.ext["batchUniqId"], UNIQUE)
        self.assertEqual(answer.ext["transactionId"], UNIQUE)
        self.assertEqual(stored.sys_flag, 0xC0)
        for name, value in (
            ("INNER_NUM", "3"),
            ("INNER_BASE", "1"),
            ("CLUSTER", "cluster-a"),
            ("UNIQ_KEY", UNIQUE),
        ):
            self.assertEqual(stored.properties[name], value)
        (counts,) = self.rig.sending.counters()
        self.assertEqual(counts.messages, 4)

    def test_withoutKey(self) -> None:
        """A batch without a unique key, as clients of 4.9 send them, becomes single
        messages, which their consumers understand."""
        self.send(b"x")
        answer = self.send(b"a", b"b", properties="WAIT\x01true\x02")
        (_, *stored) = self.rig.records(topic="B")
        assert answer.ext is not None
        ids = [f"{HOST_TEXT}{message.position:016X}" for message in stored]
        self.assertEqual(answer.ext["msgId"], ",".join(ids))
        self.assertEqual(answer.ext["queueOffset"], "1")
        self.assertNotIn("batchUniqId", answer.ext)
        self.assertNotIn("transactionId", answer.ext)
        self.assertEqual(
            [(m.queue_offset, m.sys_flag, m.unique_key, m.body) for m in stored],
            [(1, 0, "a", b"a"), (2, 0, "b", b"b")],
        )

    def test_most(self) -> None:
        """The number of messages has 16 bits; a batch of more is refused."""
        rig = Rig({"mappedFileSizeCommitLog": str(1 << 20)})
        self.addCleanup(rig.close)
        rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        body = encode_part(0, b"", b"") * 32768
        ext = send_ext("B", m="true")
        answers = [rig.begin(320, ext, batch) for batch in (body, body[22:])]
        rig.clock.advance(0)
        self.assertRaises(MessageIllegal, answered, answers[0])
        self.assertEqual(answered(answers[1]).code, 0)

    def test_ordinaryTopic(self) -> None:
        """Batches to other topics have no id of their own."""
        self.rig.topic("T", 1)
        answer = self.send(b"a", b="T")
        self.assertNotIn("batchUniqId", answer.ext or {})

    def test_pull(self) -> None:
        """A pull brings whole batches, and goes on behind the last message of the last
        one."""
        self.send(b"a", b"b", b"c")
        self.send(b"d")
        answer = self.pull(1)
        assert answer.ext is not None
        self.assertEqual(answer.code, 0)
        found = [
            (part.queue_offset, part.body, part.tags, part.flag)
            for message in decode_all(answer.body)
            for part in unwrap(message)
        ]
        self.assertEqual(found, [(n, b"abcd"[n : n + 1], "A", 7) for n in range(4)])
        self.assertEqual(answer.ext["nextBeginOffset"], "4")
        self.assertEqual(answer.ext["maxOffset"], "4")

    def test_held(self) -> None:
        """A pull that waits is woken by a batch."""
        waiting = self.rig.begin(11, pull_ext(0, topic="B", sysFlag="6"))
        self.send(b"a", b"b")
        self.rig.scheduler.dispatch()
        answer = answered(waiting)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "2")


class SinglesTests(SynchronousTestCase):
    """Messages that are no batch, sent to a topic with batch queues."""

    def setUp(self) -> None:
        """The topic."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        self.rig.schedule.start()

    def send(self, code: int, key: str, more: str = "", **ext: str) -> Command:
        """Send one whose body is its key."""
        text = f"UNIQ_KEY\x01{key}\x02{more}"
        header = fields_for(code, send_ext("B", properties=text, **ext))
        answer = self.rig.ask(code, header, key.encode())
        self.assertEqual(answer.code, 0, answer.remark)
        return answer

    def pass_by(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(10 * seconds):
            self.rig.clock.advance(0.1)

    def stored(self) -> list[tuple[int, bytes]]:
        """Offset and body of what a pull brings when all is dispatched."""
        while self.rig.store.dispatched_position < self.rig.store.published_position:
            self.rig.scheduler.dispatch()
        answer = self.rig.ask(11, pull_ext(0, topic="B"))
        return [(m.queue_offset, m.body) for m in decode_all(answer.body)]

    def test_sent(self) -> None:
        """They take the next offset, whichever request brings them, and the answer
        says it."""
        self.rig.ask(320, send_ext("B", m="true"), encode_part(0, b"x", b"") * 2)
        for number, code in enumerate((10, 310, 310), 2):
            answer = self.send(code, f"k{number}")
            ext = answer.ext or {}
            self.assertEqual(ext["queueOffset"], str(number))
            self.assertEqual(ext["transactionId"], f"k{number}")
            self.assertNotIn("batchUniqId", ext)
        (_, *found) = self.stored()
        self.assertEqual(found, [(2, b"k2"), (3, b"k3"), (4, b"k4")])
        self.assertEqual(self.rig.sending.hot_sends, 0)

    def test_compressed(self) -> None:
        """A compressed message stays what it is."""
        self.send(310, "packed", f="257")
        (message,) = self.rig.records(topic="B")
        self.assertEqual((message.sys_flag, message.body), (0x101, b"packed"))

    def test_delayed(self) -> None:
        """They may wait, and stand in their queue when they have."""
        self.send(310, "late", "DELAY\x011\x02")
        self.send(310, "soon")
        self.assertEqual(self.stored(), [(0, b"soon")])
        self.pass_by(2)
        self.assertEqual(self.stored(), [(0, b"soon"), (1, b"late")])

    def test_again(self) -> None:
        """A consumer may give one back, also to a retry topic with batch queues."""
        retry = "%RETRY%G"
        self.rig.topic(retry, 1, attributes={"queue.type": "BatchCQ"})
        self.rig.groups.put([SubscriptionGroupConfig(group_name="G")])
        position = (self.send(310, "one").ext or {})["msgId"][16:]
        ext = {
            "offset": str(int(position, 16)),
            "group": "G",
            "delayLevel": "1",
            "originTopic": "B",
            "originMsgId": "one",
        }
        self.assertEqual(self.rig.ask(36, ext).code, 0)
        self.pass_by(2)
        (message,) = self.rig.records(topic=retry)
        self.assertEqual((message.queue_offset, message.body), (0, b"one"))

    def test_transactions(self) -> None:
        """They may be transactional."""
        party = ConnectionGroup(self.rig)
        half = "TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
        kept = self.send(310, "kept", half, f="4")
        gone = self.send(310, "gone", half, f="4")
        self.send(310, "plain")
        self.assertEqual(self.stored(), [(0, b"plain")])
        for answer, outcome in ((gone, ROLLBACK), (kept, COMMIT)):
            self.assertEqual(party.end(answer, outcome, topic="B"), 0)
        self.assertEqual(self.stored(), [(0, b"plain"), (1, b"kept")])

    def test_tags(self) -> None:
        """A consumer that asks for tags gets none of those that have others."""
        for key, tags in (("1", "A"), ("2", "B"), ("3", "A")):
            self.send(310, key, f"TAGS\x01{tags}\x02")
        ext = pull_ext(0, topic="B", subscription="A", sysFlag="4")
        answer = self.rig.ask(11, ext)
        found = [message.body for message in decode_all(answer.body)]
        self.assertEqual(found, [b"1", b"3"])
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "3")

    def test_held(self) -> None:
        """A pull that waits is woken by one."""
        waiting = self.rig.begin(11, pull_ext(0, topic="B", sysFlag="6"))
        self.send(310, "a")
        self.rig.scheduler.dispatch()
        self.assertEqual((answered(waiting).ext or {})["nextBeginOffset"], "1")
