"""The table of static topics and its file."""

from __future__ import annotations

import attrs
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.queue_mappings import QueueMappings, loaded_details
from rocketbroker.errors import SystemFailure
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.mappings import (
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)
from rocketbroker.wire.bodies.topics import DataVersion
from tests.broker.rig import logged

PATH = "/config/topicQueueMapping.json"

#: As RocketMQ 5.3.3 writes it.
FILE = (
    b'{\n\t"dataVersion":{\n\t\t"counter":1,\n\t\t"stateVersion":0,\n\t\t"timestamp":7'
    b'\n\t},\n\t"topicQueueMappingInfoMap":{\n\t\t"T":{\n\t\t\t"bname":"b",\n\t\t\t'
    b'"currIdMap":{},\n\t\t\t"dirty":false,\n\t\t\t"epoch":5,\n\t\t\t"hostedQueues":{'
    b'0:[\n\t\t\t\t{\n\t\t\t\t\t"bname":"b",\n\t\t\t\t\t"endOffset":-1,\n\t\t\t\t\t'
    b'"gen":0,\n\t\t\t\t\t"logicOffset":0,\n\t\t\t\t\t"queueId":0,\n\t\t\t\t\t'
    b'"startOffset":0,\n\t\t\t\t\t"timeOfEnd":-1,\n\t\t\t\t\t"timeOfStart":-1\n\t\t\t\t'
    b'}]},\n\t\t\t"scope":"__global__",\n\t\t\t"topic":"T",\n\t\t\t"totalQueues":1'
    b"\n\t\t}\n\t}\n}"
)

ITEM = LogicQueueMappingItem(gen=0, queue_id=0, bname="b")
DETAIL = TopicQueueMappingDetail(
    topic="T", bname="b", total_queues=1, epoch=5, hosted_queues={0: (ITEM,)}
)


class QueueMappingsTests(SynchronousTestCase):
    """Mappings, and what is told of them."""

    def setUp(self) -> None:
        """An empty disk."""
        self.disk = MemoryDisk()
        self.mappings = self.table()

    def table(self) -> QueueMappings:
        """The table of a broker that has just started."""
        file = JsonTable(self.disk, PATH, at_once, Clock())
        mappings = QueueMappings("b", file, lambda: 7)
        mappings.load()
        return mappings

    def test_file(self) -> None:
        """The file is RocketMQ's, in one line, with the same order of members."""
        self.mappings.put(DETAIL, False)
        plain = FILE.replace(b"\n", b"").replace(b"\t", b"")
        self.assertEqual(self.disk.read(PATH), plain)
        again = self.table()
        self.assertEqual(again.details, {"T": DETAIL})
        self.assertEqual(again.version, self.mappings.version)

    def test_read(self) -> None:
        """RocketMQ's file is read; an entry that makes no sense is logged."""
        bad = FILE.replace(b'"T":{', b'"U":{"epoch":"x"},\n\t\t"T":{')
        self.write(bad)
        (line,) = logged(lambda: setattr(self, "mappings", self.table()))
        self.assertIn("topic U", line)
        self.assertEqual(self.mappings.details, {"T": DETAIL})

    def write(self, content: bytes) -> None:
        """Put a file there."""
        self.mappings.put(DETAIL, False)
        file = self.disk.open(PATH)
        file.truncate(0)
        file.pwrite(content, 0)

    def test_watchers(self) -> None:
        """Whoever watches is told of each change."""
        seen: list[list[str]] = []
        self.mappings.watch(lambda: seen.append(list(self.mappings.details)))
        self.mappings.put(DETAIL, False)
        self.mappings.delete("T")
        self.mappings.delete("T")
        self.assertEqual(seen, [[], ["T"], []])

    def test_infos(self) -> None:
        """What name servers are told is of the topics that are asked for."""
        self.assertEqual(self.mappings.infos(["T"]), {})
        self.mappings.put(DETAIL, False)
        self.assertEqual(self.mappings.infos(["T", "U"]), {"T": DETAIL.info})

    def test_refused(self) -> None:
        """What is for another broker, or older, is refused."""
        self.mappings.put(DETAIL, False)
        for changes in ({"bname": "c"}, {"epoch": 4}):
            with self.assertRaises(SystemFailure):
                self.mappings.put(attrs.evolve(DETAIL, **changes), False)

    def test_become(self) -> None:
        """A slave has what its master has."""
        version = DataVersion(counter=3)
        value = {"topicQueueMappingDetailMap": {"T": DETAIL.to_json()}}
        self.mappings.become(loaded_details(value), version)
        self.assertEqual(self.table().details, {"T": DETAIL})
        self.assertEqual(self.table().version, version)
        writes = self.disk.read(PATH)
        self.mappings.become([DETAIL], version)
        self.assertEqual(self.disk.read(PATH), writes)
