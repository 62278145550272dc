"""Tests of L{rocketbroker.broker.schedule.delay_level}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.schedule.delay_level import (
    LAST_EXTENSION_ADDRESS,
    MAX_BYTES,
    DelayLevel,
    find_due,
)
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.store.shared_positions import MIN
from tests.broker.rig import HOST, WALL_MS, Rig

SECOND = 1000


class LevelCase(SynchronousTestCase):
    """Level 1, a second, of a store in memory."""

    def setUp(self) -> None:
        """Nothing waits."""
        self.rig = Rig({"maxMessageSize": "60000"})
        self.addCleanup(self.rig.close)
        self.store = self.rig.store
        queue = self.store.queue(SCHEDULE_TOPIC, 0)
        assert isinstance(queue, Queue)
        self.queue = queue
        self.level = self.at(0)

    def at(self, offset: int) -> DelayLevel:
        """The level when it has come to that offset."""
        return DelayLevel(1, SECOND, self.queue, offset)

    def wait(
        self, body: bytes = b"body", place: bytes = b"REAL_TOPIC\x01T\x02REAL_QID\x010"
    ) -> Draft:
        """Let a message wait, stored now."""
        properties = b"DELAY\x011\x02" + place
        draft = Draft(self.queue, body, properties, 0, 0, 0, HOST, 0, 0, None)
        self.store.append([draft])
        self.assertEqual(draft.status, PUT_OK)
        self.rig.scheduler.dispatch()
        return draft

    def found(self, now_ms: int, most: int = 100) -> tuple[list[int], list[int], int]:
        """Offsets of what is due and of what is unreadable, and where to go on."""
        step = find_due(self.store, self.level, most, now_ms)
        messages = [offset for offset, _ in step.messages]
        return messages, [offset for offset, _ in step.unreadable], step.next_offset

    def rewrite(self, offset: int, position: int, size: int, code: int) -> None:
        """Change an entry of the queue."""
        (file,) = self.queue.files.all
        file.file.pwrite(ENTRY.pack(position, size, code), offset * ENTRY.size)


class FindTests(LevelCase):
    """What is due."""

    def test_times(self) -> None:
        """A message is due when its level has passed since it was stored."""
        self.wait()
        self.rig.clock.advance(0.5)
        self.wait()
        due = WALL_MS + SECOND
        step = find_due(self.store, self.level, 100, due - 1)
        self.assertEqual((step.messages, step.next_ms), ([], due))
        step = find_due(self.store, self.level, 100, due)
        self.assertEqual([offset for offset, _ in step.messages], [0])
        self.assertEqual((step.next_offset, step.next_ms), (1, due + 500))
        self.assertEqual(self.found(due + 500), ([0, 1], [], 2))

    def test_setBack(self) -> None:
        """A message from a later time than now is due at once, as in RocketMQ."""
        self.wait()
        self.assertEqual(self.found(WALL_MS), ([], [], 0))
        self.assertEqual(self.found(WALL_MS - 1), ([0], [], 1))

    def test_most(self) -> None:
        """No more than was asked for."""
        for _ in range(5):
            self.wait()
        self.assertEqual(self.found(WALL_MS + SECOND, 3), ([0, 1, 2], [], 3))

    def test_bytes(self) -> None:
        """Not many large ones at once, but always one."""
        for _ in range(10):
            self.wait(b"x" * 60_000)
        count = MAX_BYTES // 60_000
        offsets = list(range(count))
        self.assertEqual(self.found(WALL_MS + SECOND), (offsets, [], count))

    def test_ahead(self) -> None:
        """What is delivered is passed over."""
        for _ in range(3):
            self.wait()
        self.level.ahead = {1}
        self.assertEqual(self.found(WALL_MS + SECOND), ([0, 2], [], 3))

    def test_extension(self) -> None:
        """A tag code that is no time: it follows from the store time, as in queues
        that RocketMQ has written with extensions."""
        draft = self.wait()
        size = draft.end - draft.position
        self.rewrite(0, draft.position, size, LAST_EXTENSION_ADDRESS)
        self.assertEqual(self.found(WALL_MS + SECOND - 1), ([], [], 0))
        self.assertEqual(self.found(WALL_MS + SECOND), ([0], [], 1))
        self.rewrite(0, draft.position + 1, size, LAST_EXTENSION_ADDRESS - 1)
        self.assertEqual(self.found(WALL_MS), ([], [0], 1))

    def test_unreadable(self) -> None:
        """An entry that points to anything but a message that waits in this queue is
        passed over, and its neighbours are found."""
        first, draft, last = self.wait(), self.wait(), self.wait()
        other = self.rig.append()
        self.rig.scheduler.dispatch()
        size = draft.end - draft.position
        for position, length in (
            (draft.position + 1, size),
            (draft.position, size - 1),
            (-1, size),
            (last.end + 1_000_000, size),
            (0, 0x7FFFFFFF),
            (other.position, other.end - other.position),
        ):
            self.rewrite(1, position, length, WALL_MS)
            self.assertEqual(self.found(WALL_MS + SECOND), ([0, 2], [1], 3))
        self.assertEqual(first.status, PUT_OK)

    def test_flippedBit(self) -> None:
        """A body that is not what was sent is not sent on under a new checksum."""
        draft = self.wait(b"body")
        file = self.rig.disk.open("/store/commitlog/00000000000000000000")
        content = file.pread(draft.end, 0)
        file.pwrite(b"bodx", content.index(b"body"))
        self.assertEqual(self.found(WALL_MS + SECOND), ([], [0], 1))

    def test_nowhere(self) -> None:
        """A message that does not say where it belongs cannot be delivered."""
        self.wait(place=b"REAL_TOPIC\x01T\x02")
        self.assertEqual(self.found(WALL_MS + SECOND), ([], [0], 1))


class ProgressTests(LevelCase):
    """The two offsets."""

    def test_kept(self) -> None:
        """What may be written down follows the flush, step by step."""
        level = self.level
        for offset, end in ((3, 300), (5, 500), (6, 500)):
            level.end = end
            level.advance(offset)
        self.assertEqual((level.offset, level.kept_offset), (6, 0))
        for flushed, kept in ((299, 0), (300, 3), (499, 3), (500, 6)):
            level.keep(flushed)
            self.assertEqual(level.kept_offset, kept)

    def test_tooLarge(self) -> None:
        """An offset behind the queue is its end: a crash may cut the log."""
        self.wait()
        level = self.at(7)
        self.assertEqual(level.correct(), 0)
        self.assertEqual((level.offset, level.kept_offset), (1, 1))

    def test_notDispatched(self) -> None:
        """What is in the log and not yet in the queue counts."""
        draft = Draft(self.queue, b"x", b"DELAY\x011", 0, 0, 0, HOST, 0, 0, None)
        self.store.append([draft])
        level = self.at(1)
        self.assertEqual((level.correct(), level.offset), (0, 1))

    def test_tooSmall(self) -> None:
        """One before the queue is its beginning; what is between is gone."""
        for _ in range(3):
            self.wait()
        self.queue.positions.view[self.queue.slot + MIN] = 2
        self.assertEqual(self.level.correct(), 2)
        self.assertEqual(self.level.offset, 2)
        self.level.keep(0)
        self.assertEqual(self.level.kept_offset, 2)
