# -*- test-case-name: tests.export.test_plans -*-
"""The plan of an export, as values and as JSON; pure.

A plan says which offset ranges are exported and into which files, before a byte of data
is written. Names of files follow from their ranges, so whoever carries out a plan again
writes the same files with the same rows. C{docs/facts/spark.md 8}.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.ranges import Queue, Range

#: The version of the JSON files below C{_rocketbroker}.
VERSION: Final = 1

#: What stands in names of topics but not of files; none of the signs that stand for it
#: can be in a name.
ESCAPES: Final = {"%": "~25", "|": "~7C"}

HOUR_MS: Final = 3_600_000

#: The last hour of the year 9999, for messages whose store time is nonsense.
LAST_HOUR: Final = 70_389_527


@attrs.frozen
class FileTask:
    """One file of a plan.

    @ivar path: below the root, with slashes.
    @ivar wanted: the messages that are in it.
    """

    path: str
    wanted: Range


@attrs.frozen
class End:
    """Up to where a queue is exported.

    @ivar offset: the first queue offset that is not.
    @ivar store_ms: when the message before it was stored.
    @ivar message_id: its id. Both tell whether the queue is still the same one.
    """

    offset: int
    store_ms: int
    message_id: str


@attrs.frozen
class Plan:
    """A plan.

    @ivar number: plans and their commits are numbered from 1.
    @ivar made_ms: when it was made.
    @ivar ranges: the exported offsets, queue by queue.
    @ivar files: where to.
    @ivar lost: the offsets that were removed before the export, if that was allowed.
    """

    number: int
    topic: str
    made_ms: int
    ranges: tuple[Range, ...]
    files: tuple[FileTask, ...]
    lost: tuple[Range, ...] = ()

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


def file_path(wanted: Range, store_ms: int) -> str:
    """Where the messages of a range go that were stored in the hour of C{store_ms}."""
    hours = min(max(0, store_ms // HOUR_MS), LAST_HOUR)
    hour = datetime.datetime(1970, 1, 1) + datetime.timedelta(hours=hours)
    topic, broker = escape(wanted.queue.topic), escape(wanted.queue.broker)
    name = (
        f"{topic}+{broker}+{wanted.queue.queue_id:04d}"
        f"+{wanted.start:020d}-{wanted.until:020d}.zstd.parquet"
    )
    return f"{topic}/dt={hour:%Y-%m-%d}/hour={hour:%H}/{name}"


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


def plan_bytes(plan: Plan) -> bytes:
    """The plan as JSON."""
    tree = {
        "version": VERSION,
        "number": plan.number,
        "topic": plan.topic,
        "made": plan.made_ms,
        "rows": plan.rows,
        "ranges": [queue_json(wanted) for wanted in plan.ranges],
        "lost": [queue_json(wanted) for wanted in plan.lost],
        "files": [{"path": f.path, **queue_json(f.wanted)} for f in plan.files],
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
        files = tuple(
            FileTask(str(each["path"]), queue_range(topic, each))
            for each in tree["files"]
        )
        for file in files:
            parts = file.path.split("/")
            if len(parts) != 4 or ".." in parts or not parts[0]:
                raise ValueError(f"{file.path!r} is no path of an export")
        return Plan(
            number=int(tree["number"]),
            topic=topic,
            made_ms=int(tree["made"]),
            ranges=tuple(queue_range(topic, each) for each in tree["ranges"]),
            lost=tuple(queue_range(topic, each) for each in tree["lost"]),
            files=files,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"no plan: {error}") from None


def check_version(tree: Any) -> None:
    """See that a JSON file is of a version that is known.

    @raise ValueError: it is not.
    """
    if not isinstance(tree, dict) or tree.get("version") != VERSION:
        raise ValueError("not of a version that this release reads")


def ends_json(ends: Mapping[Queue, End]) -> dict[str, Any]:
    """Topic to broker to queue to end."""
    tree: dict[str, dict[str, dict[str, Any]]] = {}
    for queue, end in sorted(ends.items()):
        brokers = tree.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker, {})[str(queue.queue_id)] = {
            "offset": end.offset,
            "storeTimestamp": end.store_ms,
            "msgId": end.message_id,
        }
    return tree


def read_ends(tree: Any) -> dict[Queue, End]:
    """The same from JSON.

    @raise ValueError: it is none.
    """
    try:
        return {
            Queue(topic, broker, int(queue)): End(
                int(end["offset"]), int(end["storeTimestamp"]), str(end["msgId"])
            )
            for topic, brokers in tree.items()
            for broker, queues in brokers.items()
            for queue, end in queues.items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no ends of queues: {error}") from None


def new_ends(
    before: Mapping[Queue, End], plan: Plan, rows: Iterable[Mapping[str, Any]]
) -> dict[Queue, End]:
    """The ends once a plan has been carried out.

    @param before: the ends before.
    @param rows: the manifest rows of the plan's files.
    """
    ends = dict(before)
    last = {
        Range(
            Queue(plan.topic, row["brokerName"], row["queueId"]), 0, row["until"]
        ): row
        for row in rows
    }
    for wanted in plan.ranges:
        row = last.get(Range(wanted.queue, 0, wanted.until))
        if row is not None:
            ends[wanted.queue] = End(
                wanted.until, row["lastStoreTimestamp"], row["lastMsgId"]
            )
    return ends


def groups(files: Sequence[FileTask], most: int) -> list[list[FileTask]]:
    """The files as at most C{most} tasks of about the same size.

    The largest first, each to the task with the least so far.
    """
    number = min(len(files), max(1, most))
    tasks: list[list[FileTask]] = [[] for _ in range(number)]
    loads = [0] * number
    for file in sorted(files, key=lambda file: -file.wanted.size):
        lightest = loads.index(min(loads))
        tasks[lightest].append(file)
        loads[lightest] += file.wanted.size
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
