# -*- test-case-name: tests.export.test_verify -*-
"""Checking an export: what stands in its ledger and files, and in its source.

Four levels, each with the ones before it:

  - C{manifest}: each queue's ranges follow on one another, none twice, and end where
    the ledger says that they end.
  - C{files}: the files are there, with the size, rows and offsets that they must have.
  - C{digests}: their bytes have their CRC, and the digests of offsets, stored bodies
    and bodies come out again from the columns.
  - the source, if it is named: a broker or a store still has the same messages.

No Spark: files are checked by processes, each with pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rocketbroker.arrow.binary_arrays import values_and_offsets
from rocketbroker.arrow.columns import NATIVE, chosen
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.message_identity import fingerprint_at
from rocketbroker.errors import RocketbrokerError
from rocketbroker.export.filtering import WantedReader, with_filter_of
from rocketbroker.export.history import DataFile, ExportedRange, History, known_numbers
from rocketbroker.export.ledger import FOLDER
from rocketbroker.export.parquet import (
    FOOTER_KEY,
    FileMismatch,
    check_file,
    crc32c,
    file_checksum,
    read_metadata,
)
from rocketbroker.export.plans import End
from rocketbroker.export.storage import Storage
from rocketbroker.sources.open_source import open_origin, shared_origin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import DataLoss, Origin

MANIFEST: Final = "manifest"
FILES: Final = "files"
DIGESTS: Final = "digests"
SOURCE: Final = "source"

#: The summary of the last check.
VERIFIED: Final = f"{FOLDER}/report/verified.json"

#: What the digests are made of.
DIGESTED: Final = ("queueOffset", "bodyCRC", "body")

#: One queue offset and one CRC, as C{queueDigest} covers them.
WORDS: Final = np.dtype([("offset", ">u8"), ("crc", ">u4")])


@attrs.frozen
class Fault:
    """Something that is not as it must be.

    @ivar level: what kind of check found it.
    @ivar where: the file or queue.
    """

    level: str
    where: str
    text: str


@attrs.frozen
class Comparison:
    """What comes of comparing one file with the source.

    @ivar rows: how many messages were compared.
    @ivar removed: how many the source has no longer.
    """

    faults: tuple[Fault, ...]
    rows: int
    removed: int


@final
class Digests:
    """The digests of a range, from its messages in order.

    @ivar rows: how many messages.
    @ivar queue: the digest of queue offsets and CRCs of stored bodies.
    @ivar body: the digest of the bodies.
    """

    def __init__(self, body: int = 0) -> None:
        """
        @param body: the digest of the bodies that come before.
        """
        self.rows = self.queue = 0
        self.body = body

    def add(self, offsets: Any, crcs: Any) -> None:
        """More messages.

        @param offsets: their queue offsets.
        @param crcs: the CRCs of their stored bodies.
        """
        words = np.empty(len(offsets), WORDS)
        words["offset"], words["crc"] = offsets, crcs
        self.rows += len(offsets)
        self.queue = crc32c(words.tobytes(), self.queue)

    def add_bodies(self, bodies: Any) -> None:
        """The bodies of more messages, an Arrow array."""
        if len(bodies):
            self.body = crc32c(values_and_offsets(bodies)[0], self.body)


def check_manifest(history: History) -> Iterator[Fault]:
    """The faults of the ledger."""
    for problem in history.problems:
        yield Fault(MANIFEST, problem.where, problem.text)
    paths: dict[str, int] = {}
    for commit in history.commits:
        rows = sum(file.rows for file in commit.files)
        if rows != commit.rows:
            yield Fault(
                MANIFEST,
                f"commit {commit.number}",
                f"it says {commit.rows} rows, but its files have {rows}",
            )
        for file in commit.files:
            if file.path in paths:
                text = f"it is in the commits {paths[file.path]} and {commit.number}"
                yield Fault(MANIFEST, file.path, text)
            paths[file.path] = commit.number
            for part in file.parts:
                yield from check_part(file, part)
    yield from check_numbers(sorted(known_numbers(history)))
    yield from check_cover(history)


def check_numbers(numbers: Sequence[int]) -> Iterator[Fault]:
    """Commits, and plans that wait for theirs, are numbered without gaps, from 1."""
    for before, after in pairwise([0, *numbers]):
        if after != before + 1:
            missing = f"commit {before + 1}"
            if after > before + 2:
                missing = f"commits {before + 1} to {after - 1}"
            yield Fault(MANIFEST, missing, "missing in the ledger")


def check_part(file: DataFile, part: ExportedRange) -> Iterator[Fault]:
    """A range has as many rows as offsets, but for its holes, which lie in it."""
    missing = part.filtered
    for gap in part.gaps:
        missing += gap.wanted.size
        if not part.wanted.start <= gap.wanted.start < gap.wanted.until:
            yield Fault(MANIFEST, file.path, f"the hole {gap.wanted} makes no sense")
        if gap.wanted.until > part.wanted.until:
            yield Fault(MANIFEST, file.path, f"the hole {gap.wanted} ends behind it")
    if part.rows != part.wanted.size - missing:
        yield Fault(
            MANIFEST,
            file.path,
            f"{part.rows} rows for {part.wanted}, of which {missing} are holes",
        )


def check_cover(history: History) -> Iterator[Fault]:
    """Each offset of a queue is in one file or gap, up to the end of the queue."""
    covered: dict[Queue, list[tuple[int, int, str]]] = {}
    for commit in history.commits:
        for gap in commit.lost:
            name = f"the gap of commit {commit.number}"
            place = gap.wanted.start, gap.wanted.until, name
            covered.setdefault(gap.wanted.queue, []).append(place)
        for file in commit.files:
            for part in file.parts:
                place = part.wanted.start, part.wanted.until, file.path
                covered.setdefault(part.wanted.queue, []).append(place)
    ends = history.ends
    for queue, places in sorted(covered.items()):
        places.sort()
        for (_, until, path), (start, _, other) in pairwise(places):
            if start > until:
                text = f"the offsets from {until} to {start - 1} are in no file"
                yield Fault(MANIFEST, str(queue), text)
            elif start < until:
                text = f"the offsets from {start} on are in {path} and in {other}"
                yield Fault(MANIFEST, str(queue), text)
        last = max(until for _, until, _ in places)
        end = ends.get(queue)
        if end is None or end.offset != last:
            told = "nothing" if end is None else f"up to {end.offset}"
            text = f"exported up to {last}, but the last commit says {told}"
            yield Fault(MANIFEST, str(queue), text)


def check_one(storage: Storage, file: DataFile, level: str) -> tuple[Fault, ...]:
    """The faults of a data file.

    @param level: how thoroughly; one of L{LEVELS}.
    """
    try:
        check_file(storage, dict(file.row))
        check_footer(storage, file)
        if level == DIGESTS:
            check_bytes(storage, file)
            return tuple(check_digests(storage, file))
    except FileMismatch as error:
        return (Fault(FILES, file.path, str(error)),)
    except (OSError, pa.ArrowException, ValueError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0]
        return (Fault(level, file.path, f"it cannot be read: {text}"),)
    return ()


def check_footer(storage: Storage, file: DataFile) -> None:
    """The manifest row in the footer is that of the ledger.

    @raise FileMismatch: it is not.
    """
    found = read_metadata(storage, file.path).metadata or {}
    text = found.get(FOOTER_KEY.encode("ascii"))
    if text is None:
        raise FileMismatch("its footer says nothing of an export")
    footer = json.loads(text)
    row = {key: file.row[key] for key in file.row if key in footer}
    for key, value in footer.items():
        if row.get(key, value) != value:
            raise FileMismatch(f"its footer says another {key} than the ledger")


def check_bytes(storage: Storage, file: DataFile) -> None:
    """The bytes are those that were written.

    @raise FileMismatch: they are not.
    """
    size, crc = file_checksum(storage, file.path)
    if (size, crc) != (file.bytes, file.crc):
        raise FileMismatch(f"its CRC-32C is {crc:08x}, not {file.crc:08x}")


def check_digests(storage: Storage, file: DataFile) -> Iterator[Fault]:
    """The digests, again from the columns."""
    batches = columns_of(storage, file.path)
    body = 0
    for part in file.parts:
        digests = Digests(body)
        wanted, first, last = part.wanted, -1, -1
        for batch in batches.take(part.rows):
            offsets = batch.column("queueOffset").to_numpy()
            crcs = batch.column("bodyCRC").to_numpy().astype(np.uint32)
            digests.add(offsets, crcs)
            if has_bodies(file):
                digests.add_bodies(batch.column("body"))
            first = int(offsets[0]) if first < 0 else first
            last = int(offsets[-1])
        body = digests.body
        if digests.rows != part.rows:
            text = f"it ends before the rows of {wanted}"
            yield Fault(DIGESTS, file.path, text)
        elif digests.rows and not wanted.start <= first <= last < wanted.until:
            text = f"the offsets {first} to {last} stand where {wanted} must be"
            yield Fault(DIGESTS, file.path, text)
        elif digests.queue != part.queue_digest:
            text = f"the offsets or CRCs of {wanted} are not those exported"
            yield Fault(DIGESTS, file.path, text)
    if body != file.body_digest:
        yield Fault(DIGESTS, file.path, "its bodies are not those exported")


@final
class Batches:
    """Record batches of which any number of rows can be taken."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._rest: Any = None

    def take(self, count: int) -> Iterator[Any]:
        """The next rows, in batches; fewer at the end."""
        while count > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                return
            self._rest = batch.slice(count) if len(batch) > count else None
            batch = batch.slice(0, count)
            count -= len(batch)
            yield batch


def has_bodies(file: DataFile) -> bool:
    """Whether the bodies are among the columns that were chosen."""
    return "body" in file.row.get("columns", ["body"])


def columns_of(storage: Storage, path: str) -> Batches:
    """The columns of a file that the digests cover."""

    def batches() -> Iterator[Any]:
        with storage.open(path) as opened:
            file = pq.ParquetFile(opened)
            yield from file.iter_batches(columns=list(DIGESTED), use_threads=False)

    return Batches(batches())


def compare(options: ReadOptions, file: DataFile) -> Comparison:
    """Compare a file's ranges with what the source has of them now.

    @param options: where the source is.
    """
    return compare_with(shared_origin(options), options, file)


def compare_with(origin: Origin, options: ReadOptions, file: DataFile) -> Comparison:
    """See L{compare}."""
    faults: list[Fault] = []
    rows = removed = body = 0
    options = attrs.evolve(options, fail_on_data_loss=False)
    options = with_filter_of(options, file.row)
    for part in file.parts:
        try:
            first, end = origin.bounds(part.wanted.queue)
            if part.wanted.start < first:
                removed += part.rows
                continue
            if part.wanted.until > end:
                text = f"{part.wanted} is exported, but the source ends at {end}"
                faults.append(Fault(SOURCE, file.path, text))
                continue
            digests = read_again(origin, options, part, body)
        except RocketbrokerError as error:
            faults.append(Fault(SOURCE, file.path, f"{part.wanted}: {error}"))
            continue
        body = digests.body
        rows += digests.rows
        if digests.rows != part.rows:
            text = f"the source has {digests.rows} messages in {part.wanted}"
            text += f", the export {part.rows}"
            faults.append(Fault(SOURCE, file.path, text))
        elif digests.queue != part.queue_digest:
            text = f"the source has other messages in {part.wanted}"
            faults.append(Fault(SOURCE, file.path, text))
    if not faults and not removed and has_bodies(file) and body != file.body_digest:
        faults.append(Fault(SOURCE, file.path, "the source has other bodies"))
    return Comparison(tuple(faults), rows, removed)


def read_again(
    origin: Origin, options: ReadOptions, part: ExportedRange, body: int
) -> Digests:
    """The digests of a range in the source.

    @param body: the digest of the bodies before it in the same file.
    @raise RocketbrokerError: the source does not give it.
    """
    columns = chosen(["body"], NATIVE)
    decoder = Decoder(columns, part.wanted.queue.broker, options.decompress)
    reader = WantedReader(origin, part.wanted, options)
    digests = Digests(body)
    for _, layout in reader.layouts():
        digests.add(layout.front["queue_offset"], layout.front["body_crc"])
        for batch in decoder.batches(layout):
            digests.add_bodies(batch.column("body"))
    return digests


def compare_ends(origin: Origin, ends: Iterable[tuple[Queue, End]]) -> Iterator[Fault]:
    """Whether the last exported message of each queue is still the same one."""
    for queue, end in ends:
        try:
            first, until = origin.bounds(queue)
            if end.offset > until:
                text = f"exported up to {end.offset}, but the source ends at {until}"
                yield Fault(SOURCE, str(queue), text)
            elif end.marks and first <= end.marks[0].offset:
                offset, *known = end.marks[0]
                if fingerprint_at(origin, queue, offset) != tuple(known):
                    text = f"message {offset} is another one than the exported"
                    yield Fault(SOURCE, str(queue), text)
        except DataLoss:
            # A hole at the end: its neighbours are compared with the files.
            continue
        except RocketbrokerError as error:
            yield Fault(SOURCE, str(queue), str(error))


@final
class Verification:
    """One check of an export.

    @ivar count: how many faults there were.
    """

    def __init__(
        self,
        storage: Storage,
        history: History,
        pool: Executor,
        passed: Callable[[DataFile], None],
    ) -> None:
        """
        @param pool: who checks files; in processes of their own, or one thread.
        @param passed: told of each file that is done.
        """
        self._storage = storage
        self._history = history
        self._files = [*history.files()]
        self._pool = pool
        self._passed = passed
        self._level = MANIFEST
        self._compared = self._removed = 0
        self.count = 0

    def faults(self, level: str, source: ReadOptions | None) -> Iterator[Fault]:
        """The faults, as they are found.

        @param level: how thoroughly; one of L{LEVELS}.
        @param source: where the messages came from; None: it is not asked.
        """
        self._level = level if source is None else SOURCE
        for fault in self._faults(level, source):
            self.count += 1
            yield fault

    def _faults(self, level: str, source: ReadOptions | None) -> Iterator[Fault]:
        yield from check_manifest(self._history)
        if level != MANIFEST:
            yield from self._file_faults(level)
        if source is not None:
            yield from self._source_faults(source)

    def _file_faults(self, level: str) -> Iterator[Fault]:
        count = len(self._files)
        ask = self._pool.map
        found = ask(check_one, [self._storage] * count, self._files, [level] * count)
        for file, faults in zip(self._files, found, strict=True):
            yield from faults
            self._passed(file)

    def _source_faults(self, source: ReadOptions) -> Iterator[Fault]:
        found = self._pool.map(compare, [source] * len(self._files), self._files)
        for file, compared in zip(self._files, found, strict=True):
            yield from compared.faults
            self._compared += compared.rows
            self._removed += compared.removed
            self._passed(file)
        ends = self._history.ends.items()
        origin = open_origin(source)
        try:
            topics = set(self._history.topics)
            wanted = [(queue, end) for queue, end in ends if queue.topic in topics]
            yield from compare_ends(origin, wanted)
        finally:
            origin.close()

    def summary(self) -> dict[str, object]:
        """What was checked."""
        gaps = [gap for commit in self._history.commits for gap in commit.gaps]
        return {
            "level": self._level,
            "commits": len(self._history.commits),
            "files": len(self._files),
            "rows": sum(file.rows for file in self._files),
            "bytes": sum(file.bytes for file in self._files),
            "faults": self.count,
            "gaps": len(gaps),
            "missing": sum(gap.wanted.size for gap in gaps),
            "compared": self._compared,
            "removed_at_source": self._removed,
        }

    def remember(self, now_ms: int) -> None:
        """Leave word of it for reports, where something can be written."""
        commits = self._history.commits
        number = commits[-1].number if commits else 0
        tree = {"verified": now_ms, "lastCommit": number, **self.summary()}
        with suppress(OSError):
            self._storage.put(VERIFIED, json.dumps(tree).encode("utf-8"))
