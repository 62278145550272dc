"""Rows for people and for programs."""

from __future__ import annotations

import errno
import io
import json

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.rows import (
    FORMATS,
    MAX_WIDTH,
    ROW_BATCH_SIZE,
    OutputError,
    Rows,
    cell,
)


class FullOutput(io.StringIO):
    """An output that takes so many characters."""

    def __init__(self, room: int, error: OSError) -> None:
        super().__init__()
        self.room = room
        self.error = error

    def write(self, text: str) -> int:
        """See L{io.StringIO.write}."""
        self.room -= len(text)
        return super().write(text)

    def flush(self) -> None:
        """See L{io.StringIO.flush}."""
        if self.room < 0:
            raise self.error


class RowsTests(SynchronousTestCase):
    """L{Rows}."""

    def written(self, output: str, *rows: tuple[str, dict[str, object]]) -> str:
        """What becomes of rows."""
        out = io.StringIO()
        sink = Rows(out, output)
        for kind, row in rows:
            sink.add(kind, row)
        sink.close()
        return out.getvalue()

    def test_table(self) -> None:
        """Columns are aligned, numbers to the right; each kind is a table."""
        printed = self.written(
            "table",
            ("a", {"n": 5, "word": "x"}),
            ("a", {"n": 500, "word": ""}),
            ("b", {"z": None}),
        )
        self.assertEqual(printed, "  n  word\n  5  x\n500  -\n\nz\n-\n")

    def test_numbers(self) -> None:
        """A column of numbers stands to the right where some are missing, too."""
        printed = self.written("table", ("a", {"n": None}), ("a", {"n": 10}))
        self.assertEqual(printed, " n\n -\n10\n")
        printed = self.written("table", ("a", {"n": None}), ("a", {"n": "10"}))
        self.assertEqual(printed, "n\n-\n10\n")

    def test_json(self) -> None:
        """One array, or a line each, of objects with their kinds."""
        one: dict[str, object] = {"n": 1}
        rows = (("a", one), ("b", {**one, "n": 2}))
        wanted = [{"kind": "a", "n": 1}, {"kind": "b", "n": 2}]
        self.assertEqual(json.loads(self.written("json", *rows)), wanted)
        self.assertEqual(self.written("json"), "[]\n")
        lines = self.written("jsonl", *rows).splitlines()
        self.assertEqual([json.loads(each) for each in lines], wanted)

    def test_cell(self) -> None:
        """Control characters are escaped; what is too long is cut."""
        self.assertEqual(cell("a\x1b[2Jb\n"), "a\\x1b[2Jb\\n")
        self.assertEqual(len(cell("x" * 1000)), MAX_WIDTH)
        self.assertEqual((cell(True), cell(False)), ("yes", "no"))

    def test_many(self) -> None:
        """Only some rows are held at once."""
        row: dict[str, object] = {"n": 1}
        printed = self.written("table", *[("a", row)] * (ROW_BATCH_SIZE + 1))
        self.assertEqual(printed.count("n\n"), 2)

    def test_listsAreWords(self) -> None:
        """A list, or a table of names, is no notation of Python."""
        self.assertEqual(cell(["a", "b"]), "a b")
        self.assertEqual(cell({"a": 1, "b": 2}), "a=1 b=2")
        self.assertEqual(cell([]), "-")

    def test_full(self) -> None:
        """An output that takes no more is told as such; a reader who has gone is not
        that."""
        full = OSError(errno.ENOSPC, "No space left on device")
        for output in FORMATS:
            sink = Rows(FullOutput(1, full), output)
            sink.add("a", {"n": 5})
            error = self.assertRaises(OutputError, sink.close)
            self.assertEqual(
                str(error), "the output cannot be written: No space left on device"
            )
            gone = Rows(FullOutput(1, BrokenPipeError()), output)
            gone.add("a", {"n": 5})
            self.assertRaises(BrokenPipeError, gone.close)
