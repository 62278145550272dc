# -*- test-case-name: tests.export.report.test_figures -*-
"""The figures of a report, counted from a ledger; bounded, however long the ledger is.

A ledger of years has thousands of commits, hours and queues. People see no more than a
hundred bars, so hours and commits are put together until there are no more, and of long
lists the first lines are given, with the sum of the others.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from rocketbroker.export.history import (
    Commit,
    DataFile,
    Gap,
    History,
    QueueState,
    queue_states,
)
from rocketbroker.export.lags import Lag
from rocketbroker.export.plans import HOUR_MS
from rocketbroker.sources.ranges import Queue

#: No chart has more bars.
MAX_BARS: Final = 120

#: No list has more lines; what is left out is summed up.
MAX_LINES: Final = 30

#: Hours that a bar stands for: the first of these with which there are few enough.
BAR_HOURS: Final = (1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760)

#: The folders of a file's hour.
FOLDERS: Final = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/hour=(\d\d)/")

MIB: Final = 1024 * 1024

#: Borders of the groups of files by size.
SIZES: Final = tuple(MIB << n for n in range(10))


@attrs.frozen
class Period:
    """What was stored in some hours.

    @ivar missing: messages of those hours that are in no file.
    """

    start_ms: int
    rows: int
    missing: int


@attrs.frozen
class Rate:
    """How fast some commits were made.

    @ivar first: the number of the first one, and of the last one.
    @ivar seconds: from plan to commit.
    """

    first: int
    last: int
    rows: int
    bytes: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """Of all of them together."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0


@attrs.frozen
class Schema:
    """A form that files have from a commit on.

    @ivar columns: their names; empty for all.
    """

    topic: str
    commit: int
    number: int
    columns: tuple[str, ...]


@attrs.frozen
class Loss:
    """Messages of one topic that are missing for one reason.

    @ivar is_retention: see L{Gap}.
    @ivar first: the number of the first commit that says so, and of the last one.
    """

    topic: str
    reason: str
    is_retention: bool
    messages: int
    queues: int
    first: int
    last: int


@attrs.frozen
class TopicState:
    """What is exported of one topic.

    @ivar behind: what waits at the source; None if nobody has asked.
    @ivar last_ms: when the last exported message was stored; -1 if there is none.
    """

    topic: str
    queues: int
    rows: int
    bytes: int
    files: int
    missing: int
    last_ms: int
    behind: int | None


@attrs.frozen
class QueueLine:
    """One queue of a report.

    @ivar lag: how far it is behind; None if nobody has asked.
    """

    state: QueueState
    lag: Lag | None

    @property
    def missing(self) -> int:
        """Messages that are in no file."""
        return self.state.holes + self.state.lost

    @property
    def earliest(self) -> int:
        """The first offset of the source, or else of the export."""
        found = None if self.lag is None else self.lag.earliest
        return self.state.start if found is None else found

    @property
    def latest(self) -> int:
        """The end of the source's queue, or else of the export."""
        found = None if self.lag is None else self.lag.latest
        return self.state.end if found is None else max(found, self.state.end)


def hour_of(path: str) -> int:
    """When the hour of a file begins, ms since 1970; -1 if its path does not say."""
    found = FOLDERS.search(path)
    if found is None:
        return -1
    day = datetime.date.fromisoformat(found[1])
    days = (day - datetime.date(1970, 1, 1)).days
    return (days * 24 + int(found[2])) * HOUR_MS


def following_hour(commit: Commit, gap: Gap) -> int:
    """The hour of the messages behind those that were removed; that of the commit if
    there are none."""
    for file in commit.files:
        for part in file.parts:
            if part.wanted.queue == gap.wanted.queue:
                return hour_of(file.path)
    return (commit.made_ms or commit.done_ms) // HOUR_MS * HOUR_MS


def periods(history: History) -> tuple[int, list[Period]]:
    """Messages by the time at which they were stored.

    @return: how many hours a period has; the periods, in order, from the first to the
        last one, those too in which nothing was stored.
    """
    hours: dict[int, list[int]] = {}
    for commit in history.commits:
        for file in commit.files:
            count = hours.setdefault(hour_of(file.path), [0, 0])
            count[0] += file.rows
            count[1] += sum(gap.wanted.size for part in file.parts for gap in part.gaps)
        for gap in commit.lost:
            hour = following_hour(commit, gap)
            hours.setdefault(hour, [0, 0])[1] += gap.wanted.size
    hours.pop(-1, None)
    if not hours:
        return 1, []
    first, last = min(hours), max(hours)
    whole = (last - first) // HOUR_MS + 1
    each = next((n for n in BAR_HOURS if whole < n * MAX_BARS), whole // MAX_BARS + 1)
    width = each * HOUR_MS
    start = first // width * width
    sums = [[0, 0] for _ in range((last - start) // width + 1)]
    for hour, (rows, missing) in hours.items():
        count = sums[(hour - start) // width]
        count[0] += rows
        count[1] += missing
    return each, [Period(start + n * width, *count) for n, count in enumerate(sums)]


def rates(commits: Sequence[Commit]) -> list[Rate]:
    """How fast commits were made, in order; those of which it is known."""
    timed = [each for each in commits if 0 < each.made_ms < each.done_ms]
    size = -(-len(timed) // MAX_BARS) or 1
    groups = [timed[start : start + size] for start in range(0, len(timed), size)]
    return [
        Rate(
            group[0].number,
            group[-1].number,
            sum(each.rows for each in group),
            sum(each.bytes for each in group),
            sum(each.done_ms - each.made_ms for each in group) / 1000,
        )
        for group in groups
    ]


def sizes(files: Iterable[DataFile]) -> list[int]:
    """How many files are smaller than the first of L{SIZES}, than the second, and so
    on; the last number is that of files that are larger than all."""
    counts = [0] * (len(SIZES) + 1)
    for file in files:
        counts[sum(file.bytes >= border for border in SIZES)] += 1
    return counts


def schemas(history: History) -> list[Schema]:
    """The form of the files of each topic, and each change of it, by commit."""
    found: list[Schema] = []
    now: dict[str, tuple[int, tuple[str, ...]]] = {}
    for commit in history.commits:
        for file in commit.files:
            form = file.schema, tuple(file.row.get("columns") or ())
            if now.get(commit.topic) != form:
                now[commit.topic] = form
                found.append(Schema(commit.topic, commit.number, *form))
    return found


def losses(history: History) -> list[Loss]:
    """What is missing, by topic and reason; the most first."""
    groups: dict[tuple[str, str, bool], list[Gap]] = {}
    for commit in history.commits:
        for gap in commit.gaps:
            # Reasons that name offsets are the same reason.
            reason = re.sub(r"\b\d+\b", "…", gap.reason)
            key = commit.topic, reason, gap.is_retention
            groups.setdefault(key, []).append(gap)
    found = [
        Loss(
            topic,
            gaps[0].reason if len(gaps) == 1 else reason,
            is_retention,
            sum(gap.wanted.size for gap in gaps),
            len({gap.wanted.queue for gap in gaps}),
            min(gap.commit for gap in gaps),
            max(gap.commit for gap in gaps),
        )
        for (topic, reason, is_retention), gaps in groups.items()
    ]
    return sorted(found, key=lambda loss: (-loss.messages, loss.topic, loss.reason))


def undecodable(history: History) -> list[DataFile]:
    """The files in which bodies are still compressed; the most first."""
    found = [file for file in history.files() if file.decode_errors]
    return sorted(found, key=lambda file: (-file.decode_errors, file.path))


def queue_lines(history: History, lags: Mapping[Queue, Lag] | None) -> list[QueueLine]:
    """All queues: those first that are furthest behind, then those that miss most."""
    states = {state.queue: state for state in queue_states(history)}
    known = lags or {}
    lines = [QueueLine(state, known.get(queue)) for queue, state in states.items()]
    for queue, lag in known.items():
        if queue not in states:
            start = lag.earliest or 0
            state = QueueState(queue, start, start, 0, 0, 0, -1)
            lines.append(QueueLine(state, lag))

    def urgency(line: QueueLine) -> tuple[int, int, Queue]:
        behind = 0 if line.lag is None else line.lag.behind
        return -behind, -line.missing, line.state.queue

    return sorted(lines, key=urgency)


def topic_states(history: History, lines: Iterable[QueueLine]) -> list[TopicState]:
    """What is exported of each topic; the largest first."""
    sums: dict[str, list[int]] = {}
    for commit in history.commits:
        count = sums.setdefault(commit.topic, [0, 0])
        count[0] += commit.bytes
        count[1] += len(commit.files)
    queues: dict[str, list[QueueLine]] = {}
    for line in lines:
        queues.setdefault(line.state.queue.topic, []).append(line)
    found = []
    for topic in {*sums, *queues}:
        of_topic = queues.get(topic, [])
        lags = [line.lag.behind for line in of_topic if line.lag is not None]
        size, files = sums.get(topic, (0, 0))
        found.append(
            TopicState(
                topic,
                len(of_topic),
                sum(line.state.rows for line in of_topic),
                size,
                files,
                sum(line.missing for line in of_topic),
                max((line.state.last_ms for line in of_topic), default=-1),
                sum(lags) if lags else None,
            )
        )
    return sorted(found, key=lambda state: (-state.rows, state.topic))
