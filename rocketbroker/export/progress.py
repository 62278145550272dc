# -*- test-case-name: tests.export.test_progress -*-
"""Progress of an export: a bar on a terminal, C{key=value} lines elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TextIO, final

#: Without a terminal a line is enough this often.
LINE_SECONDS: Final = 10.0


class Done(NamedTuple):
    """How much of a run is done."""

    rows: int
    bytes: int
    files: int


class Display(Protocol):
    """Shows it."""

    def say(self, text: str, **values: object) -> None:
        """Something happened."""

    def start(self, rows: int, files: int) -> None:
        """So much is to be done."""

    def show(self, done: Done) -> None:
        """So much is done."""

    def stop(self) -> None:
        """It is over, well or not."""


def read_reports(folder: str) -> Done:
    """The sum of the tasks' own counts."""
    rows = size = files = 0
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        # It has not begun, or is over.
        names = []
    for name in names:
        if not name.endswith(".json"):
            continue
        try:
            with open(os.path.join(folder, name), "rb") as file:
                words = json.load(file)
            rows, size, files = rows + words[0], size + words[1], files + words[2]
        except (OSError, ValueError, TypeError, LookupError):
            continue
    return Done(rows, size, files)


def time_left(done: int, total: int, seconds: float) -> int | None:
    """How many seconds the rest takes at the same rate; None if nobody can know."""
    if done <= 0 or seconds <= 0:
        return None
    return max(0, round((total - done) * seconds / done))


@final
class LineDisplay:
    """C{key=value} lines, for logs and schedulers."""

    def __init__(self, out: TextIO, monotonic: Callable[[], float]) -> None:
        self._out = out
        self._monotonic = monotonic
        self._began = self._next = 0.0
        self._rows = self._files = 0

    def say(self, text: str, **values: object) -> None:
        """See L{Display.say}."""
        self._line(event=text.replace(" ", "_"), **values)

    def start(self, rows: int, files: int) -> None:
        """See L{Display.start}."""
        self._rows, self._files = rows, files
        self._began = self._monotonic()
        self._next = self._began + LINE_SECONDS

    def show(self, done: Done) -> None:
        """See L{Display.show}."""
        now = self._monotonic()
        if now < self._next:
            return
        self._next = now + LINE_SECONDS
        seconds = now - self._began
        left = time_left(done.rows, self._rows, seconds)
        self._line(
            event="progress",
            rows=done.rows,
            total=self._rows,
            bytes=done.bytes,
            files=done.files,
            total_files=self._files,
            rows_per_second=round(done.rows / seconds),
            seconds_left="unknown" if left is None else left,
        )

    def stop(self) -> None:
        """See L{Display.stop}."""

    def _line(self, **values: object) -> None:
        words = [f"{key}={quoted(value)}" for key, value in values.items()]
        print(" ".join(words), file=self._out, flush=True)


def quoted(value: object) -> str:
    """A value that stays one word."""
    text = str(value)
    if not text or any(sign.isspace() or sign in '"=' for sign in text):
        return json.dumps(text, ensure_ascii=False)
    return text


@final
class BarDisplay:
    """A bar, with rate and time left."""

    def __init__(self, console: Any) -> None:
        """
        @param console: rich's.
        """
        self._console = console
        self._bar: Any = None
        self._task: Any = None

    def say(self, text: str, **values: object) -> None:
        """See L{Display.say}."""
        words = "  ".join(
            f"[dim]{key.replace('_', ' ')}[/dim] {shown(value)}"
            for key, value in values.items()
        )
        self._console.print(f"[bold]{text}[/bold]  {words}".rstrip(), highlight=False)

    def start(self, rows: int, files: int) -> None:
        """See L{Display.start}."""
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("exporting"),
            progress.BarColumn(bar_width=None),
            progress.TextColumn("{task.completed:,.0f} of {task.total:,.0f} messages"),
            progress.TextColumn("{task.fields[size]}"),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TextColumn("files {task.fields[files]}/{task.fields[all_files]}"),
            progress.TimeRemainingColumn(),
            console=self._console,
            expand=True,
        )
        self._task = self._bar.add_task(
            "", total=rows, size="", rate="", files=0, all_files=files
        )
        self._bar.start()

    def show(self, done: Done) -> None:
        """See L{Display.show}."""
        task = self._bar.tasks[0]
        seconds = task.elapsed or 0
        rate = f"{done.rows / seconds:,.0f}/s" if seconds else ""
        self._bar.update(
            self._task,
            completed=done.rows,
            size=megabytes(done.bytes),
            rate=rate,
            files=done.files,
        )

    def stop(self) -> None:
        """See L{Display.stop}."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def megabytes(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 1_000_000:,.1f} MB"


def shown(value: object) -> str:
    """A value for people."""
    text = f"{value:,}" if isinstance(value, int | float) else str(value)
    return text.replace("[", "\\[")
