"""Tests of static topics' mappings."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.fastjson import dumps, loads


class MappingTests(SynchronousTestCase):
    """In and out."""

    def test_sample(self) -> None:
        """It is read and written as C{docs/facts} has it."""
        text = (
            b'{"bname":"b1","currIdMap":{0:0,3:1},"dirty":false,"epoch":123,'
            b'"scope":"__global__","topic":"T1","totalQueues":8}'
        )
        info = TopicQueueMappingInfo(
            topic="T1", total_queues=8, bname="b1", epoch=123, curr_id_map={0: 0, 3: 1}
        )
        self.assertEqual(TopicQueueMappingInfo.from_json(loads(text)), info)
        self.assertEqual(dumps(info), text)
