"""The tag codes of messages that wait for their time."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY
from rocketbroker.store.commitlog.segments import segment_name
from rocketbroker.store.dispatch.delays import LAST_MS, SCHEDULE_TOPIC, delivery_ms
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, START_MS, draft, opened

LEVELS = [1000, 5000, 60_000]


class DelayTests(SynchronousTestCase):
    """Levels and times."""

    def test_delivery(self) -> None:
        """The level's delay is added to the store time; a level too high is the last;
        no level is no delay; of two the last counts."""
        for properties, ms in (
            (b"DELAY\x011\x02", 1000),
            (b"K\x01v\x02DELAY\x013\x02WAIT\x01true\x02", 60_000),
            (b"K\x01v\x02DELAY\x012", 5000),
            (b"DELAY\x0199\x02", 60_000),
            (b"DELAY\x011\x02DELAY\x012\x02", 5000),
        ):
            self.assertEqual(delivery_ms(properties, 7, LEVELS), 7 + ms, properties)
        for properties in (
            b"",
            b"DELAY\x010\x02",
            b"DELAY\x01x\x02",
            b"XDELAY\x011\x02",
        ):
            self.assertIsNone(delivery_ms(properties, 7, LEVELS), properties)
        self.assertEqual(delivery_ms(b"DELAY\x011\x02", 7, []), 1007)
        self.assertEqual(delivery_ms(b"DELAY\x011\x02", LAST_MS - 1, LEVELS), LAST_MS)


class RecoveryTests(SynchronousTestCase):
    """What a recovery makes of records that are not ordinary ones."""

    def test_delayed(self) -> None:
        """Delayed messages get their times back."""
        disk = MemoryDisk()
        store = opened(disk)
        queue = store.queue(SCHEDULE_TOPIC.decode(), 1)
        store.append(
            [
                draft(queue, properties=b"DELAY\x012\x02", tag_code=START_MS + 5000),
                draft(queue, properties=b"TAGS\x01TagA\x02", tag_code=2598919),
            ]
        )
        disk.crash(keep_all=True)
        store = opened(disk)
        blob = store.queue(queue.topic, 1).read(0, 2)
        self.assertEqual(
            [entry[2] for entry in ENTRY.iter_unpack(blob)], [START_MS + 5000, 2598919]
        )

    def test_rottenTime(self) -> None:
        """A store time that cannot be is no reason not to start."""
        disk = MemoryDisk()
        store = opened(disk)
        waiting = draft(
            store.queue(SCHEDULE_TOPIC.decode(), 0), properties=b"DELAY\x011\x02"
        )
        store.append([waiting])
        disk.crash(keep_all=True)
        log = disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        log.pwrite(LAST_MS.to_bytes(8, "big"), waiting.position + 56)
        blob = opened(disk).queue(SCHEDULE_TOPIC.decode(), 0).read(0, 1)
        self.assertEqual(ENTRY.unpack(blob)[2], LAST_MS)

    def test_innerBatch(self) -> None:
        """A record that is a batch stands in a queue of another kind: a simple one of
        that topic would keep the reference from starting."""
        disk = MemoryDisk()
        store = opened(disk)
        store.append([draft(store.queue("Batch", 0), sys_flag=0xC0)])
        disk.crash(keep_all=True)
        store = opened(disk)
        self.assertEqual(disk.list(f"{ROOT}/consumequeue"), [])
        self.assertEqual(store.recovered_records, 1)
