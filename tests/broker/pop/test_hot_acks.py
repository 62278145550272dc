"""Tests of L{rocketbroker.broker.pop.hot_acks}: it does what the general way does."""

from __future__ import annotations

from collections.abc import Iterable

from rocketbroker.errors import SystemFailure
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import JSON, ONEWAY, RESPONSE, Command
from rocketbroker.wire.frames import encode
from tests.broker.pop.pops import ACK, PopCase, handles


class HotAckTests(PopCase):
    """Request 200051."""

    def popped_handles(self, *texts: str) -> list[ReceiptHandle]:
        """Send messages and pop them."""
        self.send(*texts)
        return handles(self.pop())

    def hot(
        self, handle: ReceiptHandle, opaque: int = 1, flag: int = 0, **more: str
    ) -> bool:
        """Acknowledge by the hot way, in a turn that does not end; was it taken?"""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
            **more,
        }
        return self.rig.hot(ACK, ext, opaque=opaque, flag=flag)

    def end_turn(self) -> list[Command]:
        """The answers of the turn."""
        self.rig.batcher.flush()
        return self.rig.answers()

    def stored(self) -> list[tuple[bytes, bytes]]:
        """Properties and bodies of the acknowledgements."""
        return [
            (kept.property_bytes, kept.body)
            for kept in self.kept()
            if kept.properties["TAGS"] != "ck"
        ]

    def by_both(self, *texts: str) -> tuple[list[tuple[bytes, bytes]], list[Command]]:
        """Each message acknowledged by the hot way, in a turn of its own, then by the
        general way: the records of the first, and all answers."""
        answers = []
        popped = self.popped_handles(*texts)
        for handle in popped:
            self.assertTrue(self.hot(handle))
            answers += self.end_turn()
        found = self.stored()
        for handle in popped:
            answers.append(self.ack(handle))
        self.assertEqual(self.stored()[len(found) :], found)
        return found, answers

    def test_same(self) -> None:
        """One for itself is the same record and the same answer as by the general
        way."""
        records, answers = self.by_both("a", "b")
        self.assertEqual(len(records), 2)
        for answer in answers:
            self.assertEqual((answer.code, answer.ext or None), (0, None))
            self.assertIsNone(answer.remark)
        self.assertEqual(self.rig.broker.pop.acks.acked, {("G", "T"): 4})

    def test_together(self) -> None:
        """Those of a check point in a turn are one record, as of a batch, and each is
        answered only when that is stored."""
        popped = self.popped_handles("a", "b", "c", "d")
        for opaque, handle in enumerate((popped[2], popped[0], popped[3]), 7):
            self.assertTrue(self.hot(handle, opaque))
        self.assertEqual((self.rig.answers(), self.stored()), ([], []))
        answers = self.end_turn()
        self.assertEqual(
            [(a.opaque, a.code) for a in answers], [(7, 0), (8, 0), (9, 0)]
        )
        ((properties, body),) = self.stored()
        self.assertTrue(body.startswith(b'{"ao":-1,"aol":[0,2,3],"bn":"broker-a",'))
        self.assertIn(b"TAGS\x01bAck\x02", properties)
        progress = self.rig.broker.pop.progress
        self.assertEqual(progress.in_flight("G", "T", 0), 1)
        self.pass_by(34)
        self.assertEqual(self.popped(), [b"b"])

    def test_apart(self) -> None:
        """Those of different check points, and of different connections, are not."""
        first = self.popped_handles("a", "b")
        second = self.popped_handles("c", "d")
        for handle in (*first, *second):
            self.assertTrue(self.hot(handle))
        self.end_turn()
        self.assertEqual(len(self.stored()), 2)
        self.pass_by(60)
        self.assertEqual(self.popped(), [])

    def test_many(self) -> None:
        """No more than a pop has are one record, and none is named twice."""
        popped = self.popped_handles("a", "b")
        for opaque in range(40):
            self.assertTrue(self.hot(popped[opaque % 2], opaque))
        self.assertEqual([a.opaque for a in self.end_turn()], [*range(40)])
        bodies = [body for _, body in self.stored()]
        self.assertEqual([b'"aol":[0,1]' in body for body in bodies], [True, True])

    def test_oneway(self) -> None:
        """One that wants no answer gets none, and counts."""
        (handle,) = self.popped_handles("a")
        self.assertTrue(self.hot(handle, flag=ONEWAY))
        self.assertEqual(self.end_turn(), [])
        self.assertEqual(len(self.stored()), 1)

    def assert_general(self, taken: Iterable[bool]) -> None:
        """None was taken, and nothing came of them."""
        self.assertNotIn(True, taken)
        self.assertEqual((self.end_turn(), self.stored()), ([], []))

    def test_unusual(self) -> None:
        """What the general way refuses, or reads with more patience, it gets."""
        (handle,) = self.popped_handles("a")
        text = handle.text()
        beyond = ReceiptHandle.parse(text)
        beyond.offset = 2
        self.assert_general(
            [
                self.hot(handle, flag=RESPONSE),
                self.hot(handle, topic="X"),
                self.hot(handle, queueId="1"),
                self.hot(handle, queueId="x"),
                self.hot(handle, offset="1"),
                self.hot(handle, extraInfo="1 2 0"),
                self.hot(handle, extraInfo=f"{text} 0"),
                self.hot(handle, extraInfo=text.rpartition(" ")[0]),
                self.hot(handle, extraInfo=text.replace(" 30000 ", " 999x ")),
                self.hot(beyond),
            ]
        )

    def test_otherCodes(self) -> None:
        """Requests whose codes begin with the same digits are not its own, even with
        all its fields."""
        (handle,) = self.popped_handles("a")
        (entry,) = [e for e in self.rig.table.hot.values() if e.code == ACK]
        fields = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
            "invisibleTime": "60000",
        }
        for code in (RequestCode.POP_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME):
            frame = encode(Command(code, fields, opaque=1), JSON)
            header = frame[8:]
            self.assertTrue(header.startswith(b'{"code":2000'))
            self.assertFalse(entry.responder(self.rig.connection, header, b""))
        self.assert_general([])

    def test_ordered(self) -> None:
        """What is consumed in order goes the general way."""
        self.send("a")
        (handle,) = handles(self.pop(order="true"))
        self.assert_general([self.hot(handle)])

    def test_merged(self) -> None:
        """So does what finds its check point in memory."""
        self.rig.change(enablePopBufferMerge="true")
        (handle,) = self.popped_handles("a")
        self.assert_general([self.hot(handle)])

    def test_threshold(self) -> None:
        """With enablePopMessageThreshold they make room for pops of the same turn."""
        self.rig.change(
            enablePopMessageThreshold="true", popInflightMessageThreshold="1"
        )
        self.send("c")
        first, _ = self.popped_handles("a", "b")[:2]
        self.send("d")
        self.assertTrue(self.hot(first))
        progress = self.rig.broker.pop.progress
        self.assertEqual(progress.in_flight("G", "T", 0), 2)
        self.end_turn()
        self.assertEqual(progress.in_flight("G", "T", 0), 2)

    def test_slave(self) -> None:
        """A slave takes none."""
        (handle,) = self.popped_handles("a")
        self.rig.batcher.is_slave = True
        self.assert_general([self.hot(handle)])

    def test_notStored(self) -> None:
        """What the store does not take is answered all the same; it comes again."""
        popped = self.popped_handles("a", "b")
        for handle in popped:
            self.assertTrue(self.hot(handle))
        self.rig.store.append = self.fail_to_append  # type: ignore[method-assign]
        self.assertEqual([a.code for a in self.end_turn()], [ResponseCode.SUCCESS] * 2)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        del self.rig.store.append
        self.assertEqual(self.stored(), [])

    def fail_to_append(self, drafts: object) -> None:
        """An append with a broken disk."""
        raise OSError("broken")

    def test_notEvenTried(self) -> None:
        """If there is no room for a queue's files, each is told so."""
        (handle,) = self.popped_handles("a")
        self.assertTrue(self.hot(handle))
        self.rig.broker.pop.log.put_ack = self.refuse  # type: ignore
        (answer,) = self.end_turn()
        self.assertEqual(answer.code, ResponseCode.SYSTEM_ERROR)

    def refuse(self, *_: object) -> None:
        """A log without room."""
        raise SystemFailure("no room")
