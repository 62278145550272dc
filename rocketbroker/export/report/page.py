# -*- test-case-name: tests.export.report.test_page -*-
"""The page about an export: for people who want to see that it is whole.

All that the page needs is in it: it can be sent by mail and opened anywhere. What it
shows are the numbers of L{figures<rocketbroker.export.report.figures>}; here they
become rows, sentences and L{charts<rocketbroker.export.report.charts>}, and the
template C{page.html} has the words around them. It escapes all that is put in.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any, Final

import attrs
from jinja2 import Environment, StrictUndefined

from rocketbroker.export.history import History
from rocketbroker.export.lags import Lag
from rocketbroker.export.plans import HOUR_MS
from rocketbroker.export.report import charts
from rocketbroker.export.report.charts import (
    Bar,
    Chart,
    Span,
    bar_chart,
    coordinate,
    short,
    span_bar,
)
from rocketbroker.export.report.figures import (
    MAX_LINES,
    MIB,
    SIZES,
    QueueLine,
    losses,
    periods,
    queue_lines,
    rates,
    schemas,
    sizes,
    topic_states,
    undecodable,
)
from rocketbroker.export.report.number_texts import (
    bytes_text,
    count_of,
    left_out,
    moment,
    span_text,
    whole_or_short,
)
from rocketbroker.export.report.snippets import snippets
from rocketbroker.export.verify import Fault

#: Where the page goes unless a file is named.
PAGE: Final = "_rocketbroker/report/report.html"

#: The template, beside this module.
TEMPLATE: Final = "page.html"

DAY_HOURS: Final = 24


@attrs.frozen
class Subject:
    """What a report is about.

    @ivar address: the export's root, as users name it.
    @ivar faults: what is wrong with the ledger.
    @ivar verified: what the last C{export verify} has left; None for nothing.
    @ivar lags: how far queues are behind; None if the source was not asked.
    @ivar source: what that is, for people.
    @ivar target: how large files were meant to be.
    """

    address: str
    history: History
    faults: tuple[Fault, ...]
    verified: Mapping[str, Any] | None
    lags: tuple[Lag, ...] | None
    source: str
    target: int
    now_ms: int


@attrs.frozen
class Drawing:
    """A chart of the page, with what is said of it.

    @ivar note: a sentence above it.
    @ivar keys: of each colour the class, and what it means; none for a single one.
    """

    chart: Chart
    note: str
    keys: tuple[tuple[str, str], ...] = ()


def page(subject: Subject) -> str:
    """The page."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for function in (moment, count_of, left_out, coordinate, digits):
        environment.filters[function.__name__] = function
    text = resources.files(__package__).joinpath(TEMPLATE).read_text("utf-8")
    return environment.from_string(text).render(context(subject), size=charts)


def digits(number: int) -> str:
    """A number with all its digits, in groups of three."""
    return f"{number:,}"


def context(subject: Subject) -> dict[str, object]:
    """What the template shows, by the names that it uses."""
    history, lags = subject.history, None
    if subject.lags is not None:
        lags = {lag.queue: lag for lag in subject.lags}
    lines = queue_lines(history, lags)
    found = subject.verified
    checked = 0 if found is None else int(found["lastCommit"])
    return {
        "address": subject.address,
        "now_ms": subject.now_ms,
        "last": history.commits[-1] if history.commits else None,
        "newest_ms": max((line.state.last_ms for line in lines), default=-1),
        "verdict": verdict(subject),
        "cards": cards(subject, lines),
        "faults": subject.faults,
        "fault_rows": [(each.where, each.text) for each in subject.faults[:MAX_LINES]],
        "verified": found,
        "since": sum(each.number > checked for each in history.commits),
        "pending": history.pending[:MAX_LINES],
        **topics(history, lines),
        "source": None if subject.lags is None else subject.source,
        "queue_rows": [queue_row(line) for line in lines[:MAX_LINES]],
        "queues_left": queues_left(subject, lines),
        "charts": [*hours(history), *speed(history), *file_sizes(subject)],
        **missing(history),
        **decoding(history),
        "reading": reading(subject),
    }


def verdict(subject: Subject) -> tuple[str, str]:
    """The class of its colour, and one sentence."""
    found = subject.verified or {}
    faults = len(subject.faults) + int(found.get("faults", 0))
    if faults:
        return "bad", f"Not whole: {count_of(faults, 'fault')}, listed below."
    if not subject.history.commits:
        return "warn", "Nothing is exported yet."
    missing = sum(
        gap.wanted.size for commit in subject.history.commits for gap in commit.gaps
    )
    if missing:
        return (
            "warn",
            f"Every offset is accounted for; {count_of(missing, 'message')} could not "
            "be exported, for the reasons below.",
        )
    filtered = sum(
        part.filtered for file in subject.history.files() for part in file.parts
    )
    if filtered:
        return (
            "good",
            "Whole: every message that is wanted is in exactly one file; a filter has "
            f"left out {count_of(filtered, 'message')}.",
        )
    return "good", "Whole: every offset of every queue is in exactly one file."


def cards(subject: Subject, lines: Sequence[QueueLine]) -> list[tuple[str, str]]:
    """The numbers that matter most, each with its name."""
    history = subject.history
    found = [
        ("messages", whole_or_short(sum(line.state.rows for line in lines))),
        ("missing", whole_or_short(sum(line.missing for line in lines))),
        ("topics / queues", f"{len(history.topics):,} / {len(lines):,}"),
        ("files", f"{sum(len(each.files) for each in history.commits):,}"),
        ("size", bytes_text(sum(each.bytes for each in history.commits))),
        ("commits", f"{len(history.commits):,}"),
    ]
    if subject.lags is not None:
        behind = sum(lag.behind for lag in subject.lags)
        slowest = max((lag.behind_ms or 0 for lag in subject.lags), default=0)
        found.append((f"behind, up to {span_text(slowest)}", whole_or_short(behind)))
    return found


def topics(history: History, lines: Sequence[QueueLine]) -> dict[str, object]:
    """A row for each topic, and how many there are."""
    states = topic_states(history, lines)
    rows = [
        (
            state.topic,
            state.queues,
            state.rows,
            bytes_text(state.bytes),
            state.files,
            state.missing,
            state.behind,
            moment(state.last_ms),
        )
        for state in states[:MAX_LINES]
    ]
    return {"topics": len(states), "topic_rows": rows}


def queue_row(line: QueueLine) -> tuple[object, ...]:
    """A queue, with a picture of its offsets."""
    state, lag = line.state, line.lag
    return (
        state.queue.topic,
        f"{state.queue.broker} / {state.queue.queue_id}",
        line.earliest,
        state.end,
        None if lag is None else lag.latest,
        picture(line),
        None if lag is None else lag.behind,
        None if lag is None else span_text(lag.behind_ms),
        line.missing,
    )


def queues_left(subject: Subject, lines: Sequence[QueueLine]) -> str:
    """What is said of the queues that have no row, with their sums."""
    more = left_out(len(lines), "queue")
    if more:
        rest = lines[MAX_LINES:]
        rows_left = sum(line.state.rows for line in rest)
        behind = sum(line.lag.behind for line in rest if line.lag is not None)
        missing = sum(line.missing for line in rest)
        more += f": {rows_left:,} messages exported, {missing:,} missing"
        more += "" if subject.lags is None else f", {behind:,} behind"
    return more


def picture(line: QueueLine) -> Span:
    """A queue's offsets, from the earliest to the latest."""
    state = line.state
    missing = min(line.missing, state.end - state.start)
    parts = [
        ("gone", max(0, state.start - line.earliest)),
        ("missing", missing),
        ("bar", state.end - state.start - missing),
        ("wait", max(0, line.latest - state.end)),
    ]
    return span_bar(f"{state.start:,} to {state.end:,} of {line.latest:,}", parts)


def period_name(start_ms: int, hours: int) -> str:
    """The beginning of a period, as precise as it is short."""
    found = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=start_ms)
    if hours < DAY_HOURS:
        return f"{found:%m-%d %H:%M}"
    return f"{found:%Y-%m-%d}"


def hours(history: History) -> Iterator[Drawing]:
    """When the messages were stored; nothing without messages."""
    length, found = periods(history)
    if not found:
        return
    each = {1: "hour", DAY_HOURS: "day"}.get(length, f"{length} hours")
    bars = [
        Bar(
            period_name(period.start_ms, length),
            period.rows,
            period.missing,
            f"{moment(period.start_ms)}, {each}: {count_of(period.rows, 'message')}"
            + (f", {period.missing:,} missing" if period.missing else ""),
        )
        for period in found
    ]
    title = f"Messages per {each} of store time"
    empty = sum(not (period.rows or period.missing) for period in found)
    note = f"{moment(found[0].start_ms)} to "
    note += f"{moment(found[-1].start_ms + length * HOUR_MS)}"
    if empty:
        unit = "hour" if length == 1 else f"period of {each}"
        if length == DAY_HOURS:
            unit = "day"
        plural = unit.replace("period", "periods") if "period" in unit else f"{unit}s"
        note += f"; nothing was stored in {count_of(empty, unit, plural)}"
    keys = [("bar", "exported")]
    if any(period.missing for period in found):
        keys.append(("missing", "missing"))
    yield Drawing(bar_chart(title, bars), f"{note}.", tuple(keys))


def speed(history: History) -> Iterator[Drawing]:
    """How fast runs were; nothing if no commit says it."""
    found = rates(history.commits)
    if not found:
        return
    bars = []
    for rate in found:
        name = (
            f"{rate.first}" if rate.first == rate.last else f"{rate.first}-{rate.last}"
        )
        megabytes = rate.bytes / MIB / rate.seconds
        bars.append(
            Bar(
                name,
                rate.rows_per_second,
                0,
                f"commit {name}: {rate.rows_per_second:,.0f} messages/s, "
                f"{megabytes:,.1f} MiB/s of Parquet, {rate.seconds:,.1f} s",
            )
        )
    title = "Messages per second, by commit"
    note = "From plan to commit; a plan that had to wait for its replay looks slow."
    yield Drawing(bar_chart(title, bars), note)


def file_sizes(subject: Subject) -> Iterator[Drawing]:
    """How large files are; nothing without files."""
    counts = sizes(subject.history.files())
    number = sum(counts)
    if not number:
        return
    names = [bytes_text(size).replace(".0 ", " ") for size in SIZES]
    bars = [
        Bar(f"< {name}", count, 0, f"smaller than {name}: {count_of(count, 'file')}")
        for name, count in zip(names, counts, strict=False)
    ]
    last = f"{names[-1]} or more: {count_of(counts[-1], 'file')}"
    bars.append(Bar(f"≥ {names[-1]}", counts[-1], 0, last))
    mark = sum(subject.target > size for size in SIZES) + 1
    whole = sum(file.bytes for file in subject.history.files())
    title = "Files by size"
    yield Drawing(
        bar_chart(
            title,
            bars,
            (mark, f"target {bytes_text(subject.target).replace('.0 ', ' ')}"),
            lambda value: short(value) if value == int(value) else "",
        ),
        f"{count_of(number, 'file')}, {bytes_text(whole / number)} on average. "
        "The target is what a file holds before compression; a topic has at least one "
        "file per hour and commit.",
    )


def missing(history: History) -> dict[str, object]:
    """What is missing and why: rows, and how many reasons there are."""
    found = losses(history)
    rows = [
        (
            loss.topic,
            loss.messages,
            loss.queues,
            "removed at the source" if loss.is_retention else "hole",
            str(loss.first)
            if loss.first == loss.last
            else f"{loss.first} to {loss.last}",
            loss.reason,
        )
        for loss in found[:MAX_LINES]
    ]
    return {"losses": len(found), "loss_rows": rows}


def decoding(history: History) -> dict[str, object]:
    """The form of the files, and what could not be decoded."""
    found, damaged = schemas(history), undecodable(history)
    rows = [
        (each.topic, each.commit, each.number, ", ".join(each.columns) or "all")
        for each in found[-MAX_LINES:]
    ]
    return {
        "schemas": len(found),
        "schema_rows": rows,
        "changes": len(found) - len({each.topic for each in found}),
        "undecodable": sum(file.decode_errors for file in damaged),
        "damaged": len(damaged),
        "damaged_rows": [
            (file.path, file.decode_errors) for file in damaged[:MAX_LINES]
        ],
    }


def reading(subject: Subject) -> dict[str, object] | None:
    """Programs that read the largest topic; None if there is no file."""
    states = topic_states(subject.history, ())
    sized = [state for state in states if state.files]
    if not sized:
        return None
    topic = max(sized, key=lambda state: (state.bytes, state.topic)).topic
    return {"topic": topic, "programs": snippets(subject.address, topic)}
