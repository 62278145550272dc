"""Tests of L{rocketbroker.broker.pop.ack}: messages that are consumed."""

from __future__ import annotations

from rocketbroker.errors import MessageIllegal, SystemFailure, TopicNotExist
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.fastjson import dumps
from tests.broker.pop.pops import REVIVE_TOPIC, PopCase, handles, header_of

BATCH = RequestCode.BATCH_ACK_MESSAGE


class AckTests(PopCase):
    """Request 200051."""

    def handle(self, offset: int) -> ReceiptHandle:
        """A handle that names a message of queue 0."""
        return ReceiptHandle(0, self.rig.wall_ms(), 1000, 0, "0", "b", 0, offset)

    def test_written(self) -> None:
        """An acknowledgement is a message of the revive queue of its pop, as RocketMQ
        writes it, which the timer keeps behind the check point."""
        self.send("a", "b")
        answer = self.pop()
        now, queue = self.rig.wall_ms(), header_of(answer).revive_qid
        self.assertEqual(self.ack(handles(answer)[1]).code, 0)
        point, ack = self.kept()
        for message, due, out, key, tag in (
            (point, 29_000, 28_000, f"T@0@0@G@{now}@broker-a@ck", "ck"),
            (ack, 30_000, 29_000, f"T@0@1@G@{now}@broker-a@ack", "ack"),
        ):
            properties = (
                f"REAL_TOPIC\x01{REVIVE_TOPIC}\x02TIMER_DELIVER_MS\x01{now + due}\x02"
                f"UNIQ_KEY\x01{key}\x02TAGS\x01{tag}\x02TIMER_OUT_MS\x01{now + out}"
                f"\x02REAL_QID\x01{queue}\x02"
            )
            self.assertEqual(message.property_bytes, properties.encode())
        wanted = f'{{"ao":1,"bn":"broker-a","c":"G","pt":{now},"q":0,"so":0,"t":"T"}}'
        self.assertEqual(ack.body, wanted.encode())

    def test_over(self) -> None:
        """What is acknowledged does not come again."""
        self.send("a", "b", "c")
        for handle in handles(self.pop()):
            self.ack(handle)
        self.pass_by(60)
        self.assertEqual(self.popped(), [])
        self.assertEqual(self.rig.broker.pop.acks.acked, {("G", "T"): 3})

    def test_late(self) -> None:
        """What is acknowledged when it has been given out again comes once more."""
        self.send("a")
        (handle,) = handles(self.pop())
        self.pass_by(34)
        self.assertEqual(self.ack(handle).code, 0)
        self.assertEqual(self.popped(), [b"a"])

    def test_refused(self) -> None:
        """Topics, queues and offsets that there are none, and what is no handle."""
        self.send("a")
        self.assertEqual(self.ack(self.handle(2)).code, ResponseCode.NO_MESSAGE)
        self.assertEqual(self.ack(self.handle(-1)).code, ResponseCode.NO_MESSAGE)
        with self.assertRaises(TopicNotExist):
            self.ack(self.handle(0), topic="X")
        with self.assertRaises(MessageIllegal):
            self.ack(self.handle(0), queueId=1)
        with self.assertRaises(SystemFailure):
            self.ack(self.handle(0), extraInfo="1 2 3")

    def test_inFlight(self) -> None:
        """What was popped is in flight until it is acknowledged, or comes again."""
        progress = self.rig.broker.pop.progress
        self.send("a", "b", "c")
        first, *_ = handles(self.pop())
        self.assertEqual(progress.in_flight("G", "T", 0), 3)
        self.ack(first)
        self.assertEqual(progress.in_flight("G", "T", 0), 2)
        self.pass_by(34)
        self.assertEqual(progress.in_flight("G", "T", 0), 0)

    def test_threshold(self) -> None:
        """With enablePopMessageThreshold a group with too many in flight waits."""
        self.rig.change(
            enablePopMessageThreshold="true", popInflightMessageThreshold="1"
        )
        self.send("a", "b", "c")
        found = handles(self.pop(maxMsgNums=2))
        self.assertEqual(self.popped(), [])
        self.ack(found[0])
        self.assertEqual(self.popped(), [b"c"])


class BatchTests(PopCase):
    """Request 200151."""

    def ask(self, *acks: dict[str, object]) -> int:
        """Acknowledge; the code of the answer."""
        body = dumps({"acks": list(acks), "brokerName": "broker-a"})
        return self.rig.ask(BATCH, {}, body).code

    def entry(self, handle: ReceiptHandle, bits: str, **more: object) -> object:
        """Messages of one check point."""
        return {
            "b": bits,
            "c": "G",
            "it": handle.invisible_ms,
            "pt": handle.pop_ms,
            "q": handle.queue_id,
            "r": handle.kind,
            "rq": handle.revive_queue,
            "so": handle.start_offset,
            "t": "T",
            **more,
        }

    def test_bits(self) -> None:
        """Each bit is a message; all of a check point are one acknowledgement."""
        self.send(*"abcdefghij")
        first, *_ = handles(self.pop())
        entry = self.entry(first, "CQI=")
        assert isinstance(entry, dict)
        self.assertEqual(self.ask(entry), 0)
        _, ack = self.kept()
        self.assertIn(b'{"ao":-1,"aol":[0,3,9],', ack.body)
        self.assertEqual(ack.properties["TAGS"], "bAck")
        self.pass_by(34)
        again = sorted(b"".join(self.popped()).decode())
        self.assertEqual("".join(again), "bcefghi")

    def test_retried(self) -> None:
        """What came from the retry topic is named by its kind."""
        self.send("a")
        self.pop()
        self.pass_by(34)
        (handle,) = handles(self.pop())
        entry = self.entry(handle, "AQ==")
        assert isinstance(entry, dict)
        self.assertEqual(self.ask(entry), 0)
        self.pass_by(60)
        self.assertEqual(self.popped(), [])

    def test_longNames(self) -> None:
        """The long names of the members do, too."""
        self.send("a")
        (handle,) = handles(self.pop())
        entry = {
            "bitSet": "AQ==",
            "consumerGroup": "G",
            "invisibleTime": handle.invisible_ms,
            "popTime": handle.pop_ms,
            "queueId": 0,
            "retry": "0",
            "reviveQueueId": handle.revive_queue,
            "startOffset": 0,
            "topic": "T",
        }
        self.assertEqual(self.ask(entry), 0)
        self.pass_by(60)
        self.assertEqual(self.popped(), [])

    def test_none(self) -> None:
        """An empty batch is answered so, and offsets beyond the queue are passed."""
        self.assertEqual(self.ask(), ResponseCode.NO_MESSAGE)
        self.send("a")
        (handle,) = handles(self.pop())
        entry = self.entry(handle, "8A==")
        assert isinstance(entry, dict)
        self.assertEqual(self.ask(entry), 0)
        self.assertEqual(len(self.kept()), 1)

    def test_nonsense(self) -> None:
        """A body that is none is refused in words."""
        for body in (b"", b"[]", b'{"acks":[{"b":"%"}]}'):
            with self.assertRaises(SystemFailure):
                self.rig.ask(BATCH, {}, body)
