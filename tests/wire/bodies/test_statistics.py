"""The answers of 202 and 208."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.statistics import ConsumeStats, TopicStatsTable
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.fields import object_of

QUEUE = b'{"brokerName":"b","queueId":0,"topic":"T"}'
TOPIC = (
    b'{"offsetTable":{' + QUEUE + b':{"lastUpdateTimestamp":1,"maxOffset":9,'
    b'"minOffset":2}},"topicPutTps":1.5}'
)
GROUP = (
    b'{"consumeTps":0.0,"offsetTable":{' + QUEUE + b':{"brokerOffset":9,'
    b'"consumerOffset":5,"lastTimestamp":1,"pullOffset":7}}}'
)


class StatisticsTests(SynchronousTestCase):
    """In and out, as docs/facts/admin.md 3 has them."""

    def test_topic(self) -> None:
        """Offsets and the last time of each queue."""
        table = object_of(TOPIC, TopicStatsTable.from_json)
        offsets = table.offset_table[MessageQueue("T", "b", 0)]
        self.assertEqual((offsets.min_offset, offsets.max_offset), (2, 9))
        self.assertEqual((offsets.last_update_timestamp, table.topic_put_tps), (1, 1.5))
        self.assertEqual(dumps(table), TOPIC)

    def test_group(self) -> None:
        """The queue's end, and where the group is."""
        table = object_of(GROUP, ConsumeStats.from_json)
        offsets = table.offset_table[MessageQueue("T", "b", 0)]
        self.assertEqual((offsets.broker_offset, offsets.consumer_offset), (9, 5))
        self.assertEqual((offsets.pull_offset, offsets.last_timestamp), (7, 1))
        self.assertEqual(dumps(table), GROUP)

    def test_empty(self) -> None:
        """Nothing at all is an empty table."""
        self.assertEqual(ConsumeStats.from_json({}), ConsumeStats())
        self.assertEqual(TopicStatsTable.from_json({}), TopicStatsTable())

    def test_wrong(self) -> None:
        """What is no such table is refused."""
        wrong: list[object] = [
            [],
            {"offsetTable": {QUEUE.decode(): 5}},
            {"consumeTps": "x"},
        ]
        for value in wrong:
            self.assertRaises(RemoteProtocolError, ConsumeStats.from_json, value)
