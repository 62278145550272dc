# -*- test-case-name: tests.export.test_plans -*-
"""The plan of an export, as values and as JSON; pure.

A plan says which offset ranges are exported and into which files, before a byte of data
is written, and of which cluster, brokers and messages. Names of files, their rows and
their row groups follow from it, so whoever carries out a plan again, perhaps from
another source, writes the same files. C{docs/facts/spark.md 8}.

Version 2 of the files has what a plan binds to, files of several ranges, and reasons of
holes. Version 1 is read.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import Hole

#: The version of the JSON files below C{_rocketbroker}, and those that are read.
VERSION: Final = 2
VERSIONS: Final = (1, 2)

#: Rows in a row group of a plan that says nothing.
GROUP_ROWS: Final = 131_072

#: What stands in names of topics but not of files; none of the signs that stand for it
#: can be in a name.
ESCAPES: Final = {"%": "~25", "|": "~7C"}

HOUR_MS: Final = 3_600_000

#: The messages at the borders of a range, as manifest rows name them.
SIDES: Final = ("first", "last")

#: How many marks an end has.
MARKS: Final = 2

#: The last hour of the year 9999, for messages whose store time is nonsense.
LAST_HOUR: Final = 70_389_527


class Mark(NamedTuple):
    """A message that tells whether a queue is still the same one.

    @ivar store_ms: when it was stored, ms since 1970.
    @ivar message_id: its id.
    """

    offset: int
    store_ms: int
    message_id: str


class Lost(NamedTuple):
    """Messages that were gone before they were exported.

    @ivar reason: why, in words.
    """

    gone: Range
    reason: str


@attrs.frozen
class FileTask:
    """One file of a plan.

    @ivar path: below the root, with slashes.
    @ivar wanted: the messages that are in it: ranges, one after the other.
    @ivar group_rows: so many rows are in each of its row groups but the last.
    """

    path: str
    wanted: tuple[Range, ...]
    group_rows: int = GROUP_ROWS

    @property
    def size(self) -> int:
        """How many offsets it covers."""
        return sum(part.size for part in self.wanted)


@attrs.frozen
class End:
    """Up to where a queue is exported.

    @ivar offset: the first queue offset that is not.
    @ivar marks: exported messages, the last one that could be read first; empty if
        none could.
    """

    offset: int
    marks: tuple[Mark, ...] = ()


@attrs.frozen
class PlanSource:
    """Where the messages of a plan come from.

    @ivar kind: C{nameServer} or C{store}; empty if it is not known.
    @ivar clusters: the names of the clusters; empty where nobody knows, as offline.
    @ivar brokers: the names of the brokers; empty if they are not known.
    """

    kind: str = ""
    clusters: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()


@attrs.frozen
class Plan:
    """A plan.

    @ivar number: plans are numbered from 1, over all topics.
    @ivar made_ms: when it was made.
    @ivar ranges: the exported offsets, queue by queue.
    @ivar files: where to.
    @ivar lost: what was removed before the export, if that was allowed.
    @ivar source: where from.
    @ivar marks: of each queue the first and the last message of its range that could
        be read when the plan was made.
    @ivar reading: the options that rows depend on, by name.
    """

    number: int
    topic: str
    made_ms: int
    ranges: tuple[Range, ...]
    files: tuple[FileTask, ...]
    lost: tuple[Lost, ...] = ()
    source: PlanSource = PlanSource()
    marks: Mapping[Queue, tuple[Mark, ...]] = attrs.field(factory=dict)
    reading: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def rows(self) -> int:
        """How many messages it covers."""
        return sum(wanted.size for wanted in self.ranges)


def escape(name: str) -> str:
    """A topic's or broker's name as a part of a path."""
    for sign, instead in ESCAPES.items():
        name = name.replace(sign, instead)
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ConfigurationError(f"{name!r} cannot be a part of a path")
    return name


def file_path(wanted: Sequence[Range], store_ms: int) -> str:
    """Where the messages of ranges go that were stored in the hour of C{store_ms}.

    A file is named by its first range, which is in no other one, and says how many
    more there are.
    """
    hours = min(max(0, store_ms // HOUR_MS), LAST_HOUR)
    hour = datetime.datetime(1970, 1, 1) + datetime.timedelta(hours=hours)
    first = wanted[0]
    topic, broker = escape(first.queue.topic), escape(first.queue.broker)
    name = (
        f"{topic}+{broker}+{first.queue.queue_id:04d}"
        f"+{first.start:020d}-{first.until:020d}"
    )
    more = f"+{len(wanted) - 1}more" if len(wanted) > 1 else ""
    folder = f"{topic}/dt={hour:%Y-%m-%d}/hour={hour:%H}"
    return f"{folder}/{name}{more}.zstd.parquet"


def queue_json(wanted: Range) -> dict[str, Any]:
    """A range of a known topic."""
    return {
        "brokerName": wanted.queue.broker,
        "queueId": wanted.queue.queue_id,
        "from": wanted.start,
        "until": wanted.until,
    }


def queue_range(topic: str, tree: Mapping[str, Any]) -> Range:
    """The same from JSON."""
    queue = Queue(topic, str(tree["brokerName"]), int(tree["queueId"]))
    return Range(queue, int(tree["from"]), int(tree["until"]))


def mark_json(mark: Mark) -> dict[str, Any]:
    """A mark as JSON."""
    return {
        "offset": mark.offset,
        "storeTimestamp": mark.store_ms,
        "msgId": mark.message_id,
    }


def read_mark(tree: Mapping[str, Any]) -> Mark:
    """The same from JSON."""
    return Mark(int(tree["offset"]), int(tree["storeTimestamp"]), str(tree["msgId"]))


def lost_json(lost: Iterable[Lost]) -> list[dict[str, Any]]:
    """What is lost, as JSON."""
    return [{**queue_json(each.gone), "reason": each.reason} for each in lost]


def read_lost(topic: str, trees: Iterable[Mapping[str, Any]]) -> tuple[Lost, ...]:
    """The same from JSON; version 1 has no reasons."""
    return tuple(
        Lost(queue_range(topic, each), str(each.get("reason", "deleted")))
        for each in trees
    )


def plan_bytes(plan: Plan) -> bytes:
    """The plan as JSON."""
    tree = {
        "version": VERSION,
        "number": plan.number,
        "topic": plan.topic,
        "made": plan.made_ms,
        "source": plan.source.kind,
        "clusters": plan.source.clusters,
        "brokers": plan.source.brokers,
        "reading": dict(plan.reading),
        "rows": plan.rows,
        "ranges": [
            {
                **queue_json(wanted),
                "marks": [mark_json(mark) for mark in plan.marks.get(wanted.queue, ())],
            }
            for wanted in plan.ranges
        ],
        "lost": lost_json(plan.lost),
        "files": [
            {
                "path": file.path,
                "groupRows": file.group_rows,
                "ranges": [queue_json(part) for part in file.wanted],
            }
            for file in plan.files
        ],
    }
    return json.dumps(tree, indent=1).encode("utf-8")


def read_plan(data: bytes) -> Plan:
    """The plan of these bytes.

    @raise ValueError: they are none.
    """
    try:
        tree = json.loads(data)
        check_version(tree)
        topic = str(tree["topic"])
        ranges = tuple(queue_range(topic, each) for each in tree["ranges"])
        return Plan(
            number=int(tree["number"]),
            topic=topic,
            made_ms=int(tree["made"]),
            ranges=ranges,
            lost=read_lost(topic, tree["lost"]),
            files=tuple(read_file(topic, each) for each in tree["files"]),
            source=PlanSource(
                str(tree.get("source", "")),
                tuple(map(str, tree.get("clusters", ()))),
                tuple(map(str, tree.get("brokers", ()))),
            ),
            marks={
                wanted.queue: tuple(map(read_mark, each["marks"]))
                for wanted, each in zip(ranges, tree["ranges"], strict=True)
                if each.get("marks")
            },
            reading={str(k): str(v) for k, v in tree.get("reading", {}).items()},
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no plan: {error}") from None


def read_file(topic: str, tree: Mapping[str, Any]) -> FileTask:
    """A file of a plan from JSON; in version 1 each has one range.

    @raise ValueError: its path leads elsewhere.
    """
    path = str(tree["path"])
    parts = path.split("/")
    if len(parts) != 4 or ".." in parts or not parts[0]:
        raise ValueError(f"{path!r} is no path of an export")
    wanted = tuple(queue_range(topic, each) for each in tree.get("ranges", [tree]))
    rows = int(tree.get("groupRows", GROUP_ROWS))
    if not wanted or rows < 1:
        raise ValueError(f"{path!r} has no rows")
    return FileTask(path, wanted, rows)


def check_version(tree: Any) -> None:
    """See that a JSON file is of a version that is known.

    @raise ValueError: it is not.
    """
    if not isinstance(tree, dict) or tree.get("version") not in VERSIONS:
        raise ValueError("not of a version that this release reads")


def row_parts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a manifest row says of each of its ranges; rows of version 1 have one.

    Each has C{brokerName}, C{queueId}, C{from}, C{until}, C{rows}, C{first} and C{last}
    (marks as JSON or None; in version 1 the first has no id), C{queueDigest} and
    C{holes} (C{from}, C{until}, C{reason}), and C{filtered}, how many messages are left
    out because nobody wants them.
    """
    if "ranges" in row:
        return [{"filtered": 0, **part} for part in row["ranges"]]
    names = ("brokerName", "queueId", "from", "until", "rows", "queueDigest")
    first = last = None
    if row["lastMsgId"]:
        first = mark_json(Mark(row["from"], row["firstStoreTimestamp"], ""))
        stored_ms = row["lastStoreTimestamp"]
        last = mark_json(Mark(row["until"] - 1, stored_ms, row["lastMsgId"]))
    holes = [{"from": a, "until": b, "reason": "deleted"} for a, b in row["holes"]]
    return [
        {
            **{name: row.get(name) for name in names},
            "first": first,
            "last": last,
            "holes": holes,
            "filtered": 0,
        }
    ]


def row_holes(topic: str, row: Mapping[str, Any]) -> list[Lost]:
    """The offsets of a manifest row at which there is no message."""
    return [
        Lost(
            Range(queue_range(topic, part).queue, hole["from"], hole["until"]),
            str(hole["reason"]),
        )
        for part in row_parts(row)
        for hole in part["holes"]
    ]


def hole_json(hole: Hole) -> dict[str, Any]:
    """A hole, as it stands in a manifest row."""
    return {"from": hole.start, "until": hole.until, "reason": hole.reason}


def ends_json(ends: Mapping[Queue, End]) -> dict[str, Any]:
    """Topic to broker to queue to end."""
    tree: dict[str, dict[str, dict[str, Any]]] = {}
    for queue, end in sorted(ends.items()):
        brokers = tree.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker, {})[str(queue.queue_id)] = {
            "offset": end.offset,
            "marks": [mark_json(mark) for mark in end.marks],
        }
    return tree


def read_ends(tree: Any) -> dict[Queue, End]:
    """The same from JSON.

    @raise ValueError: it is none.
    """
    try:
        return {
            Queue(topic, broker, int(queue)): read_end(end)
            for topic, brokers in tree.items()
            for broker, queues in brokers.items()
            for queue, end in queues.items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no ends of queues: {error}") from None


def read_end(tree: Mapping[str, Any]) -> End:
    """An end from JSON; in version 1 its mark is the last message before it."""
    offset = int(tree["offset"])
    if "marks" in tree:
        return End(offset, tuple(map(read_mark, tree["marks"])))
    return End(offset, (read_mark({**tree, "offset": offset - 1}),))


def new_ends(
    before: Mapping[Queue, End], plan: Plan, rows: Iterable[Mapping[str, Any]]
) -> dict[Queue, End]:
    """The ends once a plan has been carried out.

    The marks of an end are its last two messages of those at the borders of ranges, so
    that one of them may rot.

    @param before: the ends before.
    @param rows: the manifest rows of the plan's files.
    """
    ends = dict(before)
    marks: dict[Queue, set[Mark]] = {}
    for row in rows:
        for part in row_parts(row):
            found = marks.setdefault(queue_range(plan.topic, part).queue, set())
            found |= {read_mark(part[name]) for name in SIDES if part[name]}
    for gone in plan.lost:
        queue, until = gone.gone.queue, gone.gone.until
        known = before[queue].marks if queue in before else ()
        ends[queue] = End(until, known)
    for wanted in plan.ranges:
        known = before[wanted.queue].marks if wanted.queue in before else ()
        ordered = sorted({*known, *marks.get(wanted.queue, ())}, reverse=True)
        ends[wanted.queue] = End(wanted.until, tuple(ordered[:MARKS]))
    return ends


def groups(files: Sequence[FileTask], most: int) -> list[list[FileTask]]:
    """The files as at most C{most} tasks of about the same size.

    The largest first, each to the task with the least so far.
    """
    number = min(len(files), max(1, most))
    tasks: list[list[FileTask]] = [[] for _ in range(number)]
    loads = [0] * number
    for file in sorted(files, key=lambda file: -file.size):
        lightest = loads.index(min(loads))
        tasks[lightest].append(file)
        loads[lightest] += file.size
    return tasks


def cover_problem(ranges: Iterable[Range], files: Iterable[Range]) -> str | None:
    """A fault, if the files do not cover the ranges, each offset exactly once.

    @return: a sentence; None if all is well.
    """
    by_queue: dict[Queue, list[Range]] = {}
    for file in files:
        by_queue.setdefault(file.queue, []).append(file)
    for wanted in ranges:
        position = wanted.start
        for file in sorted(by_queue.pop(wanted.queue, [])):
            if file.start != position or file.until <= file.start:
                return f"{file} follows where {position} must begin"
            position = file.until
        if position != wanted.until:
            return f"the files of {wanted} end at {position}"
    for queue in by_queue:
        return f"there are files of {queue}, of which nothing was wanted"
    return None
