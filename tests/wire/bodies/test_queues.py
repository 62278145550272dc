"""Tests of queues as values and keys."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.queues import LockBatchBody, MessageQueue
from rocketbroker.wire.fastjson import dumps, loads

QUEUE = MessageQueue("T1", "b1", 0)


class MessageQueueTests(SynchronousTestCase):
    """In and out, also as a key."""

    def test_key(self) -> None:
        """A queue can be a key, as in the answer of 202."""
        text = b'{"offsetTable":{{"brokerName":"b1","queueId":0,"topic":"T1"}:5}}'
        self.assertEqual(dumps({"offsetTable": {QUEUE: 5}}), text)
        value = loads(text)
        assert isinstance(value, dict)
        table = value["offsetTable"]
        self.assertEqual([MessageQueue.from_json(key) for key in table], [QUEUE])

    def test_keyInQuotes(self) -> None:
        """The Go client's files have the object as a string."""
        key = '{"topic":"T1","brokerName":"b1","queueId":0}'
        self.assertEqual(MessageQueue.from_json(key), QUEUE)

    def test_value(self) -> None:
        """A queue is read from what was written."""
        self.assertEqual(MessageQueue.from_json(QUEUE.to_json()), QUEUE)

    def test_order(self) -> None:
        """Queues are sorted by topic, broker and number."""
        queues = [
            MessageQueue("a", "b", 10),
            MessageQueue("a", "b", 9),
            MessageQueue("a", "a", 11),
        ]
        self.assertEqual([q.queue_id for q in sorted(queues)], [11, 9, 10])

    def test_wrong(self) -> None:
        """What is no queue is refused."""
        wrong: list[object] = [5, "x", [], {"queueId": "x"}]
        for value in wrong:
            with self.assertRaises(RemoteProtocolError):
                MessageQueue.from_json(value)


class LockBatchBodyTests(SynchronousTestCase):
    """The body of 41 and 42."""

    def test_inAndOut(self) -> None:
        """It is read from what was written, byte by byte as clients have it."""
        body = LockBatchBody(client_id="c", consumer_group="g", mq_set=[QUEUE])
        text = (
            b'{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"b1",'
            b'"queueId":0,"topic":"T1"}],"onlyThisBroker":false}'
        )
        self.assertEqual(dumps(body), text)
        self.assertEqual(LockBatchBody.from_json(loads(text)), body)
