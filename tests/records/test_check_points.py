"""Check points and acknowledgements as bytes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.check_points import Ack, CheckPoint
from rocketbroker.records.malformed import Malformed

#: As RocketMQ 5.3.3 writes them.
POINT = (
    b'{"bm":0,"bn":"b-a","c":"G","d":[0,1],"it":30000,"n":2,"pt":1700000000000,"q":3,'
    b'"reviveTime":1700000030000,"ro":0,"so":10,"t":"T"}'
)
AGAIN = (
    b'{"bm":0,"bn":"b-a","c":"G","d":[0],"it":40000,"n":1,"pt":1700000000000,"q":3,'
    b'"reviveTime":1700000040000,"ro":0,"rp":"1","so":11,"t":"T"}'
)
ACK = b'{"ao":11,"bn":"b-a","c":"G","pt":1700000000000,"q":3,"so":10,"t":"T"}'
BATCH = (
    b'{"ao":-1,"aol":[10,11],"bn":"b-a","c":"G","pt":1700000000000,"q":3,"so":10,'
    b'"t":"T"}'
)

POP_MS = 1_700_000_000_000


class CheckPointTests(SynchronousTestCase):
    """The body of C{ck}."""

    def test_written(self) -> None:
        """It is RocketMQ's, byte for byte."""
        point = CheckPoint("T", "G", 3, 10, POP_MS, 30_000, "b-a", [0, 1])
        self.assertEqual(point.encode(), POINT)
        self.assertEqual(point.unique_key(), f"T@3@10@G@{POP_MS}@b-a@ck")

    def test_read(self) -> None:
        """What was written is read, and names the same check point."""
        point = CheckPoint.decode(POINT)
        self.assertEqual(point.encode(), POINT)
        self.assertEqual(point.key, ("T", "G", 3, 10, POP_MS, "b-a"))
        self.assertEqual(point.revive_ms, POP_MS + 30_000)
        self.assertEqual(point.offsets(), [10, 11])

    def test_again(self) -> None:
        """One message that could not be revived is due later, the more often that
        was; one that is not due yet keeps its time."""
        point = CheckPoint.decode(POINT)
        again = point.again(11, POP_MS + 30_000)
        self.assertEqual(again.encode(), AGAIN)
        waits = []
        for _ in range(19):
            before, again = again, again.again(11, POP_MS + 1_000_000_000)
            waits.append((again.invisible_ms - before.invisible_ms) // 1000)
        wanted = [20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800]
        self.assertEqual(waits, [*wanted, 3600, 7200, 7200, 7200, 7200])
        self.assertEqual(point.again(11, POP_MS).invisible_ms, 30_000)

    def test_gaps(self) -> None:
        """Messages may be apart; those of old brokers are not."""
        point = CheckPoint("T", "G", 3, 10, POP_MS, 30_000, "b-a", [2, 5])
        self.assertEqual(point.offsets(), [12, 15])
        found = [point.index_of(offset) for offset in (10, 12, 13, 15)]
        self.assertEqual(found, [-1, 0, -1, 1])
        old = CheckPoint.decode(POINT.replace(b'"d":[0,1],', b""))
        self.assertEqual(old.offsets(), [10, 11])
        self.assertEqual([old.index_of(n) for n in (9, 10, 11, 12)], [-1, 0, 1, -1])

    def test_longNames(self) -> None:
        """The names of other releases are understood."""
        body = (
            b'{"brokerName":"b-a","consumerGroup":"G","d":[0],"it":1,"n":1,"popTime":5,'
            b'"queueId":3,"startOffset":10,"topic":"T"}'
        )
        key = CheckPoint.decode(body).key
        self.assertEqual(key, ("T", "G", 3, 10, 5, "b-a"))
        # A null member is one that is missing.
        body = body.replace(b'"n":1', b'"bn":null,"c":null,"n":null,"rp":null')
        self.assertEqual(CheckPoint.decode(body).key, key)

    def test_nonsense(self) -> None:
        """What is none is refused, whatever it is."""
        for body in (
            b"",
            b"[]",
            b"{}",
            b"\xff",
            POINT[:-1],
            POINT.replace(b"[0,1]", b'["0"]'),
            POINT.replace(b'"pt":1', b'"pt":1.5e999'),
            POINT.replace(b'"q":3', b'"q":99999999999999999999'),
            POINT.replace(b'"q":3', b'"q":true'),
            POINT.replace(b'"q":3', b'"q":null'),
            POINT.replace(b'"it":30000,', b""),
            POINT.replace(b'"t":"T"', b'"t":1'),
            POINT.replace(b'"t":"T"', b'"t":"\xff"'),
            POINT.replace(b'"d":[0,1],', b"").replace(b'"n":2', b'"n":128'),
        ):
            self.assertRaises(Malformed, CheckPoint.decode, body)


class AckTests(SynchronousTestCase):
    """The bodies of C{ack} and C{bAck}."""

    def test_written(self) -> None:
        """They are RocketMQ's, byte for byte."""
        one = Ack("T", "G", 3, 10, POP_MS, "b-a", [11])
        self.assertEqual((one.tag, one.encode()), ("ack", ACK))
        self.assertEqual(one.unique_key(), f"T@3@11@G@{POP_MS}@b-a@ack")
        both = Ack("T", "G", 3, 10, POP_MS, "b-a", [10, 11])
        self.assertEqual((both.tag, both.encode()), ("bAck", BATCH))
        self.assertEqual(both.unique_key(), f"T@3@-1@G@{POP_MS}@b-a@ack")

    def test_read(self) -> None:
        """They name their check point; without a broker it is one of this one."""
        key = CheckPoint.decode(POINT).key
        for body, offsets in ((ACK, [11]), (BATCH, [10, 11])):
            ack = Ack.decode(body)
            self.assertEqual((ack.key("other"), ack.offsets), (key, offsets))
        for before, name in ((b'"ao"', b'"ackOffset"'), (b'"pt"', b'"popTime"')):
            ack = Ack.decode(ACK.replace(before, name))
            self.assertEqual((ack.key("other"), ack.offsets), (key, [11]))
        ack = Ack.decode(BATCH.replace(b'"aol"', b'"ackOffsetList"'))
        self.assertEqual((ack.key("other"), ack.offsets), (key, [10, 11]))
        self.assertRaises(Malformed, Ack.decode, ACK.replace(b'"ao":11,', b""))
        nameless = Ack.decode(ACK.replace(b'"bn":"b-a",', b""))
        self.assertEqual(nameless.key("b-a"), key)
        self.assertEqual(Ack.decode(ACK.replace(b"b-a", b" ")).key("b-a"), key)
