"""Queues of the other kinds that one broker has written and the other one goes on with:
of batches, light ones, and those with extensions."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow import read
from rocketbroker.records.batches import encode_part
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.queueunits import ExtensionUnit, decode_extension
from rocketbroker.records.record_head import MAGIC_BLANK
from scripts.torture.handover import HandOver
from tests.heavy import HEAVY
from tests.integration.asker import BATCHES, Asker
from tests.records.samples import sound_size

PLAIN, PACKS, LATE, LIGHT = "PlainOnes", "Packs", "LateOnes", "%LMQ%light"

#: A group, and which messages it wants: each fourth one.
GROUP, WANTED = "wants-threes", "a = 3"

#: Small files, so that many begin and end on both sides.
EXTENSION_BYTES = 4096
SETTINGS = {
    "enableConsumeQueueExt": "true",
    "enableCalcFilterBitMap": "true",
    "enablePropertyFilter": "true",
    "enableMultiDispatch": "true",
    "enableLmq": "true",
    "mappedFileSizeConsumeQueue": 20 * 300,
    "mappedFileSizeConsumeQueueExt": EXTENSION_BYTES,
    "mapperFileSizeBatchConsumeQueue": 46 * 100,
}

#: Each record has a CRC of its own, and recovery looks at it.
CRCS = {"enabledAppendPropCRC": "true", "forceVerifyPropCRC": "true"}

#: So many messages of each kind each broker takes, and so many are in a batch.
COUNT = 600
BATCH = 4

#: So many wait for a delay level before they stand in a batch queue.
WAITING = 40

#: How long what was sent may take until it is in its queues, in seconds.
MAX_SECONDS = 120.0


class QueueHandOverTests(SynchronousTestCase):
    """From a Java broker to ours, and back."""

    def hand_over(self, how: int, version: str = "5.3.3", **more: object) -> HandOver:
        """Each serves what the other one has written, and writes more.

        @param how: the signal that ends each broker.
        @param version: of the Java broker.
        @param more: settings of both.
        @return: what it was done with; neither is up.
        """
        self.killed = how == signal.SIGKILL
        over = HandOver(version, **SETTINGS, **more)
        self.addCleanup(over.stop)
        over.java.start()
        ask = self.asker(over)
        ask.create(PLAIN, "")
        for topic in (PACKS, LATE):
            ask.create(topic, "+queue.type=BatchCQ")
        self.write(ask, 0)
        self.read(ask, COUNT)
        over.java.stop(how)

        over.cluster.broker.start()
        ask = self.asker(over)
        ask.subscribe(PLAIN, GROUP, WANTED)
        self.read(ask, COUNT)
        self.write(ask, COUNT)
        self.read(ask, 2 * COUNT)
        over.cluster.broker.stop(how)
        output = over.cluster.broker.log.read_text()
        for word in ("Traceback", "are missing", "is removed", "discarded"):
            self.assertNotIn(word, output)
        self.extensions(over.cluster.store, self.killed)
        self.assertEqual(over.faults(), "")

        over.java.start()
        ask = self.asker(over)
        ask.subscribe(PLAIN, GROUP, WANTED)
        self.read(ask, 2 * COUNT)
        self.write(ask, 2 * COUNT)
        self.read(ask, 3 * COUNT)
        over.java.stop(how)
        self.assertEqual(over.faults(), "")
        return over

    def with_crcs(self, how: int, version: str = "5.3.3") -> None:
        """The same with a CRC in each record, without which Java ends the log."""
        over = self.hand_over(how, version, **CRCS)
        for word in ("not found CRC", "failed to check message CRC"):
            self.assertNotIn(word, over.java.output())
        records = 0
        for path in (over.cluster.store / "commitlog").iterdir():
            data = path.read_bytes()
            at = 0
            while size := sound_size(data, at, True):
                records += 1
                at += size
            blank = MAGIC_BLANK.to_bytes(4, "big", signed=True)
            self.assertIn(data[at + 4 : at + 8], (b"", bytes(4), blank), f"{path} {at}")
        self.assertGreater(records, 3 * COUNT)

    def asker(self, over: HandOver) -> Asker:
        """Ask the broker that is up."""
        ask = Asker(over.cluster)
        self.addCleanup(ask.close)
        return ask

    def write(self, ask: Asker, start: int) -> None:
        """Send messages of each kind to the broker that is up."""
        ask.subscribe(PLAIN, GROUP, WANTED)
        for n in range(start, start + COUNT):
            light = f"INNER_MULTI_DISPATCH\x01{LIGHT}\x02" if n % 2 else ""
            text = f"UNIQ_KEY\x01U{n}\x02TAGS\x01t\x02a\x01{n % 4}\x02{light}"
            ask.send(PLAIN, text, b"%d" % n)
        for n in range(start, start + WAITING):
            ask.send(LATE, f"UNIQ_KEY\x01L{n}\x02DELAY\x011\x02", b"%d" % n)
        for first in range(start, start + COUNT, BATCH):
            self.write_pack(ask, first)

    def write_pack(self, ask: Asker, first: int) -> None:
        """Send the messages of one batch to a batch queue, in one of the ways in which
        they can get there: only one of them is an inner batch."""
        way = first % COUNT // BATCH % 4
        numbers = range(first, first + BATCH)
        if way < 2:
            parts = (
                encode_part(0, b"%d" % n, b"UNIQ_KEY\x01P%d\x02" % n) for n in numbers
            )
            # Clients of 4.9 give a batch no key.
            text = f"UNIQ_KEY\x01P{first}\x02" if way == 0 else "WAIT\x01true\x02"
            ask.send(PACKS, text, b"".join(parts), BATCHES)
            return
        for n in numbers:
            if way == 2:
                ask.send(PACKS, f"UNIQ_KEY\x01P{n}\x02TAGS\x01t\x02", b"%d" % n)
            else:
                ask.commit(PACKS, f"P{n}", b"%d" % n)

    def read(self, ask: Asker, count: int) -> None:
        """Each queue holds what it should."""
        all_of_them = [b"%d" % n for n in range(count)]
        for topic, group, flags, wanted in (
            (PLAIN, "everybody", 4, all_of_them),
            (PLAIN, GROUP, 0, all_of_them[3::4]),
            (PACKS, "everybody", 4, all_of_them),
            (LIGHT, "%LMQ%everybody", 4, all_of_them[1::2]),
        ):
            found: list[tuple[int, bytes]] = []
            end = time.monotonic() + MAX_SECONDS
            while time.monotonic() < end and len(found) < len(wanted):
                found = list(ask.pulled(topic, group, flags))
            self.assertEqual([body for _, body in found], wanted, topic)
            if group != GROUP:
                offsets = [offset for offset, _ in found]
                if topic != LIGHT:
                    self.assertEqual(offsets, list(range(count)), topic)
        self.read_late(ask, count)
        self.find(ask, count)
        cluster = ask.cluster
        for words in ({"name_server": cluster.names}, {"store": cluster.store}):
            table = read(PACKS, columns=["queueOffset", "body"], **words).read_all()
            self.assertEqual(table.column("body").to_pylist(), all_of_them)
            self.assertEqual(table.column("queueOffset").to_pylist(), [*range(count)])

    def read_late(self, ask: Asker, count: int) -> None:
        """What has waited is there: once, or, as long as nobody has written down that
        it was delivered when its broker was killed, again."""
        wanted = {
            b"%d" % (start + n)
            for start in range(0, count, COUNT)
            for n in range(WAITING)
        }
        found: list[tuple[int, bytes]] = []
        end = time.monotonic() + MAX_SECONDS
        while time.monotonic() < end and {body for _, body in found} != wanted:
            found = list(ask.pulled(LATE, "everybody", 4))
        self.assertEqual({body for _, body in found}, wanted)
        self.assertEqual([offset for offset, _ in found], [*range(len(found))])
        if not self.killed:
            self.assertEqual(len(found), len(wanted))

    def find(self, ask: Asker, count: int) -> None:
        """Messages that are alone in batch queues are found by their keys."""
        for first in range(0, count, COUNT):
            for n in (first + BATCH, first + 2 * BATCH, first + 3 * BATCH):
                found: list[bytes] = []
                end = time.monotonic() + MAX_SECONDS
                while time.monotonic() < end and not found:
                    found = ask.found(PACKS, f"P{n}")
                self.assertEqual(found, [b"%d" % n])

    def extensions(self, store: Path, killed: bool) -> None:
        """Both have written the same of the same: units for each entry, whose bit map
        says whether the group wants the message."""
        queue = b"".join(
            path.read_bytes()
            for path in sorted((store / "consumequeue" / PLAIN / "0").iterdir())
        )
        files = sorted((store / "consumequeue_ext" / PLAIN / "0").iterdir())
        self.assertGreater(len(files), 2 * COUNT * 20 // EXTENSION_BYTES)
        data = b"".join(path.read_bytes() for path in files)
        maps: list[bytes] = []
        for n in range(2 * COUNT):
            _, _, code = ENTRY.unpack_from(queue, n * SIZE)
            at = code + (1 << 63)
            size = int.from_bytes(data[at : at + 2], "big")
            unit = decode_extension(data[at : at + size])
            assert isinstance(unit, ExtensionUnit), (n, code)
            maps.append(unit.bit_map)
        self.assertEqual(len(set(maps[COUNT:])), 2)
        for n in range(COUNT):
            # A killed broker may not have noted yet which filters it knows; then there
            # is no bit map for what recovery enters.
            allowed = {maps[COUNT + 3 if n % 4 == 3 else COUNT]}
            self.assertIn(maps[n], allowed | {b""} if killed else allowed)

    def test_killedWithCrcs(self) -> None:
        """Between kills, with a CRC in each record."""
        self.with_crcs(signal.SIGKILL)

    if HEAVY:

        def test_stopped(self) -> None:
            """Between clean stops."""
            self.hand_over(signal.SIGTERM)

        def test_killed(self) -> None:
            """Between kills."""
            self.hand_over(signal.SIGKILL)

        def test_stoppedWithCrcs(self) -> None:
            """Between clean stops, with a CRC in each record."""
            self.with_crcs(signal.SIGTERM)

        def test_stoppedNew(self) -> None:
            """Between clean stops of 5.5.0 and ours."""
            self.hand_over(signal.SIGTERM, "5.5.0")

        def test_killedNewWithCrcs(self) -> None:
            """Between kills of 5.5.0 and ours, with a CRC in each record."""
            self.with_crcs(signal.SIGKILL, "5.5.0")
