"""A consumer that polls."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.lite_pull import LitePullConsumer
from rocketbroker.errors import ClientClosed, ConfigurationError
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

FIRST, SECOND = (MessageQueue("T", "b1", n) for n in range(2))


class LitePullTests(SynchronousTestCase):
    """One broker with two queues."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime

    def started(self, **options: Any) -> LitePullConsumer:
        """A consumer that reads topic T, or the queues that it is given."""
        if "queues" not in options:
            options["topic"] = "T"
        options.setdefault("start", "earliest")
        consumer = self.here.session().lite_pull("G", **options)
        self.runtime.finish(consumer.start())
        return consumer

    def poll(self, consumer: LitePullConsumer, limit: int = 32) -> list[str]:
        """What is there now."""
        self.runtime.settle()
        found = self.runtime.finish(consumer.poll(0.0, limit))
        return [message.text for message in found]

    def committed(self, queue: int = 0) -> int | None:
        """What the broker knows."""
        return self.here.broker().offsets.get(("G", "T", queue))

    def test_pollGivesWhatIsThere(self) -> None:
        """At most as much as is wanted; then the rest; then nothing."""
        self.here.put("1", "2", "3")
        consumer = self.started()
        self.assertEqual(self.poll(consumer, 2), ["1", "2"])
        self.assertEqual(self.poll(consumer, 2), ["3"])
        self.assertEqual(self.poll(consumer), [])

    def test_pollWaitsForTheFirst(self) -> None:
        """As long as it is told."""
        consumer = self.started()
        waiting = self.runtime.start(consumer.poll(5.0))
        self.runtime.advance(1.0)
        self.here.put("1")
        self.runtime.settle()
        self.assertEqual([one.text for one in waiting.value()], ["1"])
        empty = self.runtime.start(consumer.poll(5.0))
        self.runtime.advance(5.0)
        self.assertEqual(empty.value(), [])

    def test_lastPollIsDoneWithTheNext(self) -> None:
        """And committed by a later poll, every five seconds."""
        self.here.put("1", "2")
        consumer = self.started()
        self.poll(consumer)
        self.runtime.advance(10.0)
        self.assertEqual(consumer.position(FIRST), 0)
        self.assertIsNone(self.committed())
        self.poll(consumer)
        self.assertEqual((consumer.position(FIRST), self.committed()), (2, 2))

    def test_commitIsByHandIfWanted(self) -> None:
        """Then nothing else commits, not even the end."""
        self.here.put("1", "2")
        consumer = self.started(auto_commit=False)
        self.poll(consumer, 1)
        self.runtime.advance(60.0)
        self.poll(consumer, 1)
        self.assertIsNone(self.committed())
        self.runtime.finish(consumer.commit())
        self.assertEqual(self.committed(), 2)
        self.assertEqual(self.runtime.finish(consumer.committed(FIRST)), 2)
        self.here.put("3")
        self.poll(consumer)
        self.poll(consumer)
        self.runtime.finish(consumer.close())
        self.assertEqual(self.committed(), 2)

    def test_seekGoesAnywhere(self) -> None:
        """Back, to the end, to the beginning, to a time; at once."""
        self.here.put("1", "2", "3")
        consumer = self.started()
        self.assertEqual(self.poll(consumer), ["1", "2", "3"])
        self.runtime.finish(consumer.seek(FIRST, 1))
        self.assertEqual(self.poll(consumer), ["2", "3"])
        self.runtime.finish(consumer.seek_to_begin(FIRST))
        self.assertEqual(self.poll(consumer), ["1", "2", "3"])
        self.runtime.finish(consumer.seek_to_end(FIRST))
        self.here.put("4")
        self.assertEqual(self.poll(consumer), ["4"])
        at = self.runtime.finish(consumer.offset_for_time(FIRST, 1.002))
        self.assertEqual(at, 2)

    def test_pausedQueueGivesNothing(self) -> None:
        """Until it is resumed; the others go on."""
        consumer = self.started()
        consumer.pause([FIRST])
        self.here.put("1")
        self.here.put("2", queue=1)
        self.assertEqual(self.poll(consumer), ["2"])
        consumer.resume([FIRST])
        self.assertEqual(self.poll(consumer), ["1"])

    def test_assignedQueuesAreShared(self) -> None:
        """With nobody: two consumers of one group read the same queue."""
        self.here.put("1")
        self.here.put("2", queue=1)
        both = [self.started(queues=[FIRST]) for _ in range(2)]
        self.assertEqual([self.poll(one) for one in both], [["1"], ["1"]])
        self.assertEqual([one.queues for one in both], [[FIRST]] * 2)
        codes = self.runtime.codes()
        self.assertNotIn(RequestCode.GET_CONSUMER_LIST_BY_GROUP, codes)
        with self.assertRaises(ConfigurationError):
            both[0].pause([SECOND])

    def test_membersShareTheTopic(self) -> None:
        """As those that are given messages do; heartbeats say how it consumes."""
        first, second = self.started(), self.started()
        self.runtime.advance(2.0)
        self.assertEqual(first.queues + second.queues, [FIRST, SECOND])
        for data in self.here.broker().groups["G"].values():
            self.assertEqual(data.consume_type, "CONSUME_ACTIVELY")
            topics = [one.topic for one in data.subscription_data_set]
            self.assertEqual(topics, ["T"])

    def test_leavingCommits(self) -> None:
        """What was polled is done."""
        self.here.put("1", "2")
        consumer = self.started()
        self.poll(consumer)
        self.runtime.finish(consumer.close())
        self.assertEqual(self.committed(), 2)
        with self.assertRaises(ClientClosed):
            self.runtime.finish(consumer.poll(0.0))

    def test_topicOrQueuesAreGiven(self) -> None:
        """One of them."""
        mq = self.here.session()
        given: list[dict[str, Any]] = [{}, {"topic": "T", "queues": [FIRST]}]
        for wrong in given:
            with self.assertRaises(ConfigurationError):
                mq.lite_pull("G", **wrong)
