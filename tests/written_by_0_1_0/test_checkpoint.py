"""The offsets in a checkpoint of Spark that 0.1.0 has written."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.records.record import decode
from rocketbroker.sources.ranges import Queue
from rocketbroker.spark.offsets import read_offset
from rocketbroker.store.reader.directory import StoreReader
from tests.written_by_0_1_0.archive import unpack


class CheckpointTests(SynchronousTestCase):
    """What a stream has committed, over the store that it has read."""

    def test_committedOffsetIsReadAndNamesTheMessageBeforeIt(self) -> None:
        """Positions and fingerprints are those of the store, and are written alike."""
        folder = unpack(self.mktemp())
        reader = StoreReader(Disk(), str(folder / "store"))
        self.addCleanup(reader.close)
        text = (folder / "checkpoint" / "offsets" / "1").read_text("utf-8")
        found = json.loads(text.splitlines()[-1])
        offset = read_offset(found)
        queues = [Queue("Orders", "broker-a", each) for each in (0, 1)]
        self.assertEqual(offset.positions, dict.fromkeys(queues, 30))
        for queue in queues:
            (data,) = reader.read("Orders", queue.queue_id, 29, 30).records
            before = decode(data)
            fingerprint = (before.store_ms, before.unique_key)
            self.assertEqual(tuple(offset.fingerprints[queue]), fingerprint)
        self.assertEqual(offset.to_json(), found)
