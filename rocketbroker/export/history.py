# -*- test-case-name: tests.export.test_history -*-
"""The commits of an export as values: what is exported, in which files, with what gaps.

This is the reading side of the ledger: it needs no lease, and works beside a run. What
cannot be read is a L{Problem} among the rest, because whoever asks how an export is
wants to hear of it, and of everything else too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import attrs

from rocketbroker.errors import StoreError
from rocketbroker.export.ledger import FOLDER
from rocketbroker.export.plans import End, read_ends, row_parts
from rocketbroker.export.storage import Storage
from rocketbroker.sources.ranges import Queue, Range

#: So many small files are read at once: object stores take their time for each.
READERS: Final = 8

#: Why offsets are in no file, if the ledger gives no other reason.
REMOVED: Final = "removed before they were exported"


@attrs.frozen
class Gap:
    """Offsets of which no message was exported.

    @ivar reason: why, in words.
    @ivar is_retention: whether they were gone before the run began; else it is a hole.
    """

    wanted: Range
    reason: str
    is_retention: bool
    commit: int


@attrs.frozen
class ExportedRange:
    """The messages of one range in a file.

    @ivar rows: how many.
    @ivar gaps: the holes in it.
    @ivar first_ms: when the first one was stored; -1 if there is none.
    @ivar queue_digest: see L{rocketbroker.export.copying}.
    @ivar filtered: how many messages were left out because nobody wants them.
    """

    wanted: Range
    rows: int
    gaps: tuple[Gap, ...]
    first_ms: int
    last_ms: int
    queue_digest: int
    filtered: int = 0


@attrs.frozen
class DataFile:
    """A file, as its manifest row describes it.

    @ivar crc: the CRC-32C of its bytes.
    @ivar schema: which columns it has, and in which form.
    @ivar decode_errors: how many bodies are still compressed.
    @ivar body_digest: see L{rocketbroker.export.copying}.
    @ivar parts: the ranges in it, in the order of its rows.
    @ivar row: the manifest row.
    """

    path: str
    rows: int
    bytes: int
    crc: int
    schema: int
    decode_errors: int
    body_digest: int
    parts: tuple[ExportedRange, ...]
    row: Mapping[str, Any] = attrs.field(repr=False)


@attrs.frozen
class Commit:
    """What one run has exported.

    @ivar made_ms: when its plan was made; 0 if that is not known.
    @ivar done_ms: when it was committed.
    @ivar rows: how many rows it says there are.
    @ivar ends: up to where each queue of each topic was exported then.
    @ivar plan: the number of its plan.
    @ivar abandoned: whether that plan was dropped, so that nothing is exported.
    """

    number: int
    topic: str
    made_ms: int
    done_ms: int
    rows: int
    files: tuple[DataFile, ...]
    lost: tuple[Gap, ...]
    ends: Mapping[Queue, End] = attrs.field(repr=False)
    plan: int = 0
    abandoned: bool = False

    @property
    def bytes(self) -> int:
        """How large its files are."""
        return sum(file.bytes for file in self.files)

    @property
    def gaps(self) -> list[Gap]:
        """All offsets that are missing, and why."""
        holes = [gap for file in self.files for part in file.parts for gap in part.gaps]
        return [*self.lost, *holes]


@attrs.frozen
class PendingPlan:
    """A plan that was not carried out.

    @ivar ranges: what it covers.
    """

    number: int
    topic: str
    made_ms: int
    rows: int
    files: int
    ranges: tuple[Range, ...] = ()


@attrs.frozen
class Problem:
    """A file of the ledger that cannot be read.

    @ivar where: the file, as users name it.
    """

    where: str
    text: str


@attrs.frozen
class History:
    """All that a ledger says.

    @ivar commits: in the order of their numbers.
    @ivar others: the numbers of commits and plans that are left out here.
    """

    commits: tuple[Commit, ...]
    pending: tuple[PendingPlan, ...]
    problems: tuple[Problem, ...]
    others: tuple[int, ...] = ()

    @property
    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({commit.topic for commit in self.commits})

    @property
    def ends(self) -> dict[Queue, End]:
        """Up to where each queue is exported."""
        return dict(self.commits[-1].ends) if self.commits else {}

    def files(self) -> Iterator[DataFile]:
        """All files, in the order of their commits."""
        for commit in self.commits:
            yield from commit.files

    def of(self, topics: Iterable[str]) -> History:
        """The same of some topics only; all if none is given."""
        wanted = set(topics)
        if not wanted:
            return self
        return History(
            tuple(each for each in self.commits if each.topic in wanted),
            tuple(each for each in self.pending if each.topic in wanted),
            self.problems,
            (
                *(each.number for each in self.commits if each.topic not in wanted),
                *(each.number for each in self.pending if each.topic not in wanted),
            ),
        )


@attrs.frozen
class QueueState:
    """What is exported of one queue.

    @ivar start: its first exported offset.
    @ivar end: its first offset that is not exported.
    @ivar last_ms: when the last exported message was stored; -1 if there is none.
    @ivar filtered: how many messages were left out because nobody wants them.
    """

    queue: Queue
    start: int
    end: int
    rows: int
    holes: int
    lost: int
    last_ms: int
    filtered: int = 0


def queue_states(history: History) -> list[QueueState]:
    """What is exported of each queue, sorted."""
    starts: dict[Queue, int] = {}
    ends: dict[Queue, int] = {}
    counts: dict[Queue, list[int]] = {}
    for commit in history.commits:
        parts = [part for file in commit.files for part in file.parts]
        for wanted in (
            *(part.wanted for part in parts),
            *(gap.wanted for gap in commit.lost),
        ):
            queue = wanted.queue
            starts[queue] = min(starts.get(queue, wanted.start), wanted.start)
            ends[queue] = max(ends.get(queue, wanted.until), wanted.until)
        for part in parts:
            count = counts.setdefault(part.wanted.queue, [0, 0, 0, -1, 0])
            count[0] += part.rows
            count[1] += sum(gap.wanted.size for gap in part.gaps)
            count[3] = max(count[3], part.last_ms)
            count[4] += part.filtered
        for gap in commit.lost:
            counts.setdefault(gap.wanted.queue, [0, 0, 0, -1, 0])[2] += gap.wanted.size
    return [
        QueueState(queue, starts[queue], ends[queue], *counts[queue])
        for queue in sorted(starts)
    ]


def read_history(storage: Storage) -> History:
    """Read the ledger of an export.

    @raise OSError: the place does not answer.
    """
    problems: list[Problem] = []
    numbers = {kind: numbers_in(storage, kind) for kind in ("commits", "plans")}
    commits: list[Commit] = []
    for number, tree in read_trees(storage, "commits", numbers["commits"], problems):
        commit = understood(storage, "commits", number, tree, problems)
        if commit is not None:
            commits.append(commit)
    left = sorted({*numbers["plans"]} - {*numbers["commits"]})
    pending: list[PendingPlan] = []
    for number, tree in read_trees(storage, "plans", left, problems):
        try:
            pending.append(read_pending(number, tree))
        except (KeyError, TypeError, ValueError) as error:
            where = storage.where(path_of("plans", number))
            problems.append(Problem(where, f"it is no plan: {error}"))
    return History(tuple(commits), tuple(pending), tuple(problems))


def commits_after(storage: Storage, number: int) -> Iterator[Commit]:
    """The commits with higher numbers, in their order; few are held at once.

    @raise StoreError: one cannot be read.
    @raise OSError: the place does not answer.
    """
    wanted = [each for each in numbers_in(storage, "commits") if each > number]
    for first in range(0, len(wanted), READERS):
        problems: list[Problem] = []
        some = wanted[first : first + READERS]
        for found, tree in read_trees(storage, "commits", some, problems):
            commit = understood(storage, "commits", found, tree, problems)
            if commit is not None and not problems:
                yield commit
        for problem in problems:
            raise StoreError(f"{problem.where}: {problem.text}")


def known_numbers(history: History) -> Iterator[int]:
    """The numbers of commits, and of plans that can be without one just now.

    That are those of which something is to be exported yet, and those that have the
    commit of another number, because others have overtaken them.
    """
    carried_out = {commit.plan for commit in history.commits}
    yield from (commit.number for commit in history.commits)
    yield from history.others
    for plan in history.pending:
        if plan.number in carried_out or any(
            wanted.queue not in history.ends
            or history.ends[wanted.queue].offset < wanted.until
            for wanted in plan.ranges
        ):
            yield plan.number


def understood(
    storage: Storage, kind: str, number: int, tree: Any, problems: list[Problem]
) -> Commit | None:
    """The commit of a JSON file; None, and a problem more, if it is none."""
    try:
        return read_commit(number, tree)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        where = storage.where(path_of(kind, number))
        problems.append(Problem(where, f"it is no commit: {error}"))
        return None


def path_of(kind: str, number: int) -> str:
    """Where a commit or plan lies."""
    return f"{FOLDER}/{kind}/{number:08d}.json"


def numbers_in(storage: Storage, kind: str) -> list[int]:
    """The numbers of the commits or plans, sorted."""
    names = (name.removesuffix(".json") for name in storage.list(f"{FOLDER}/{kind}"))
    return sorted(int(name) for name in names if name.isdecimal())


def read_trees(
    storage: Storage, kind: str, numbers: Iterable[int], problems: list[Problem]
) -> list[tuple[int, Any]]:
    """The JSON of commits or plans; what cannot be read is a problem more."""

    def read(number: int) -> bytes | OSError:
        try:
            return storage.read(path_of(kind, number))
        except OSError as error:
            return error

    found = []
    wanted = list(numbers)
    with ThreadPoolExecutor(READERS) as pool:
        for number, data in zip(wanted, pool.map(read, wanted), strict=True):
            try:
                if isinstance(data, OSError):
                    raise data
                found.append((number, json.loads(data)))
            except (OSError, ValueError) as error:
                problems.append(
                    Problem(storage.where(path_of(kind, number)), one_line(error))
                )
    return found


def one_line(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def read_pending(number: int, tree: Any) -> PendingPlan:
    """A plan, as far as it is told of.

    @raise ValueError: it is none; also KeyError and TypeError.
    """
    topic = str(tree["topic"])
    return PendingPlan(
        number,
        topic,
        int(tree["made"]),
        int(tree["rows"]),
        len(tree["files"]),
        tuple(range_of(topic, each) for each in tree.get("ranges", ())),
    )


def read_commit(number: int, tree: Any) -> Commit:
    """A commit.

    @raise ValueError: it is none; also KeyError, TypeError and AttributeError.
    """
    topic = str(tree["topic"])
    lost = tuple(
        Gap(range_of(topic, each), str(each.get("reason", REMOVED)), True, number)
        for each in tree.get("lost", ())
    )
    return Commit(
        number=number,
        topic=topic,
        made_ms=int(tree.get("made", 0)),
        done_ms=int(tree["done"]),
        rows=int(tree["rows"]),
        files=tuple(read_file(number, topic, row) for row in tree["files"]),
        lost=lost,
        ends=read_ends(tree["ends"]),
        plan=int(tree.get("plan", number)),
        abandoned=bool(tree.get("abandoned", False)),
    )


def read_file(commit: int, topic: str, row: Mapping[str, Any]) -> DataFile:
    """A file by its manifest row.

    @raise KeyError: something is missing; also TypeError and ValueError.
    """
    return DataFile(
        path=str(row["path"]),
        rows=int(row["rows"]),
        bytes=int(row["bytes"]),
        crc=int(row["fileCrc32c"]),
        schema=int(row["schema"]),
        decode_errors=int(row["decodeErrors"]),
        body_digest=int(row["bodyDigest"]),
        parts=tuple(read_part(commit, topic, each) for each in row_parts(row)),
        row=row,
    )


def read_part(commit: int, topic: str, tree: Mapping[str, Any]) -> ExportedRange:
    """A range in a file.

    @raise KeyError: something is missing; also TypeError and ValueError.
    """
    wanted = range_of(topic, tree)
    return ExportedRange(
        wanted=wanted,
        rows=int(tree["rows"]),
        gaps=tuple(
            Gap(hole_range(wanted.queue, hole), str(hole["reason"]), False, commit)
            for hole in tree["holes"]
        ),
        first_ms=stored_ms(tree["first"]),
        last_ms=stored_ms(tree["last"]),
        queue_digest=int(tree["queueDigest"]),
        filtered=int(tree["filtered"]),
    )


def range_of(topic: str, tree: Mapping[str, Any]) -> Range:
    """A range of a known topic."""
    queue = Queue(topic, str(tree["brokerName"]), int(tree["queueId"]))
    return Range(queue, int(tree["from"]), int(tree["until"]))


def hole_range(queue: Queue, hole: Mapping[str, Any]) -> Range:
    """The offsets of a hole."""
    return Range(queue, int(hole["from"]), int(hole["until"]))


def stored_ms(mark: Mapping[str, Any] | None) -> int:
    """When a message at the border of a range was stored; -1 if there is none."""
    return -1 if mark is None else int(mark["storeTimestamp"])
