"""Messages that tell queues from others."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.plans import Mark
from rocketbroker.export.queue_identity import (
    first_mark,
    last_mark,
    mark_at,
    other_message,
)
from rocketbroker.sources.ranges import Queue, Range
from tests.sources.messages import START_MS, stored
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)


class MarkTests(SynchronousTestCase):
    """Marks of a queue of which some messages are damaged."""

    def setUp(self) -> None:
        """A queue."""
        self.origin = MemoryOrigin({QUEUE: 400})
        self.damage()

    def damage(self, *offsets: int) -> None:
        """Damage these messages, and no others."""
        self.origin.records = dict.fromkeys(offsets, b"garbage")

    def borders(self, start: int, until: int) -> list[int | None]:
        """The offsets of the marks of a range."""
        wanted = Range(QUEUE, start, until)
        found = (first_mark(self.origin, wanted), last_mark(self.origin, wanted))
        return [mark and mark.offset for mark in found]

    def test_borders(self) -> None:
        """The first and the last message that can be read are found."""
        self.assertEqual(self.borders(0, 400), [0, 399])
        self.damage(0, 399)
        self.assertEqual(self.borders(0, 400), [1, 398])
        self.damage(*range(20), *range(390, 400))
        self.assertEqual(self.borders(0, 400), [20, 389])
        self.damage(5, 6)
        self.assertEqual(self.borders(5, 7), [None, None])
        self.assertEqual(self.borders(5, 8), [7, 7])

    def test_far(self) -> None:
        """Nobody looks through a queue of which all is gone."""
        self.damage(*range(300))
        self.assertEqual(self.borders(0, 400), [None, 399])

    def test_mark(self) -> None:
        """A mark says when the message was stored, and its id."""
        mark = mark_at(self.origin, QUEUE, 7)
        assert mark is not None
        self.assertEqual(mark[:2], (7, START_MS + 8))
        self.assertEqual(len(mark.message_id), 32)
        self.damage(7)
        self.assertIsNone(mark_at(self.origin, QUEUE, 7))

    def test_other(self) -> None:
        """Another message shows another queue, damaged and removed ones nothing."""
        marks = [mark_at(self.origin, QUEUE, offset) for offset in (3, 399)]
        known = tuple(mark for mark in marks if mark is not None)
        self.assertEqual(other_message(self.origin, QUEUE, known), "")
        self.damage(399)
        self.origin.first[QUEUE] = 4
        self.assertEqual(other_message(self.origin, QUEUE, known), "")
        self.origin.records[399] = stored(399, b"other", store_ms=5)
        text = "has another message 399 than it had"
        self.assertEqual(other_message(self.origin, QUEUE, known), text)
        self.origin.ends[QUEUE] = 399
        text = "ends at 399, but had a message 399"
        self.assertEqual(other_message(self.origin, QUEUE, known), text)

    def test_withoutId(self) -> None:
        """Marks of old ledgers have no id, and their time tells enough."""
        known = Mark(3, START_MS + 4, "")
        self.assertEqual(other_message(self.origin, QUEUE, (known,)), "")
        self.assertTrue(
            other_message(self.origin, QUEUE, (known._replace(store_ms=1),))
        )
