# -*- test-case-name: tests.export.test_jsonlines -*-
"""Progress of an export as lines of JSON, for schedulers and other programs.

Each line has C{kind}, what happened (C{exporting}, C{progress}, C{exported}, C{lost},
C{data_loss}, C{waiting}, ...), and C{time}, ms since 1970; the rest says more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TextIO, final

from rocketbroker.export.progress import LINE_SECONDS, Done


@final
class JsonDisplay:
    """Provides L{Display<rocketbroker.export.progress.Display>}."""

    def __init__(self, out: TextIO, wall_ms: Callable[[], int]) -> None:
        self._out = out
        self._wall_ms = wall_ms
        self._next = 0
        self._rows = self._files = 0

    def say(self, text: str, **values: object) -> None:
        """See L{Display.say}."""
        self._line(text.replace(" ", "_"), values)

    def start(self, rows: int, files: int) -> None:
        """See L{Display.start}."""
        self._rows, self._files = rows, files
        self._next = self._wall_ms() + int(LINE_SECONDS * 1000)

    def show(self, done: Done) -> None:
        """See L{Display.show}: now and then."""
        now = self._wall_ms()
        if now < self._next:
            return
        self._next = now + int(LINE_SECONDS * 1000)
        whole = {"total": self._rows, "total_files": self._files}
        self._line("progress", {**done._asdict(), **whole})

    def stop(self) -> None:
        """See L{Display.stop}."""

    def _line(self, kind: str, values: dict[str, object]) -> None:
        row = {"kind": kind, "time": self._wall_ms(), **values}
        text = json.dumps(row, default=str, ensure_ascii=False)
        print(text, file=self._out, flush=True)
