"""Batches that stay one, from the send to the pull."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import MessageIllegal
from rocketbroker.records.batches import encode_part, unwrap
from rocketbroker.records.record import decode_all
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST_TEXT, UNIQUE, Rig, answered, pull_ext, send_ext


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
        """A batch without a unique key gets one."""
        answer = self.send(b"a", properties="WAIT\x01true\x02")
        (stored,) = self.rig.records(topic="B")
        assert answer.ext is not None
        self.assertEqual(answer.ext["batchUniqId"], stored.properties["UNIQ_KEY"])

    def test_most(self) -> None:
        """The number of messages has 16 bits; a batch of more is refused."""
        rig = Rig({"mappedFileSizeCommitLog": str(1 << 20)})
        self.addCleanup(rig.close)
        rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        body = encode_part(0, b"", b"") * 32768
        ext = send_ext("B", m="true")
        self.assertRaises(MessageIllegal, rig.begin, 320, ext, body)
        self.assertEqual(rig.ask(320, ext, body[22:]).code, 0)

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
        self.rig.upkeep.dispatch()
        answer = answered(waiting)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "2")
