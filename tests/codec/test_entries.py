"""The extents of entries, in both forms."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec import entries as codec
from rocketbroker.records import entries as records


class ExtentsOfTests(SynchronousTestCase):
    """C{extents_of}."""

    def found(self, *places: tuple[int, int]) -> tuple[int, list[int]]:
        """What both give for these positions and sizes."""
        data = b"".join(records.encode(*place, 7) for place in places)
        found = codec.extents_of(data)
        self.assertEqual(records.extents_of(data), found)
        return found

    def test_one(self) -> None:
        """Records that follow one another are one extent."""
        self.assertEqual(self.found((100, 91)), (91, [100, 191]))
        self.assertEqual(self.found((0, 91), (91, 100), (191, 9)), (200, [0, 200]))

    def test_several(self) -> None:
        """Behind a record of another queue a new extent begins."""
        found = self.found((100, 10), (110, 20), (150, 30), (1 << 40, 5))
        self.assertEqual(found, (65, [100, 130, 150, 180, 1 << 40, (1 << 40) + 5]))

    def test_many(self) -> None:
        """Each record may be an extent of its own."""
        places = [(at * 100, 99) for at in range(records.MAX_EXTENT_ENTRIES)]
        total, extents = self.found(*places)
        self.assertEqual((total, len(extents)), (6336, 128))
        self.assertEqual(extents[2:4], [100, 199])

    def test_wrong(self) -> None:
        """Nothing is said of entries that no record can have."""
        found = self.found((100, 10), (-5, 2), (110, -10))
        self.assertEqual(found, (2, [100, 110, -5, -3, 110, 100]))
