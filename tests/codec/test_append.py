"""Tests of L{rocketbroker.codec.append}."""

from __future__ import annotations

import inspect
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec import append
from rocketbroker.codec.build import COMPILED
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.record import encode
from rocketbroker.store import interfaces
from rocketbroker.wire.hot import SEND_ANSWER, SEND_ANSWER_END, frame_of
from tests.examples import examples

_I32 = st.integers(-(1 << 31), (1 << 31) - 1)
_I64 = st.integers(-(1 << 63), (1 << 63) - 1)


class Queue:
    """What a draft's place and record depend on."""

    record_bytes = 92
    slot = 0
    magic = 0xDAA320A7 - (1 << 32)
    topic_field = b"\x01T"
    topic = "T"
    usable = True
    queue_id = 3
    from_position = 0
    pending_offset = -1
    pending_end = -1

    def __init__(self) -> None:
        self.pending: list[bytes] = []
        self.pending_codes: list[int] = []


class Counters:
    """Counts of a queue."""

    start = b'{"code":0,"extFields":{"msgId":"AB'

    def __init__(self) -> None:
        self.small = (0, 0)
        self.large: list[int] = []

    def count_small(self, messages: int, size: int) -> None:
        """Count small ones."""
        self.small = self.small[0] + messages, self.small[1] + size

    def count(self, messages: int, size: int) -> None:
        """Count a large one."""
        self.large.append(size)


class Connection:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int]] = []

    def send_now(self, frames: bytes, count: int) -> None:
        """Keep it."""
        self.sent.append((frames, count))


def draft(queue: Any, body: bytes = b"b", **more: Any) -> append.Draft:
    """A draft."""
    fields: dict[str, Any] = {
        "properties": b"A\x01b\x02",
        "flag": 1,
        "sys_flag": 0,
        "born_ms": 5,
        "born_host": b"12345678",
        "reconsume_times": 0,
        "tag_code": 0,
        "context": None,
        **more,
    }
    return append.Draft(queue, body, **fields)


class DraftTests(SynchronousTestCase):
    """Both kinds of drafts are one."""

    def test_fields(self) -> None:
        """They have the same fields, in this order, with the same defaults; the
        compiled form has only one kind."""
        kinds: set[Any] = {interfaces.Draft, append.Draft}
        self.assertEqual(len(kinds), 1 if COMPILED else 2)
        if not COMPILED:
            ours, theirs = (
                [(each.name, each.default) for each in signature.parameters.values()]
                for signature in map(
                    inspect.signature, (append.Draft, interfaces.Draft)
                )
            )
            self.assertEqual(ours, theirs)


class ReserveTests(SynchronousTestCase):
    """Places and queue offsets."""

    def reserve(self, *given: append.Draft, limit: int = 10_000) -> int:
        """Reserve; the number of those that got a place."""
        self.view = memoryview(bytearray(64)).cast("q")
        self.view[1] = 7
        placed: list[append.Draft] = []
        self.end = append.reserve([*given], placed, self.view, 1, 1000, limit, 100, 300)
        self.assertEqual(placed, [*given[: len(placed)]])
        return len(placed)

    def test_places(self) -> None:
        """Records stand one behind the other, and take the queue's next offsets."""
        one, two = draft(Queue()), draft(Queue())
        self.assertEqual(self.reserve(one, two), 2)
        self.assertEqual((one.position, one.end, one.queue_offset), (1000, 1097, 7))
        self.assertEqual((two.position, two.end, two.queue_offset), (1097, 1194, 8))
        self.assertEqual((one.status, self.end, self.view[1]), (0, 1194, 9))

    def test_unusual(self) -> None:
        """The first that is not ordinary, or does not fit, ends it, and has nothing."""
        queue, unusable = Queue(), Queue()
        unusable.usable = False
        for other in (
            draft(queue, parts=[]),
            draft(queue, sys_flag=4),
            draft(queue, sys_flag=8),
            draft(queue, b"x" * 101),
            draft(queue, properties=b"x" * 250),
            draft(queue, born_host=b"x" * 20),
            draft(unusable),
        ):
            self.assertEqual(self.reserve(draft(queue), other, draft(queue)), 1)
            self.assertEqual((other.status, self.view[1]), (-1, 8))
        self.assertEqual(self.reserve(draft(queue), draft(queue), limit=1193), 1)
        self.assertEqual(self.reserve(draft(queue), draft(queue), limit=1194), 2)

    def test_withoutQueue(self) -> None:
        """A draft of ours without a queue is a mistake, and changes nothing."""
        self.assertRaises(AttributeError, self.reserve, draft(None))
        self.assertEqual(self.view[1], 7)


class EncodeTests(SynchronousTestCase):
    """Records."""

    @examples()
    @given(
        st.tuples(_I32, _I32, _I32), st.tuples(*[_I64] * 4), st.binary(), st.binary()
    )
    def test_same(
        self,
        small: tuple[int, int, int],
        large: tuple[int, int, int, int],
        body: bytes,
        properties: bytes,
    ) -> None:
        """They are those of L{rocketbroker.records.record.encode}."""
        flag, queue_id, reconsume = small
        born_ms, prepared, store_ms, queue_offset = large
        queue = Queue()
        queue.queue_id = queue_id
        one = draft(
            queue,
            body,
            properties=properties,
            flag=flag,
            born_ms=born_ms,
            reconsume_times=reconsume,
            prepared_offset=prepared,
            queue_offset=queue_offset,
            position=900,
            end=900 + 92 + len(body) + len(properties),
        )
        expected = encode(
            b"T",
            body,
            properties,
            queue_id,
            queue_offset,
            900,
            born_ms,
            b"12345678",
            store_ms,
            b"87654321",
            flag,
            0,
            reconsume,
            prepared,
        )
        encoded = append.encode([one, one], store_ms, b"87654321")
        self.assertEqual(encoded, expected * 2)

    def test_left(self) -> None:
        """Those with parts, with IPv6 hosts or numbers that do not fit are not made."""
        for other in (
            draft(Queue(), parts=()),
            draft(Queue(), parts=[(1 << 31, b"", b"", 0)], positions=[0]),
            draft(Queue(), born_host=b"x" * 20),
            draft(Queue(), flag=1 << 31),
            draft(Queue(), sys_flag=-(1 << 31) - 1),
            draft(Queue(), reconsume_times=1 << 31),
            draft(Queue(), properties=b"x" * 32768),
        ):
            self.assertIsNone(append.encode([draft(Queue()), other], 1, b"87654321"))
        self.assertIsNone(append.encode([draft(Queue())], 1, b"x" * 20))


class BatchTests(SynchronousTestCase):
    """Drafts of batches."""

    def setUp(self) -> None:
        """A batch of two."""
        self.queue = Queue()
        self.batch = draft(
            self.queue,
            b"",
            properties=b"",
            parts=[(1, b"one", b"A", 7), (2, b"", b"", 8)],
            positions=[100, 196],
            queue_offset=5,
            position=100,
            end=288,
        )

    def test_records(self) -> None:
        """Each message is a record of its own, one behind the other."""
        common = b"12345678", 9, b"87654321"
        one = encode(b"T", b"one", b"A", 3, 5, 100, 5, *common, 1)
        two = encode(b"T", b"", b"", 3, 6, 196, 5, *common, 2)
        self.assertEqual(append.encode([self.batch], 9, b"87654321"), one + two)

    def test_entries(self) -> None:
        """Each message has an entry; a queue that had none pending is noted."""
        single = draft(self.queue, position=288, end=300, tag_code=-9, queue_offset=7)
        prepared = draft(self.queue, position=300, end=310, sys_flag=4)
        rolled = draft(self.queue, position=310, end=320, sys_flag=12)
        other = Queue()
        before = draft(other, position=9, end=20)
        touched: list[Queue] = []
        other.from_position = 10
        append.enter([self.batch, single, prepared, rolled, before], touched)
        self.assertEqual(touched, [self.queue])
        expected = [(100, 96, 7), (196, 92, 8), (288, 12, -9)]
        self.assertEqual([ENTRY.unpack(e) for e in self.queue.pending], expected)
        self.assertEqual(self.queue.pending_codes, [7, 8, -9])
        self.assertEqual((self.queue.pending_offset, self.queue.pending_end), (5, 300))
        self.assertEqual(other.pending, [])


class ColumnTests(SynchronousTestCase):
    """What the index takes of an append."""

    def test_columns(self) -> None:
        """Properties and positions of each, the topic of each run of one queue."""
        one, two = Queue(), Queue()
        two.topic = "U"
        drafts_of = [draft(one, position=5), draft(one, position=6), draft(two)]
        properties = [each.properties for each in drafts_of]
        found = append.columns(drafts_of)
        self.assertEqual(found, (properties, [5, 6, 0], ["T", "U"]))

    def test_unusual(self) -> None:
        """Batches and what was rolled back are left."""
        for other in (draft(Queue(), parts=[]), draft(Queue(), sys_flag=12)):
            self.assertIsNone(append.columns([draft(Queue()), other]))


class AnswerTests(SynchronousTestCase):
    """Answers."""

    @examples()
    @given(st.integers(0, (1 << 62) - 1), st.integers(0, 10**18 - 1), _I32)
    def test_same(self, position: int, queue_offset: int, opaque: int) -> None:
        """They are those of the template."""
        counters, to = Counters(), Connection()
        one = draft(
            None,
            context=(to, opaque, b"KEY", counters),
            status=0,
            position=position,
            queue_offset=queue_offset,
            end=position + 100,
        )
        self.assertEqual(append.answer([one, one], 0, 1024, SEND_ANSWER_END), 2)
        start = Counters.start
        header = SEND_ANSWER % (start, position, queue_offset, b"KEY", opaque)
        self.assertEqual(to.sent, [(frame_of(header) * 2, 2)])
        self.assertEqual(counters.small, (2, 200))

    def test_runs(self) -> None:
        """Connections get theirs in one piece while they follow one another; oneway
        sends are counted; a draft of another kind ends it."""
        one, two = Counters(), Counters()
        a, b = Connection(), Connection()

        def stored(to: Connection | None, counters: Counters, size: int = 50) -> Any:
            return draft(None, context=(to, 1, b"K", counters), status=0, end=size)

        given = [
            stored(a, one),
            stored(None, one),
            stored(a, two),
            stored(b, two, 2000),
            draft(None, context=print, status=0),
            stored(a, two),
            draft(None, context=(a, 1, b"K", one), status=3),
        ]
        self.assertEqual(append.answer(given, 0, 1024, b"}"), 4)
        self.assertEqual([count for _, count in a.sent], [2])
        self.assertEqual([count for _, count in b.sent], [1])
        self.assertEqual((one.small, two.small), ((2, 100), (1, 50)))
        self.assertEqual(two.large, [2000])
        for first, end in ((4, 4), (5, 6), (7, 7)):
            self.assertEqual(append.answer(given, first, 1024, b"}"), end)
