# -*- test-case-name: tests.cli.test_rows -*-
"""Rows for people and for programs: a table, one JSON array, or a line of JSON each."""

from __future__ import annotations

import json
from typing import Final, TextIO, final

from rocketbroker.errors import RocketbrokerError

FORMATS: Final = ("table", "json", "jsonl")

_UNWRITABLE: Final = "the output cannot be written: {}"

#: So many rows are held to find the width of their columns.
ROW_BATCH_SIZE: Final = 500

#: No cell of a table is wider; JSON has the whole.
MAX_WIDTH: Final = 200


class OutputError(RocketbrokerError):
    """The output cannot be written, for example because its disk is full."""


def cell(value: object) -> str:
    """A value in a table. Control characters are escaped."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = " ".join(f"{key}={each}" for key, each in value.items())
    elif isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    text = "-" if value is None or value == "" else str(value)
    if not text.isprintable():
        text = "".join(
            each if each.isprintable() else repr(each)[1:-1] for each in text
        )
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 3] + "..."


def is_numeric(column: list[object]) -> bool:
    """Whether a column stands to the right: numbers, and places without one."""
    numbers = {type(value) for value in column if value is not None} - {bool}
    return bool(numbers) and all(issubclass(kind, int | float) for kind in numbers)


def flush(out: TextIO) -> None:
    """Write the buffered part of an output.

    @raise OutputError: it cannot be written.
    """
    try:
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(_UNWRITABLE.format(error.strerror)) from error


@final
class Rows:
    """Writes rows of several kinds, those of one kind together.

    In JSON each row says its kind in the field C{kind}.

    @ivar is_table: whether they are for people.
    """

    def __init__(self, out: TextIO, output: str) -> None:
        """
        @param output: one of L{FORMATS}.
        """
        self.is_table = output == "table"
        self._out = out
        self._output = output
        self._kind = ""
        self._held: list[dict[str, object]] = []
        self._count = 0
        self._tables = 0

    def add(self, kind: str, row: dict[str, object]) -> None:
        """One row."""
        self._count += 1
        if self._output != "table":
            text = json.dumps({"kind": kind, **row})
            if self._output == "json":
                text = ("[" if self._count == 1 else ",\n") + text
            else:
                text += "\n"
            self._write(text)
            return
        if kind != self._kind or len(self._held) >= ROW_BATCH_SIZE:
            self._flush()
            self._kind = kind
        self._held.append(row)

    def line(self, kind: str, row: dict[str, object]) -> None:
        """One row of which people want only the values, without names of columns."""
        if self._output != "table":
            self.add(kind, row)
            return
        self._flush()
        self._write("  ".join(cell(value) for value in row.values()) + "\n")

    def text(self, kind: str, text: str) -> None:
        """A text of several lines, which people see as it is."""
        if self._output != "table":
            self.add(kind, {"text": text})
            return
        self._flush()
        self._write(("\n" if self._tables else "") + text.rstrip("\n") + "\n")
        self._tables += 1

    def details(self, kind: str, row: dict[str, object]) -> None:
        """One row with many values; people get a line for each."""
        if self._output != "table":
            self.add(kind, row)
            return
        self._flush()
        width = max(map(len, row), default=0)
        for name, value in row.items():
            self._write(f"{name.ljust(width)}  {cell(value)}\n")

    def close(self) -> None:
        """Write the buffered part, and the end."""
        if self._output == "json":
            self._write("]\n" if self._count else "[]\n")
        self._flush()
        flush(self._out)

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(_UNWRITABLE.format(error.strerror)) from error

    def _flush(self) -> None:
        if not self._held:
            return
        if self._tables:
            self._write("\n")
        self._tables += 1
        names = list(self._held[0])
        lines = [names, *([cell(row[name]) for name in names] for row in self._held)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        numeric = [is_numeric([row[name] for row in self._held]) for name in names]
        for line in lines:
            text = "  ".join(
                each.rjust(width) if is_number else each.ljust(width)
                for each, width, is_number in zip(line, widths, numeric, strict=True)
            )
            self._write(text.rstrip() + "\n")
        self._held.clear()
