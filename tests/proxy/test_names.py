"""Names of topics and groups in calls."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import Code, Resource
from rocketbroker.proxy.names import group_of, topic_of
from rocketbroker.proxy.statuses import Refusal


class NameTests(SynchronousTestCase):
    """L{topic_of} and L{group_of}."""

    def test_usableNamesAreTaken(self) -> None:
        """Those of retries and dead letters, too."""
        for name in ("T", "%RETRY%G", "%DLQ%G", "a|b-c_9", "x" * 127):
            self.assertEqual(topic_of(Resource(name=name)), name)
        self.assertEqual(group_of(Resource(name="g" * 255)), "g" * 255)

    def test_otherTopicsAreRefusedWithTheReason(self) -> None:
        """By code and by RocketMQ's words."""
        for name, words in (
            (" ", "The specified topic is blank"),
            ("x" * 128, "The specified topic is longer than topic max length 127."),
            (
                "a b",
                "The specified topic[a b] contains illegal characters, allowing only "
                "^[%|a-zA-Z0-9_-]+$",
            ),
            ("TBW102", "cannot access system topic"),
            ("rmq_sys_x", "cannot access system topic"),
        ):
            problem = self.assertRaises(Refusal, topic_of, Resource(name=name))
            self.assertEqual((problem.code, str(problem)), (Code.ILLEGAL_TOPIC, words))

    def test_otherGroupsAreRefusedWithTheReason(self) -> None:
        """Likewise."""
        for name, words in (
            ("", "the specified group is blank"),
            ("g" * 256, "the specified group is longer than group max length 255."),
            (
                "a.b",
                "the specified group[a.b] contains illegal characters, allowing only "
                "^[%|a-zA-Z0-9_-]+$",
            ),
            ("CID_RMQ_SYS_x", "cannot use system consumer group"),
        ):
            problem = self.assertRaises(Refusal, group_of, Resource(name=name))
            self.assertEqual(problem.code, Code.ILLEGAL_CONSUMER_GROUP)
            self.assertEqual(str(problem), words)
