"""Batches, in L{rocketbroker.broker.send.send} and the hot way beside it."""

from __future__ import annotations

from rocketbroker.broker.messages.outer_batch import MAX_AT_ONCE, MAX_MESSAGES
from rocketbroker.errors import MessageIllegal, NoPermission
from rocketbroker.records.batches import encode_part
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST_TEXT, UNIQUE, Rig, answered, fields_for, send_ext
from tests.broker.send.sending import BATCH, SEND, SEND_V1, SendingCase


class BatchTests(SendingCase):
    """Request 320."""

    def setUp(self) -> None:
        """A batch of three messages."""
        super().setUp()
        self.body = b"".join(
            encode_part(
                number, b"%d" % number, b"UNIQ_KEY\x01U%d\x02TAGS\x01A" % number
            )
            for number in range(3)
        )
        self.ext = send_ext(m="true", h="9")

    def check(self, answer: Command) -> None:
        """The last three records are the batch, and the answer says where."""
        stored = self.rig.records()[-3:]
        self.assertEqual([one.body for one in stored], [b"0", b"1", b"2"])
        self.assertEqual([one.flag for one in stored], [0, 1, 2])
        self.assertEqual(
            [one.properties["UNIQ_KEY"] for one in stored], ["U0", "U1", "U2"]
        )
        for one in stored:
            self.assertEqual(one.properties["CLUSTER"], "cluster-a")
            self.assertEqual(one.properties["WAIT"], "true")
            self.assertEqual(one.tags, "A")
        assert answer.ext is not None
        self.assertEqual(
            answer.ext["msgId"],
            ",".join(f"{HOST_TEXT}{one.position:016X}" for one in stored),
        )
        self.assertEqual(answer.ext["queueOffset"], str(stored[0].queue_offset))
        self.assertEqual(answer.ext["transactionId"], UNIQUE)
        self.assertEqual(answer.code, 0)

    def test_general(self) -> None:
        """A batch becomes one record for each message, with the ids in one answer."""
        self.check(self.rig.ask(BATCH, self.ext, self.body))

    def test_hot(self) -> None:
        """The hot way does the same, whichever request brings it."""
        self.approve()
        for code in (BATCH, SEND, SEND_V1):
            ext = fields_for(code, self.ext)
            self.assertTrue(self.rig.hot(code, ext, self.body, opaque=5))
            self.rig.batcher.flush()
            (answer,) = self.rig.answers()
            self.assertEqual(answer.opaque, 5)
            self.check(answer)

    def test_flagDecides(self) -> None:
        """What makes a batch is the field m, not the code."""
        for code in (SEND, SEND_V1):
            ext = fields_for(code, self.ext)
            self.check(self.rig.ask(code, ext, self.body))
        single = send_ext()
        self.rig.ask(BATCH, single, self.body)
        self.assertEqual(self.last().body, self.body)

    def test_notTrue(self) -> None:
        """A field that RocketMQ does not read as true makes no batch."""
        self.approve()
        for code in (SEND, SEND_V1):
            for text in ("1", "0", "True"):
                ext = fields_for(code, send_ext(m=text))
                if not self.rig.hot(code, ext, self.body):
                    self.rig.begin(code, ext, self.body)
            self.rig.batcher.flush()
            bodies = [stored.body for stored in self.rig.records()[-5:]]
            self.assertEqual(bodies, [self.body, self.body, b"0", b"1", b"2"])

    def test_withoutId(self) -> None:
        """A batch without an id gets none, and its answer neither."""
        ext = send_ext(properties="WAIT\x01true\x02", m="true")
        answer = self.rig.ask(BATCH, ext, self.body)
        self.assertNotIn("transactionId", answer.ext or {})
        self.assertTrue(self.rig.hot(BATCH, ext, self.body))
        self.rig.batcher.flush()
        (answer,) = self.rig.answers()
        self.assertNotIn("transactionId", answer.ext or {})

    def test_counted(self) -> None:
        """Each of its messages is counted."""
        self.rig.ask(BATCH, self.ext, self.body)
        self.rig.hot(BATCH, self.ext, self.body)
        self.rig.batcher.flush()
        (counts,) = self.rig.sending.counters()
        self.assertEqual(counts.messages, 6)
        self.assertEqual(counts.bytes, self.rig.store.published_position)

    def test_oneway(self) -> None:
        """One that wants no answer gets none."""
        self.approve()
        self.assertTrue(self.rig.hot(BATCH, self.ext, self.body, flag=2))
        self.rig.batcher.flush()
        self.assertEqual(self.rig.answers(), [])
        self.assertEqual(len(self.rig.records()), 4)

    def test_broken(self) -> None:
        """One that is cut off is left to the general way, which refuses it."""
        self.approve()
        self.assertFalse(self.rig.hot(BATCH, self.ext, self.body[:-1]))
        self.assertEqual(self.rig.batcher.drafts, [])

    def test_tooLong(self) -> None:
        """One that the store refuses as a whole is answered once, either way."""
        big = encode_part(0, b"x" * 40_000, b"") * 2
        answer = self.rig.ask(BATCH, self.ext, big)
        self.assertNotEqual(answer.code, 0)
        self.approve()
        self.assertTrue(self.rig.hot(BATCH, self.ext, big, opaque=3))
        self.rig.batcher.flush()
        (hot,) = self.rig.answers()
        self.assertEqual(
            (hot.opaque, hot.code, hot.remark), (3, answer.code, answer.remark)
        )


class LongBatchTests(SendingCase):
    """Batches of more messages than are cut in their own turn."""

    def setUp(self) -> None:
        """A broker with room for one."""
        super().setUp()
        self.rig = Rig({"mappedFileSizeCommitLog": str(4 << 20)})
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 1)
        self.part = encode_part(0, b"a", b"")
        self.ext = send_ext(m="true", properties="WAIT\x01true\x02")

    def test_storedWhole(self) -> None:
        """It is cut in slices, and stored at once: nothing stands within it."""
        self.rig.ask(SEND, send_ext(properties=""), b"before")
        asked = self.rig.begin(BATCH, self.ext, self.part * (MAX_AT_ONCE + 1))
        self.rig.ask(SEND, send_ext(properties=""), b"between")
        self.assertEqual(self.rig.store.queue("T", 0).next_offset, 2)
        self.rig.clock.advance(0)
        answer = answered(asked)
        assert answer.ext is not None
        self.assertEqual((answer.code, answer.ext["queueOffset"]), (0, "2"))
        self.assertEqual(len(answer.ext["msgId"].split(",")), MAX_AT_ONCE + 1)
        self.rig.ask(SEND, send_ext(properties=""), b"behind")
        found = [(one.queue_offset, one.body) for one in self.rig.records()]
        self.assertEqual(
            found,
            [
                (0, b"before"),
                (1, b"between"),
                *[(2 + number, b"a") for number in range(MAX_AT_ONCE + 1)],
                (MAX_AT_ONCE + 3, b"behind"),
            ],
        )

    def test_goesTheGeneralWay(self) -> None:
        """The hot way leaves it, however its messages differ."""
        self.rig.ask(SEND, send_ext(properties=""), b"before")
        self.assertTrue(self.rig.hot(BATCH, self.ext, self.part))
        long = encode_part(0, bytes(1 << 16), b"")
        for first in (b"", long):
            body = first + self.part * (MAX_AT_ONCE + 1)
            self.assertFalse(self.rig.hot(BATCH, self.ext, body))

    def test_checkedWhenItIsCut(self) -> None:
        """What is wrong by then is refused: its end, or its topic, which is gone."""
        whole = self.part * (MAX_AT_ONCE + 1)
        torn = self.rig.begin(BATCH, self.ext, whole[:-1])
        asked = self.rig.begin(BATCH, self.ext, whole)
        self.rig.topic("T", 1, order=True)
        self.rig.change(brokerPermission=4)
        self.rig.clock.advance(0)
        with self.assertRaises(MessageIllegal):
            answered(torn)
        self.assertEqual(self.rig.store.queue("T", 0).next_offset, 0)
        with self.assertRaises(NoPermission):
            answered(asked)

    def test_mostMessages(self) -> None:
        """One message more than a batch may have is refused in words."""
        asked = self.rig.begin(BATCH, self.ext, self.part * (MAX_MESSAGES + 1))
        self.rig.clock.advance(0)
        with self.assertRaises(MessageIllegal) as caught:
            answered(asked)
        self.assertIn(f"more than {MAX_MESSAGES} messages", caught.exception.remark)
