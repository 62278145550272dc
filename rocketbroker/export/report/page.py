# -*- test-case-name: tests.export.report.test_page -*-
"""An export as one page of HTML: for people who want to see that it is whole.

All that the page needs is in it: it can be sent by mail and opened anywhere. What it
shows are the numbers of L{figures<rocketbroker.export.report.figures>}; here they
become words, tables and L{charts<rocketbroker.export.report.charts>}.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

import attrs

from rocketbroker.export.history import History
from rocketbroker.export.lags import Lag
from rocketbroker.export.plans import HOUR_MS
from rocketbroker.export.report.charts import Bar, bar_chart, short, span_bar
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
from rocketbroker.export.report.markup import (
    Markup,
    bytes_text,
    count_of,
    left_out,
    moment,
    paragraph,
    section,
    span_text,
    table,
    whole_or_short,
)
from rocketbroker.export.report.snippets import snippets
from rocketbroker.export.report.style import STYLE
from rocketbroker.export.verify import Fault

#: Where the page goes unless a file is named.
PAGE: Final = "_rocketbroker/report/report.html"

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


def page(subject: Subject) -> str:
    """The page."""
    lags = None
    if subject.lags is not None:
        lags = {lag.queue: lag for lag in subject.lags}
    lines = queue_lines(subject.history, lags)
    parts = [
        header(subject, lines),
        wholeness(subject),
        topics_section(subject, lines),
        queues_section(subject, lines),
        *hours_section(subject.history),
        *speed_section(subject.history),
        *sizes_section(subject),
        losses_section(subject.history),
        schema_section(subject.history),
        *reading_section(subject),
    ]
    title = escape(f"Export {subject.address}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width"/>'
        f"<title>{title}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


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


def header(subject: Subject, lines: Sequence[QueueLine]) -> str:
    """The head of the page, and the numbers that matter most."""
    history = subject.history
    kind, sentence = verdict(subject)
    last = history.commits[-1] if history.commits else None
    newest = max((line.state.last_ms for line in lines), default=-1)
    cards = [
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
        cards.append((f"behind, up to {span_text(slowest)}", whole_or_short(behind)))
    found = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>"
        for name, value in cards
    )
    times = [f"made {moment(subject.now_ms)}"]
    if last is not None:
        times.append(f"last commit {moment(last.done_ms)}")
        times.append(f"newest message {moment(newest)}")
    return (
        f"<header><h1>Export report</h1><p class='address'>{escape(subject.address)}"
        f"</p><p class='note'>{escape(' · '.join(times))}</p></header>"
        f'<p class="verdict {kind}">{escape(sentence)}</p>'
        f'<div class="cards">{found}</div>'
    )


def wholeness(subject: Subject) -> str:
    """Whether the ranges are whole, and when that was looked at."""
    history, faults = subject.history, subject.faults
    said = [
        "Ledger: the ranges of each queue follow on one another, none twice."
        if not faults
        else f"Ledger: {count_of(len(faults), 'fault')}."
    ]
    found = subject.verified
    if found is None:
        said.append("Files: never checked; rocketbroker export verify does it.")
    else:
        since = sum(each.number > int(found["lastCommit"]) for each in history.commits)
        more = f", and {count_of(since, 'commit')} made since" if since else ""
        said.append(
            f"Files: checked {moment(int(found['verified']))} ({found['level']}), "
            f"{count_of(int(found['files']), 'file')}, "
            f"{count_of(int(found['rows']), 'row')}, "
            f"{count_of(int(found['faults']), 'fault')}{more}."
        )
    for plan in history.pending[:MAX_LINES]:
        said.append(
            f"Plan {plan.number} of {plan.topic} waits: "
            f"{count_of(plan.rows, 'message')}, made {moment(plan.made_ms)}. "
            "The next run carries it out."
        )
    rows = [(fault.where, fault.text) for fault in faults[:MAX_LINES]]
    more = left_out(len(faults), "fault")
    listed = table(("Where", "What"), rows, more) if rows else ""
    return section("Is it whole?", *map(paragraph, said), listed)


def topics_section(subject: Subject, lines: Sequence[QueueLine]) -> str:
    """A line for each topic."""
    states = topic_states(subject.history, lines)
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
    titles = ("Topic", "Queues", "Messages", "Size", "Files", "Missing", "Behind")
    more = left_out(len(states), "topic")
    return section("Topics", table((*titles, "Newest message"), rows, more))


def queues_section(subject: Subject, lines: Sequence[QueueLine]) -> str:
    """A line for each queue, with a picture of its offsets."""
    rows = []
    for line in lines[:MAX_LINES]:
        state, lag = line.state, line.lag
        rows.append(
            (
                state.queue.topic,
                f"{state.queue.broker} / {state.queue.queue_id}",
                line.earliest,
                state.end,
                None if lag is None else lag.latest,
                Markup(picture(line)),
                None if lag is None else lag.behind,
                None if lag is None else span_text(lag.behind_ms),
                line.missing,
            )
        )
    note = (
        "The source was not asked (--namesrv or --store): only what is exported."
        if subject.lags is None
        else f"Compared with {subject.source}."
    )
    titles = ("Topic", "Broker / queue", "Earliest", "Exported", "Latest", "")
    more = left_out(len(lines), "queue")
    if more:
        rest = lines[MAX_LINES:]
        rows_left = sum(line.state.rows for line in rest)
        behind = sum(line.lag.behind for line in rest if line.lag is not None)
        missing = sum(line.missing for line in rest)
        more += f": {rows_left:,} messages exported, {missing:,} missing"
        more += "" if subject.lags is None else f", {behind:,} behind"
    return section(
        "Queues",
        legend(("gone", "before the export"), ("bar", "exported"), ("wait", "waits")),
        table((*titles, "Behind", "Age", "Missing"), rows, more),
        note=note + " Those furthest behind come first.",
    )


def legend(*parts: tuple[str, str]) -> str:
    """What colours mean."""
    return '<p class="legend">{}</p>'.format(
        "".join(f'<i class="{kind}"></i>{escape(text)}' for kind, text in parts)
    )


def picture(line: QueueLine) -> str:
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


def hours_section(history: History) -> Iterator[str]:
    """When the messages were stored; nothing without messages."""
    hours, found = periods(history)
    if not found:
        return
    each = {1: "hour", DAY_HOURS: "day"}.get(hours, f"{hours} hours")
    bars = [
        Bar(
            period_name(period.start_ms, hours),
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
    note += f"{moment(found[-1].start_ms + hours * HOUR_MS)}"
    if empty:
        unit = "hour" if hours == 1 else f"period of {each}"
        if hours == DAY_HOURS:
            unit = "day"
        plural = unit.replace("period", "periods") if "period" in unit else f"{unit}s"
        note += f"; nothing was stored in {count_of(empty, unit, plural)}"
    keys = [("bar", "exported")]
    if any(period.missing for period in found):
        keys.append(("missing", "missing"))
    yield section(title, legend(*keys), bar_chart(title, bars), note=f"{note}.")


def speed_section(history: History) -> Iterator[str]:
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
    yield section(title, bar_chart(title, bars), note=note)


def sizes_section(subject: Subject) -> Iterator[str]:
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
    yield section(
        title,
        bar_chart(
            title,
            bars,
            (mark, f"target {bytes_text(subject.target).replace('.0 ', ' ')}"),
            lambda value: short(value) if value == int(value) else "",
        ),
        note=f"{count_of(number, 'file')}, {bytes_text(whole / number)} on average. "
        "The target is what a file holds before compression; a topic has at least one "
        "file per hour and commit.",
    )


def losses_section(history: History) -> str:
    """What is missing, and why."""
    found = losses(history)
    if not found:
        return section("What is missing", paragraph("Nothing."))
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
    titles = ("Topic", "Messages", "Queues", "What", "Commit", "Reason")
    return section(
        "What is missing", table(titles, rows, left_out(len(found), "reason"))
    )


def schema_section(history: History) -> str:
    """The form of the files, and what could not be decoded."""
    found = schemas(history)
    rows = [
        (
            each.topic,
            each.commit,
            each.number,
            ", ".join(each.columns) or "all",
        )
        for each in found[-MAX_LINES:]
    ]
    titles = ("Topic", "From commit", "Schema", "Columns")
    parts = [table(titles, rows, left_out(len(found), "earlier change"))]
    changes = len(found) - len({each.topic for each in found})
    note = "It never changed." if not changes else f"{count_of(changes, 'change')}."
    damaged = undecodable(history)
    if damaged:
        whole = sum(file.decode_errors for file in damaged)
        parts.append(paragraph(f"{whole:,} bodies could not be decompressed:"))
        files = [(file.path, file.decode_errors) for file in damaged[:MAX_LINES]]
        more = left_out(len(damaged), "file")
        parts.append(table(("File", "Bodies"), files, more))
    elif history.commits:
        parts.append(paragraph("Every body could be decoded."))
    return section("Schema and decoding", *parts, note=note if found else "")


def reading_section(subject: Subject) -> Iterator[str]:
    """Programs that read the largest topic."""
    states = topic_states(subject.history, ())
    sized = [state for state in states if state.files]
    if not sized:
        return
    topic = max(sized, key=lambda state: (state.bytes, state.topic)).topic
    blocks = [
        f"<h3>{escape(name)}</h3><pre>{escape(text)}</pre>"
        for name, text in snippets(subject.address, topic)
    ]
    yield section("How to read it", *blocks, note=f"For {topic}; paste and run.")
