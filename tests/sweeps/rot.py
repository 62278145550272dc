"""Every bit of the last records turned, after a clean stop and after a kill.

Whatever is handed out has the body that was sent, by pulls, by id, and to those who
read the directory without a broker; all other messages are handed out; and the store
goes on.
"""

from __future__ import annotations

from rocketbroker.errors import StoreError
from rocketbroker.records.record import decode
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.testing.files import MemoryDisk
from tests.store.snapshots import log_file
from tests.store.stores import ROOT, SEGMENT, put
from tests.sweeps.corpus import Corpus, Place, readable

#: So many records stand in the log, and of the last of them every bit is turned.
RECORDS = 30
LAST = 3


class Figures:
    """What a sweep has come to.

    @ivar cases: how many stores were damaged.
    @ivar withheld: in how many the damaged message was not handed out.
    @ivar unnoticed: in how many a bit was turned that is neither checked nor of use to
        tell where the message belongs.
    @ivar relabelled: in how many the message is in a topic or queue that had none.
    @ivar counted: in how many something was counted as corrupt or given up.
    @ivar wrong: what was not as it has to be.
    """

    def __init__(self) -> None:
        self.cases = 0
        self.withheld = 0
        self.unnoticed = 0
        self.relabelled = 0
        self.counted = 0
        self.wrong: list[str] = []

    def __str__(self) -> str:
        return (
            f"{self.cases} cases: {self.withheld} withheld, {self.unnoticed} in fields "
            f"that nothing covers, {self.relabelled} under another name, "
            f"{self.counted} counted, {len(self.wrong)} wrong"
        )


def sweep(figures: Figures, clean: bool, step: int = 1) -> None:
    """Turn the bits.

    @param step: only each so-manieth.
    """
    corpus = Corpus(RECORDS, clean)
    number = 0
    for place, (start, end) in corpus.last(LAST):
        for bit in range(8 * (end - start)):
            number += 1
            if number % step == 0:
                disk = corpus.image()
                turn(disk, start + bit // 8, bit % 8)
                what = f"bit {bit % 8} of byte {bit // 8} of {place}, clean {clean}"
                Case(figures, corpus, place, what).check(disk)


def turn(disk: MemoryDisk, position: int, bit: int) -> None:
    """Change a bit of the log."""
    file = disk.open(log_file(position // SEGMENT * SEGMENT))
    (byte,) = file.pread(1, position % SEGMENT)
    file.pwrite(bytes([byte ^ 1 << bit]), position % SEGMENT)
    file.close()


class Case:
    """One damaged store."""

    def __init__(
        self, figures: Figures, corpus: Corpus, place: Place, what: str
    ) -> None:
        self.figures = figures
        self.corpus = corpus
        self.place = place
        self.what = what
        self.relabelled = False

    def wrong(self, why: str) -> None:
        """Note that it is not as it has to be."""
        self.figures.wrong.append(f"{self.what}: {why}")

    def check(self, disk: MemoryDisk) -> None:
        """Look at all that is handed out, go on, and start once more."""
        figures = self.figures
        figures.cases += 1
        self.offline(disk.image(keep_all=True))
        store = self.corpus.open(disk)
        handed = self.handed(store)
        figures.relabelled += self.relabelled
        figures.withheld += self.place not in handed
        figures.unnoticed += self.place in handed
        figures.counted += bool(store.corrupt_records or store.discarded_bytes)
        self.by_id(store)
        queue = store.queue(*self.place[:2])
        for body in (b"after", b"afterwards"):
            put(store, queue, body)
        last = [message.body for message in readable(store).values()]
        if b"after" not in last or b"afterwards" not in last:
            self.wrong("it does not go on")
        store.close()
        store = self.corpus.open(disk)
        self.handed(store)
        disk.crash(keep_all=True)
        store = self.corpus.open(disk)
        self.handed(store)

    def handed(self, store: Store) -> set[Place]:
        """What pulls hand out."""
        bodies = self.corpus.bodies
        found = readable(store)
        for place, message in found.items():
            if message.body in (b"after", b"afterwards"):
                continue
            if place not in bodies and message.body == bodies[self.place]:
                self.relabelled = True
            elif message.body != bodies.get(place):
                self.wrong(f"{place} is {message.body!r}")
        for place in bodies:
            if place != self.place and place not in found:
                self.wrong(f"{place} is lost")
        return set(found)

    def by_id(self, store: Store) -> None:
        """What is found by its position."""
        for place, (start, _) in self.corpus.positions.items():
            record = store.record_at(start)
            if record is None:
                if place != self.place:
                    self.wrong(f"nothing at {start}")
            elif decode(record).body != self.corpus.bodies[place]:
                self.wrong(f"another body at {start}")

    def offline(self, disk: MemoryDisk) -> None:
        """What a reader of the directory hands out, as an export has it."""
        reader = StoreReader(disk, ROOT)
        for (topic, queue_id, offset), body in self.corpus.bodies.items():
            place = topic, queue_id, offset
            try:
                piece = reader.read(topic, queue_id, offset, offset + 1)
            except StoreError:
                if place != self.place:
                    self.wrong(f"{place} cannot be exported")
                continue
            if decode(piece.records[0]).body != body:
                self.wrong(f"another body exported for {place}")
        reader.close()
