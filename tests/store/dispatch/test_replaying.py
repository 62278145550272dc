"""Many records at once from the log into their queues."""

from __future__ import annotations

from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.sysflags import (
    INNER_BATCH,
    TRANSACTION_COMMIT,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
)
from rocketbroker.store.commitlog.ordinary import QueueRun, collect
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse, tag_code_of
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.dispatch.replaying import replay
from tests.store.stores import BORN_HOST_V6, START, START_MS, joined, with_batches

#: Records, each a millisecond after the one before.
spaced = partial(joined, step_ms=1)

CODES = {b"a": tag_code("a"), b"bb": tag_code("bb")}


class ReplayTests(SynchronousTestCase):
    """What is taken, and what is left to the exact way."""

    def setUp(self) -> None:
        """Two queues, empty."""
        self.store = with_batches()
        self.addCleanup(self.store.close)
        self.known: dict[tuple[bytes, int], Queue] = {}
        self.forget()

    def forget(self) -> None:
        """Let nothing be pending."""
        for topic, number in (("T", 0), ("T", 1), ("SCHEDULE_TOPIC_XXXX", 0)):
            queue = self.store.queue(topic, number)
            assert type(queue) is Queue
            queue.pending = []
            self.known[topic.encode(), number] = queue
        self.touched: list[Queue] = []

    def replay(self, data: bytes, check_crc: bool = True) -> tuple[int, int, int]:
        """All from the beginning."""
        return replay(data, 0, START, check_crc, self.known, self.touched)

    def entries(self) -> list[tuple[int, int, int]]:
        """Position, size and tag code of what was taken, in the order of the log."""
        pending = [each for queue in self.touched for each in queue.pending]
        return sorted(ENTRY.unpack(entry) for entry in pending)

    def test_taken(self) -> None:
        """Records that are next in their queues are taken, but for the last: whether
        that one is whole depends on what follows."""
        data = spaced(
            {},
            {"queue_id": 1, "queue_offset": 0, "body": b"", "properties": b""},
            {
                "queue_offset": 1,
                "sys_flag": TRANSACTION_COMMIT,
                "properties": b"k\x01v\x02TAGS\x01a\x02TAGS\x01bb",
            },
            {"queue_offset": 2},
        )
        at, count, ms = self.replay(data)
        self.assertEqual((count, ms), (3, START_MS + 2))
        exact = [(START, 103, CODES[b"a"]), (START + 103, 92, 0)]
        exact.append((START + 195, at - 195, CODES[b"bb"]))
        self.assertEqual(self.entries(), exact)
        first, second = self.known[b"T", 0], self.known[b"T", 1]
        self.assertEqual(self.touched, [first, second])
        self.assertEqual((first.pending_offset, first.pending_end), (0, START + at))
        self.assertEqual((second.pending_offset, second.pending_end), (0, START + 195))

    def test_continued(self) -> None:
        """What is pending is continued."""
        data = spaced({}, {}, {}, {})
        whole = self.replay(data)[0]
        self.forget()
        two = data[: 2 * 103 + 88]
        at, count, _ = replay(two, 0, START, True, self.known, self.touched)
        self.assertEqual(count, 2)
        again = replay(data, at, START, True, self.known, self.touched)
        self.assertEqual(again, (whole, 1, START_MS + 2))
        self.assertEqual(len(self.touched), 1)
        self.assertEqual(len(self.entries()), 3)

    def exact(self, data: bytes) -> list[tuple[int, int, int]]:
        """Position, size and tag code of all records, as the exact way has them."""
        exact = []
        place = 0
        while place < len(data):
            try:
                found = parse(data, place, START + place, True)
            except (Blank, Broken):
                break
            exact.append((*found[:2], tag_code_of(found[7])))
            place += found[1]
        return exact

    def test_tags(self) -> None:
        """Tags are found wherever they stand, whether or not a record ends as one
        before it does."""
        shapes = (
            b"",
            b"k\x01v\x02",
            b"TAGS\x01a\x02",
            b"TAGS\x01a",
            b"k\x01v\x02TAGS\x01a\x02",
            b"k\x01v\x02TAGS\x01a",
            b"k\x01v\x02TAGS\x01\x02",
            b"other\x01v\x02TAGS\x01b\x02",
            b"k\x01v\x02TAGS\x01bb\x02",
            b"k\x01v\x02TAGS\x01bb\x02last\x01v\x02",
            b"k\x01v\x02TAGS\x01a\x02TAGS\x01bb\x02",
            b"k\x01v\x02TAGS\x01a long name of a tag\x02",
            b"TAGS\x01bb\x02" + 247 * b"x" + b"\x01v\x02",
        )
        for first in shapes:
            for second in shapes:
                self.forget()
                data = spaced(
                    {"properties": first},
                    {"properties": second},
                    {"properties": first},
                    {"properties": second},
                    {},
                )
                self.assertEqual(self.replay(data)[1], 4)
                self.assertEqual(self.entries(), self.exact(data)[:4], (first, second))

    def test_tagsThatBegin(self) -> None:
        """Tags that begin with those of a record before, whose properties end there,
        are others."""
        names = b"ab", b"c\x02last\x01v\x02", b"abc\x02last\x01v\x02"
        records: list[dict[str, object]] = [
            {"properties": b"k\x01v\x02TAGS\x01" + name} for name in names
        ]
        data = spaced(*records, {})
        self.assertEqual(self.replay(data)[1], 3)
        self.assertEqual(self.entries(), self.exact(data)[:3])

    def test_endBeforeProperties(self) -> None:
        """A record that ends like another, but not its properties alone, has not that
        one's tags."""
        topic = b"x\x02TAGS\x01a"
        self.known[topic, 0] = self.known[b"T", 1]
        tail: dict[str, object] = {"properties": b"k\x01v\x02TAGS\x01a\x00\x01b"}
        other: dict[str, object] = {
            "topic": topic,
            "queue_offset": 0,
            "properties": b"b",
        }
        data = spaced(tail, other, {"queue_offset": 1})
        self.assertIn(b"\x02TAGS\x01a\x00\x01b", data[-250:-103])
        self.assertEqual(self.replay(data)[1], 2)
        codes = [code for _, _, code in self.entries()]
        self.assertEqual(codes, [tag_code("a\x00\x01b"), 0])

    def test_insideOfName(self) -> None:
        """An end that is part of another name is not that of tags."""
        for first, second in (
            # What stands before the first one's tags is their length, 7.
            (b"TAGS\x01a\x02", b"k\x01v\x02\x07TAGS\x01a\x02"),
            (b"k\x01v\x02TAGS\x01a\x02", b"k\x01v\x02xTAGS\x01a\x02"),
        ):
            self.forget()
            data = spaced({"properties": first}, {"properties": second}, {})
            self.assertEqual(self.replay(data)[1], 1)

    def test_ownCRC(self) -> None:
        """A wrong CRC of a whole record is noticed if that is wanted, behind records
        that end as it does, too."""
        words: dict[str, object] = {
            "properties": b"k\x01v\x02TAGS\x01a\x02",
            "append_crc": True,
        }
        data = spaced(words, words, words, {})
        size = (len(data) - 103) // 3
        changed = data[: 2 * size] + data[2 * size :].replace(b"v\x02T", b"w\x02T")
        copied = data[: 3 * size - 20] + data[2 * size - 20 : 2 * size]
        copied += data[3 * size :]
        for given in (changed, copied):
            for wanted, count in ((True, 2), (False, 3)):
                runs = [QueueRun([], 0)]
                took = lambda *_: runs.pop()  # noqa: E731, B023  # asked once
                found = collect(given, 0, START, True, took, wanted)
                self.assertEqual(found[1], count)

    def test_notOrdinary(self) -> None:
        """At anything unusual it stops."""
        batch_queue = self.store.queue("B", 0)
        assert type(batch_queue) is Queue
        self.assertIsNotNone(batch_queue.batch)
        self.known[b"B", 0] = batch_queue
        unusual: tuple[dict[str, object], ...] = (
            {"sys_flag": TRANSACTION_PREPARED},
            {"sys_flag": TRANSACTION_ROLLBACK},
            {"sys_flag": INNER_BATCH},
            {"born_host": BORN_HOST_V6},
            {"store_host": BORN_HOST_V6},
            {"topic": b"B", "queue_offset": 0},
            {"topic": b"SCHEDULE_TOPIC_XXXX", "queue_offset": 0},
            {"topic": b"unknown"},
            {"queue_id": 7},
            {"properties": b"xTAGS\x01a\x02"},
            {"queue_offset": 0},
            {"queue_offset": 2},
            {"position": START},
        )
        for changes in unusual:
            self.forget()
            at, count, _ = self.replay(spaced({}, changes, {}, {}))
            self.assertEqual((at, count), (103, 1), changes)

    def test_version2(self) -> None:
        """Records of version 2 are not ordinary, nor is one that they follow."""
        long = b"x" * 128
        self.known[long, 0] = self.known[b"T", 0]
        self.assertEqual(self.replay(spaced({"topic": long}, {}, {})), (0, 0, 0))
        data = spaced({}, {}, {"topic": long}, {})
        self.assertEqual(self.replay(data)[:2], (103, 1))

    def test_enteredAlready(self) -> None:
        """What stands in its queue, or belongs to a topic of that name that was
        deleted, is left."""
        data = spaced({}, {})
        queue = self.known[b"T", 0]
        queue.from_position = START + 1
        self.assertEqual(self.replay(data), (0, 0, 0))
        queue.from_position, queue.max_position = 0, START + 103
        self.assertEqual(self.replay(data), (0, 0, 0))
        self.assertEqual(self.touched, [])

    def test_crc(self) -> None:
        """A changed body is noticed unless the check is switched off."""
        data = spaced({}, {}, {})
        changed = data[:191] + b"X" + data[192:]
        self.assertEqual(self.replay(changed)[:2], (103, 1))
        self.forget()
        self.assertEqual(self.replay(changed, check_crc=False)[1], 2)

    def test_anyByte(self) -> None:
        """Whatever byte is another, nothing is taken but what the exact way finds."""
        data = spaced(
            {},
            {"queue_id": 1, "queue_offset": 0, "properties": b""},
            {"queue_offset": 1, "body": b"", "properties": b"k\x01v\x02TAGS\x01bb"},
            {"queue_offset": 2},
        )
        for at in range(len(data)):
            for value in (0, 1, 0x7F, 0x80, 0xFF):
                changed = data[:at] + bytes([value]) + data[at + 1 :]
                exact = self.exact(changed)
                self.forget()
                end, count, _ = self.replay(changed)
                taken = self.entries()
                self.assertEqual(taken, exact[:count], (at, value))
                self.assertEqual(end, sum(size for _, size, _ in taken))

    def test_cutAnywhere(self) -> None:
        """Of a piece that ends anywhere, what is whole and followed by another head
        is taken."""
        data = spaced({}, {}, {}, {})
        for size in range(len(data)):
            self.forget()
            whole = max(0, size - 88) // 103
            self.assertEqual(self.replay(data[:size])[:2], (whole * 103, whole))
