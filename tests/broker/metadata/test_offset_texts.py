"""The text of the offset table."""

from __future__ import annotations

from random import Random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.offset_texts import STEP_KEYS, Offsets, OffsetTexts
from rocketbroker.wire.fastjson import dumps

KEYS = ("T@G", "A@G", "%RETRY%G@G", "\u00e9\n@G", "%LMQ%t@%LMQ%g", "x@%LMQ%g", "a", "@")


class OffsetTextsTests(SynchronousTestCase):
    """Tables that change in parts."""

    def setUp(self) -> None:
        """Nothing was committed."""
        self.offsets: Offsets = {}
        self.texts = OffsetTexts()

    def commit(self, key: str, queue_id: int, offset: int) -> None:
        """Commit an offset."""
        self.offsets.setdefault(key, {})[queue_id] = offset
        self.texts.stale.add(key)

    def written(self) -> list[bytes]:
        """The two tables as they are written."""
        queues, light = self.texts.tables()
        return [dumps(queues), b"{}" if light is None else dumps(light)]

    def expected(self) -> list[bytes]:
        """The two tables as a whole."""
        light = {
            key: queues[0]
            for key, queues in self.offsets.items()
            if key.rpartition("@")[2].startswith("%LMQ%") and 0 in queues
        }
        others = {
            key: queues for key, queues in self.offsets.items() if key not in light
        }
        return [dumps(others), dumps(light)]

    def test_parts(self) -> None:
        """However the table changes, its text is that of the whole table."""
        random = Random(1)
        self.assertEqual(self.written(), [b"{}", b"{}"])
        for _ in range(300):
            key = random.choice(KEYS)
            if random.random() < 0.2:
                self.offsets.pop(key, None)
                self.texts.stale.add(key)
            else:
                self.commit(key, random.randrange(12), random.randrange(-2, 1 << 40))
            if random.random() < 0.5:
                self.texts.make(self.offsets)
                self.assertEqual(self.texts.waiting(), 0)
                self.assertEqual(self.written(), self.expected())

    def test_steps(self) -> None:
        """Each step makes some texts; two that make them share the work, and each ends
        when all is made that was stale when it began."""
        for number in range(3 * STEP_KEYS):
            self.commit(f"T@{number}", 0, number)
        first = self.texts.steps(self.offsets)
        next(first)
        self.assertEqual(self.texts.waiting(), 2 * STEP_KEYS)
        self.commit("new", 0, 1)
        second = self.texts.steps(self.offsets)
        self.commit("later", 0, 1)
        for _ in second:
            pass
        self.assertEqual(list(first), [])
        self.assertEqual(self.written(), self.expected())

    def test_unchanged(self) -> None:
        """What has not changed has no step."""
        self.commit("T@G", 0, 1)
        self.texts.make(self.offsets)
        self.assertEqual(list(self.texts.steps(self.offsets)), [])
