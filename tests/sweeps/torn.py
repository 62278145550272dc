"""Files that end, or are zeros from somewhere on: the log, a queue, the checkpoint, the
index and the tables, from every byte on.

The store starts, hands out every message whose record is whole and nothing else, goes
on, and does so after another start. Tables have the content of one of their versions.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from twisted.internet.task import Clock

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.files.disk import Disk
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from tests.broker.rig import Rig
from tests.store.snapshots import log_file
from tests.store.stores import ROOT, SEGMENT, Wall, opened, put
from tests.sweeps.corpus import QUEUE_ENTRIES, QUEUES, SMALL, Corpus, Place, handed

#: So many records stand in the log; it is torn in the last of them.
RECORDS = 60
LARGE = 36
LAST = 20

#: So many places are tried on the real disk.
ON_DISK = 300

#: The bytes of a checkpoint that say something; behind them are only zeros.
CHECKPOINT_BYTES = 40


class Figures:
    """What a sweep has come to.

    @ivar cases: how many files were torn, by what they are.
    @ivar lost: how many messages were lost with their records.
    @ivar wrong: what was not as it has to be.
    """

    def __init__(self) -> None:
        self.cases: dict[str, int] = {}
        self.lost = 0
        self.wrong: list[str] = []

    def count(self, what: str) -> None:
        """Note a case."""
        self.cases[what] = self.cases.get(what, 0) + 1

    def __str__(self) -> str:
        kinds = ", ".join(f"{what} {count}" for what, count in self.cases.items())
        total = sum(self.cases.values())
        return (
            f"{total} cases ({kinds}): {self.lost} messages lost with their records, "
            f"{len(self.wrong)} wrong"
        )


def tear(disk: MemoryDisk, path: str, at: int, zero: bool) -> None:
    """Let a file end at a byte, or have zeros from there on."""
    file = disk.open(path)
    size = file.size()
    file.truncate(at)
    if zero:
        file.truncate(size)
    file.close()


def sweep_log(figures: Figures, clean: bool, step: int = 1) -> None:
    """Tear the log in its last records."""
    corpus = Corpus(RECORDS, clean, LARGE)
    begin = corpus.last(LAST)[0][1][0]
    for zero in (False, True):
        for at in range(begin, corpus.end + 1, step):
            disk = corpus.image()
            segment = at // SEGMENT * SEGMENT
            tear(disk, log_file(segment), at - segment, zero)
            for start in range(segment + SEGMENT, corpus.end, SEGMENT):
                disk.remove(log_file(start))
            what = f"log at {at}, zero {zero}, clean {clean}"
            whole = {p for p, (_, end) in corpus.positions.items() if end <= at}
            figures.count("log")
            figures.lost += len(corpus.positions) - len(whole)
            check(figures, corpus, disk, what, whole)


def sweep_disk(figures: Figures, clean: bool, count: int) -> None:
    """The same on the real disk, at places taken by chance.

    @param count: how many.
    """
    corpus = Corpus(RECORDS, clean, LARGE)
    begin = corpus.last(LAST)[0][1][0]
    places = random.Random(count).sample(range(begin, corpus.end + 1), count)
    for at, zero in product(places, (False, True)):
        with tempfile.TemporaryDirectory() as folder:
            root = folder + ROOT
            copy(corpus.disk, ROOT, root)
            segment = at // SEGMENT * SEGMENT
            path = folder + log_file(segment)
            os.truncate(path, at - segment)
            if zero:
                os.truncate(path, SEGMENT)
            for start in range(segment + SEGMENT, corpus.end, SEGMENT):
                os.unlink(folder + log_file(start))
            wall = Wall(corpus.wall.now_ms + 1000)
            store = opened(Disk(), wall, store_path_root_dir=root, **SMALL)
            whole = {p for p, (_, end) in corpus.positions.items() if end <= at}
            figures.count("log on the real disk")
            figures.lost += len(corpus.positions) - len(whole)
            what = f"log on the real disk at {at}, zero {zero}, clean {clean}"
            compare(figures, corpus, store, what, whole)
            store.close()


def copy(disk: MemoryDisk, path: str, to: str) -> None:
    """Bring a directory from memory to the disk."""
    os.makedirs(to)
    for name in disk.list(path):
        if disk.is_dir(f"{path}/{name}"):
            copy(disk, f"{path}/{name}", f"{to}/{name}")
        else:
            Path(to, name).write_bytes(disk.read(f"{path}/{name}"))


def sweep_queues(figures: Figures, clean: bool, step: int = 1) -> None:
    """Tear each queue in its last entries; the log is whole."""
    corpus = Corpus(RECORDS, clean, LARGE)
    for topic, queue_id in QUEUES:
        count = sum(place[:2] == (topic, queue_id) for place in corpus.positions)
        folder = f"{ROOT}/consumequeue/{topic}/{queue_id}"
        per_file = 20 * QUEUE_ENTRIES
        for zero in (False, True):
            for at in range(max(0, 20 * (count - LAST)), 20 * count + 1, step):
                disk = corpus.image()
                start = at // per_file * per_file
                path = f"{folder}/{start:020d}"
                if not disk.exists(path):
                    continue
                tear(disk, path, at - start, zero)
                for later in range(start + per_file, 20 * count, per_file):
                    disk.remove(f"{folder}/{later:020d}")
                figures.count("queue")
                what = f"{path} at {at}, zero {zero}, clean {clean}"
                check(figures, corpus, disk, what, set(corpus.positions))


def sweep_checkpoint(figures: Figures, clean: bool, step: int = 1) -> None:
    """Tear the checkpoint; the log and the queues are whole."""
    corpus = Corpus(RECORDS, clean, LARGE)
    path = f"{ROOT}/checkpoint"
    ends = [*range(0, CHECKPOINT_BYTES, step), *range(CHECKPOINT_BYTES, 4096, 40)]
    for zero in (False, True):
        for at in ends[:: min(step, 5)]:
            disk = corpus.image()
            tear(disk, path, at, zero)
            figures.count("checkpoint")
            what = f"checkpoint at {at}, zero {zero}, clean {clean}"
            check(figures, corpus, disk, what, set(corpus.positions))


def sweep_index(figures: Figures, clean: bool, step: int = 1) -> None:
    """Tear the index; every key is found again, once it was built."""
    corpus = Corpus(RECORDS, clean, LARGE)
    (name,) = corpus.disk.list(f"{ROOT}/index")
    path = f"{ROOT}/index/{name}"
    written = len(corpus.disk.read(path).rstrip(b"\0"))
    # Beside the header and some slots, the last entries.
    ends = [*range(0, 80, step), *range(max(80, written - 20 * LAST), written, step)]
    for zero in (False, True):
        for at in ends:
            disk = corpus.image()
            tear(disk, path, at, zero)
            figures.count("index")
            what = f"index at {at}, zero {zero}, clean {clean}"
            check(figures, corpus, disk, what, set(corpus.positions))


def check(
    figures: Figures, corpus: Corpus, disk: MemoryDisk, what: str, whole: set[Place]
) -> None:
    """Start, look, go on, and start again."""
    store = corpus.open(disk)
    compare(figures, corpus, store, what, whole)
    queue = store.queue("T", 0)
    new = {each.queue_offset: each.body for each in put(store, queue, b"1st", b"2nd")}
    found = handed(store)
    for offset, body in new.items():
        if found.get(("T", 0, offset)) != body:
            figures.wrong.append(f"{what}: it does not go on")
    disk.crash(keep_all=True)
    again = handed(corpus.open(disk))
    if again != found:
        figures.wrong.append(f"{what}: another start finds something else")


def compare(
    figures: Figures, corpus: Corpus, store: Store, what: str, whole: set[Place]
) -> None:
    """All messages that are whole, and nothing else."""
    expected = {place: corpus.bodies[place] for place in whole}
    found = handed(store)
    if found != expected:
        lost = [place for place in expected if place not in found]
        more = [place for place in found if place not in expected]
        figures.wrong.append(f"{what}: {lost[:3]} lost, {more[:3]} too much")


def sweep(figures: Figures, step: int = 1) -> None:
    """Tear all files.

    @param step: only at each so-manieth byte.
    """
    for clean in (True, False):
        for part in (sweep_log, sweep_queues, sweep_checkpoint, sweep_index):
            part(figures, clean, step)
        sweep_disk(figures, clean, ON_DISK // step)
    sweep_tables(figures, step)


# Tables.


def tables() -> Iterator[tuple[str, bytes, bytes]]:
    """The tables of a broker: path, content, and the version before."""
    rig = Rig({"enableScheduleMessage": "true"})
    for number in range(3):
        rig.topic(f"Topic{number}")
    for turn in range(2):
        rig.topic("Last", queues=4 + turn)
        rig.groups.config(f"Group{turn}")
        rig.offsets.commit(f"Group{turn}", "Last", 0, 7 + turn)
        rig.offsets.save()
        rig.groups.save()
        rig.schedule.save()
    for path in sorted(rig.disk.list(f"{ROOT}/config")):
        if path.endswith(".json"):
            path = f"{ROOT}/config/{path}"
            old = (
                rig.disk.read(path + ".bak") if rig.disk.exists(path + ".bak") else b""
            )
            yield path, rig.disk.read(path), old
    rig.close()


def sweep_tables(figures: Figures, step: int = 1) -> None:
    """Tear each table, and then its old copy: one of its versions is loaded."""
    for path, content, old in tables():
        old = old or content
        versions = [load(path, each, b"") for each in (content, old)]
        for at in range(0, len(content), step):
            for tail in (b"", bytes(len(content) - at)):
                figures.count("tables")
                torn = content[:at] + tail
                if load(path, torn, old) not in versions:
                    figures.wrong.append(f"{path} at {at}: neither version")
        for at in range(0, len(old), step):
            for tail in (b"", bytes(len(old) - at)):
                figures.count("old copies")
                if load(path, content, old[:at] + tail) != versions[0]:
                    figures.wrong.append(f"{path}.bak at {at}: not the table itself")


def load(path: str, content: bytes, old: bytes) -> object:
    """What a broker makes of a table and its old copy."""
    disk = MemoryDisk()
    disk.make_dirs(f"{ROOT}/config")
    for name, each in ((path, content), (path + ".bak", old)):
        if each:
            disk.open(name, create=True).pwrite(each, 0)
    return JsonTable(disk, path, at_once, Clock()).load()
