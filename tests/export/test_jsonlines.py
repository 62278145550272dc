"""Lines of JSON."""

from __future__ import annotations

import io
import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.jsonlines import JsonDisplay
from rocketbroker.export.progress import Done
from rocketbroker.sources.ranges import Range
from tests.export.worlds import ZERO


class JsonTests(SynchronousTestCase):
    """L{JsonDisplay}."""

    def setUp(self) -> None:
        """A display whose clock stands."""
        self.out = io.StringIO()
        self.now = 5
        self.display = JsonDisplay(self.out, lambda: self.now)

    def rows(self) -> list[dict[str, Any]]:
        """What was printed."""
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def test_events(self) -> None:
        """What happens is a line; numbers stay numbers, all else becomes text."""
        self.display.say("data loss", rows=3, none=None, range=Range(ZERO, 1, 2)[1:])
        self.display.say("failed", reason=ValueError("é"))
        self.assertEqual(
            self.rows(),
            [
                {"kind": "data_loss", "time": 5, "rows": 3, "none": None}
                | {"range": [1, 2]},
                {"kind": "failed", "time": 5, "reason": "é"},
            ],
        )

    def test_progress(self) -> None:
        """Progress is a line every ten seconds."""
        self.display.start(100, 2)
        for self.now in (6, 10_004, 10_005, 10_006):
            self.display.show(Done(self.now, 1, 0))
        self.display.stop()
        (row,) = self.rows()
        self.assertEqual(
            (row["kind"], row["rows"], row["total"]), ("progress", 10_005, 100)
        )
        self.assertEqual((row["files"], row["total_files"]), (0, 2))
