"""What export_speed.py measures: a store to read, and tasks that read it.

Bare pyarrow is what any export has to do, and nothing else: the log is mapped, the
records of a queue are gathered by array operations, decoded by the same decoder, and
written with the same Parquet settings. Nothing is checked or summed up, files are
written straight to their names and not synced.
"""

from __future__ import annotations

import functools
import os
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rocketbroker.arrow.columns import NATIVE, arrow_schema
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.layout import lay_out_at
from rocketbroker.config.store import StoreOptions
from rocketbroker.export.copying import Copier
from rocketbroker.export.parquet import writer_to
from rocketbroker.export.plans import GROUP_ROWS, FileTask, groups
from rocketbroker.export.storage import DirectoryStorage
from rocketbroker.files.disk import Disk
from rocketbroker.records.hashing import tag_code
from rocketbroker.sources.offline import ENTRY
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.message_store import Store

TOPIC = "Speed"
BROKER = "broker-a"
HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
QUEUES = 4
PROCESSES = 2

#: A file has so many rows, about, which is some 128 MiB of messages.
FILE_ROWS = 250_000

#: Rows that are decoded together.
BATCH_ROWS = 16_384

#: Messages of one append.
APPEND = 512

WORDS = [
    *"order customer amount currency shipped pending region warehouse refund".split(),
    *"invoice carrier parcel basket discount loyalty payment retry approved".split(),
]
TAGS = ("created", "paid", "shipped", "returned")


def bodies(count: int) -> list[bytes]:
    """Texts of 250 to 350 bytes, as JSON looks."""
    chance = random.Random(7)
    found = []
    for _ in range(count):
        parts: list[str] = []
        size = chance.randrange(250, 350)
        while sum(map(len, parts)) + len(parts) < size:
            number = chance.randrange(10**6)
            parts.append(f'"{chance.choice(WORDS)}":{number}')
        found.append(("{" + ",".join(parts))[: size - 1].encode() + b"}")
    return found


class Letter(NamedTuple):
    """A message, before it is sent."""

    body: bytes
    tag: str
    key: str
    properties: dict[str, str]


def letters(numbers: Iterable[int]) -> Iterator[Letter]:
    """The messages of these numbers."""
    texts = bodies(4096)
    for number in numbers:
        yield Letter(
            texts[number * 31 % len(texts)],
            TAGS[number % len(TAGS)],
            f"k{number}",
            {"region": f"eu-{number % 5}", "tenant": str(number % 97)},
        )


def drafts(count: int, places: Sequence[Any]) -> Iterator[list[Draft]]:
    """The messages of a topic, as a store takes them; queues in turn."""
    codes = {tag: tag_code(tag) for tag in TAGS}
    now_ms = time.time_ns() // 1_000_000
    found: list[Draft] = []
    for number, each in enumerate(letters(range(count))):
        own = "".join(f"{name}\1{text}\2" for name, text in each.properties.items())
        known = (
            f"{own}UNIQ_KEY\1{number:032X}\2CLUSTER\1DefaultCluster\2"
            f"WAIT\1true\2KEYS\1{each.key}\2TAGS\1{each.tag}\2"
        ).encode()
        place, code = places[number % len(places)], codes[each.tag]
        words = (0, 0, now_ms, HOST, 0, code, None)
        found.append(Draft(place, each.body, known, *words))
        if len(found) == APPEND:
            yield found
            found = []
    if found:
        yield found


def fill(root: Path, count: int) -> None:
    """Make a store with so many messages of one topic."""
    options = StoreOptions(store_path_root_dir=str(root))
    store = Store(Disk(), options, lambda: time.time_ns() // 1_000_000, HOST)
    store.open()
    places = [store.queue(TOPIC, number) for number in range(QUEUES)]
    for several in drafts(count, places):
        store.append(several)
        while store.dispatch(10_000):
            pass
        while store.build_index(10_000):
            pass
    store.close()


def file_tasks(count: int) -> list[FileTask]:
    """The files of an export of it, as a plan cuts them."""
    ends = [len(range(number, count, QUEUES)) for number in range(QUEUES)]
    found = []
    for number, end in enumerate(ends):
        parts = max(1, round(end / FILE_ROWS))
        for part in range(parts):
            wanted = Range(
                Queue(TOPIC, BROKER, number),
                end * part // parts,
                end * (part + 1) // parts,
            )
            path = f"{TOPIC}/{number}-{part}.parquet"
            found.append(FileTask(path, (wanted,)))
    return found


def tasks(count: int) -> list[list[FileTask]]:
    """The same, shared out as to the tasks of Spark."""
    return groups(file_tasks(count), PROCESSES * 3)


class Source(NamedTuple):
    """Where tasks read from: one of the two, as the options of a read have them."""

    store: str = ""
    name_server: str = ""


class Work(NamedTuple):
    """What one task does.

    @ivar root: where its files go.
    """

    source: Source
    root: str
    files: list[FileTask]


def copy_task(work: Work) -> tuple[int, float]:
    """A task of the export; its rows, and its seconds of CPU."""
    begun = time.process_time()
    options = ReadOptions(
        store=work.source.store,
        name_server=work.source.name_server,
        topics=(TOPIC,),
        broker_name=BROKER,
    )
    storage = DirectoryStorage(Disk(), work.root)
    rows = Copier(storage, options)((0, work.files))
    for row in rows:
        if "failure" in row:
            raise RuntimeError(str(row))
    return sum(row["rows"] for row in rows), time.process_time() - begun


def bare_task(work: Work) -> tuple[int, float]:
    """The same by bare pyarrow."""
    begun = time.process_time()
    rows = 0
    for file in work.files:
        path = os.path.join(work.root, file.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rows += bare_file(work.source.store, file.wanted[0], path)
    return rows, time.process_time() - begun


def bare_file(store: str, wanted: Range, path: str) -> int:
    """One file by bare pyarrow; its rows."""
    schema = arrow_schema(NATIVE)
    decoder = Decoder(NATIVE, wanted.queue.broker, True)
    batches: list[Any] = []
    rows = held = 0
    with writer_to(path, schema) as writer:
        for data, starts in bare_records(store, wanted):
            for batch in decoder.batches(lay_out_at(data, starts)):
                while len(batch):
                    part = batch.slice(0, GROUP_ROWS - held)
                    batch = batch.slice(len(part))
                    batches.append(part)
                    held += len(part)
                    rows += len(part)
                    if held == GROUP_ROWS:
                        writer.write_table(whole(batches, schema), GROUP_ROWS)
                        batches, held = [], 0
        if batches:
            writer.write_table(whole(batches, schema), GROUP_ROWS)
    return rows


def whole(batches: list[Any], schema: Any) -> Any:
    """Batches as one."""
    return pa.Table.from_batches(batches, schema).combine_chunks()


def bare_records(store: str, wanted: Range) -> Iterator[tuple[Any, Any]]:
    """Where the records of a range begin, in which file of the log."""
    queue = wanted.queue
    folder = f"{store}/consumequeue/{queue.topic}/{queue.queue_id}"
    entries = mapped(f"{folder}/{0:020d}").view(ENTRY)
    per_file = len(entries)
    log_size = os.path.getsize(f"{store}/commitlog/{0:020d}")
    at = wanted.start
    while at < wanted.until:
        number, place = divmod(at, per_file)
        path = f"{folder}/{number * per_file * entries.itemsize:020d}"
        until = min(place + min(BATCH_ROWS, wanted.until - at), per_file)
        found = mapped(path).view(ENTRY)["position"][place:until].astype(np.int64)
        segments = found // log_size
        for segment in np.unique(segments).tolist():
            data = mapped(f"{store}/commitlog/{segment * log_size:020d}")
            yield data, found[segments == segment] - segment * log_size
        at += until - place


@functools.lru_cache(64)
def mapped(path: str) -> Any:
    """A file, mapped."""
    return np.memmap(path, np.uint8, "r")
