"""Entries of queues, and questions about RocksDB."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.queue_admin import MAX_ENTRIES
from rocketbroker.errors import SystemFailure
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import Rig, answered, heartbeat, logged


class QueueAdminTests(SynchronousTestCase):
    """Requests 321, 354 and 355."""

    def setUp(self) -> None:
        """Topic T with two queues, and three messages in the first."""
        self.rig = Rig({"enablePropertyFilter": "true"})
        self.addCleanup(self.rig.close)
        self.rig.topic("T", queues=2)
        self.places = [self.rig.append(b"x" * size) for size in (1, 2, 3)]

    def asked(self, **changes: str) -> dict[str, Any]:
        """The answer to request 321."""
        fields = {"topic": "T", "queueId": "0", "index": "0", "count": "10"}
        found: Any = loads(self.rig.ask(321, {**fields, **changes}).body)
        return dict(found)

    def test_entries(self) -> None:
        """Bounds of the queue, and as many entries as are wanted and there."""
        found = self.asked(index="1", count="1")
        place = self.places[1]
        self.assertEqual(
            found,
            {
                "maxQueueIndex": 3,
                "minQueueIndex": 0,
                "queueData": [
                    {
                        "eval": False,
                        "physicOffset": place.position,
                        "physicSize": place.end - place.position,
                        "tagsCode": 0,
                    }
                ],
            },
        )
        self.assertEqual(len(self.asked(index="1")["queueData"]), 2)
        self.assertEqual(self.asked(count="0")["queueData"], [])

    def test_most(self) -> None:
        """An answer has a bounded number of entries."""
        for _ in range(MAX_ENTRIES):
            self.rig.append()
        found = self.asked(count=str(2 * MAX_ENTRIES))["queueData"]
        self.assertEqual(len(found), MAX_ENTRIES)

    def test_files(self) -> None:
        """Entries may stand in several files."""
        for _ in range(150):
            self.rig.append()
        found = self.asked(count="1000")["queueData"]
        self.assertEqual(len(found), 153)
        positions = [entry["physicOffset"] for entry in found]
        self.assertEqual(positions, sorted(positions))

    def test_group(self) -> None:
        """What a group wants of the topic, by tags or by properties, if it is there."""
        found = self.asked(consumerGroup="G")
        self.assertEqual(found["filterData"], "G@T is not online!")
        self.rig.ask(34, {}, heartbeat())
        found = self.asked(consumerGroup="G")
        self.assertEqual(found["filterData"], "null")
        self.assertEqual(found["subscriptionData"]["subString"], "*")
        body = heartbeat(group="S").replace(b'"*"', b'"a > 1"')
        self.rig.ask(34, {}, body.replace(b'"TAG"', b'"SQL92"'))
        kept = loads(self.asked(consumerGroup="S")["filterData"].encode())
        assert isinstance(kept, dict)
        self.assertEqual((kept["expression"], kept["topic"]), ("a > 1", "T"))

    def test_nothing(self) -> None:
        """Without that entry there is a remark and no body; without that queue an
        error."""
        for index in ("3", "-1"):
            fields = {"topic": "T", "queueId": "0", "index": index, "count": "1"}
            answer = self.rig.ask(321, fields)
            wanted = 0, b"", f"Index {index} of 0@T is not exist!"
            self.assertEqual((answer.code, answer.body, answer.remark), wanted)
        for topic, number in (("T", "2"), ("T", "-1"), ("U", "0")):
            with self.assertRaises(SystemFailure) as caught:
                self.asked(topic=topic, queueId=number)
            self.assertEqual(caught.exception.remark, f"{number}@{topic} is not exist!")

    def test_threads(self) -> None:
        """The disk is read in a thread."""
        rig = Rig({}, threads=True)
        self.addCleanup(rig.close)
        rig.topic("T", queues=1)
        rig.append()
        begun = rig.begin(321, {"topic": "T", "count": "1"})
        rig.threads.run()
        self.assertIn(b'"physicOffset":0', answered(begun).body)

    def test_compare(self) -> None:
        """Whether queues in RocksDB are as those in files is said in the log: there are
        none."""
        (line,) = logged(
            lambda: self.assertEqual(
                self.rig.ask(354, {"topic": "T"}).body, b'{"checkStatus":2}'
            )
        )
        self.assertIn("there are none", line)

    def test_export(self) -> None:
        """No table is in RocksDB; one that nobody knows is an error."""
        for tables in ("topics", "Topics;subscriptionGroups;consumerOffsets", ""):
            answer = self.rig.ask(355, {"configType": tables})
            self.assertEqual((answer.code, answer.remark), (0, "export done."))
        wrong: list[dict[str, str]] = [{"configType": "topics;other"}, {}]
        for fields in wrong:
            with self.assertRaises(SystemFailure):
                self.rig.ask(355, fields)
