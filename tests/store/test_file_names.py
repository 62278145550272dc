"""Names of files."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.file_names import beside, position_of_name, segment_name


class NameTests(SynchronousTestCase):
    """Positions and names."""

    def test_position(self) -> None:
        """A file's name is its first position, in twenty digits; no other is one."""
        self.assertEqual(segment_name(4096), "00000000000000004096")
        self.assertEqual(position_of_name(segment_name(4096)), 4096)
        for name in ("4096", "0000000000000000409x", segment_name(0) + "0", "²" * 20):
            self.assertEqual(position_of_name(name), -1, name)

    def test_beside(self) -> None:
        """A directory beside the log's has the log's name before its own."""
        self.assertEqual(beside("/s/commitlog", "ahead"), "/s/commitlog.ahead")
