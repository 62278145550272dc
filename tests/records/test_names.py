"""Names of topics and groups."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import names


class NameTests(SynchronousTestCase):
    """What names mean, and which are allowed."""

    def test_topics(self) -> None:
        """Letters, digits and four signs, at most 127 of them."""
        for topic in ("T", "%RETRY%g", "a_b-c|d", "x" * 127):
            self.assertIsNone(names.topic_problem(topic))

    def test_refusedTopics(self) -> None:
        """Each refusal says why, in RocketMQ's words."""
        for topic, word in (
            ("", "blank"),
            (" \t", "blank"),
            ("a.b", "illegal characters"),
            ("a/b", "illegal characters"),
            ("%RETRY%g+t", "illegal characters"),
            ("T\n", "illegal characters"),
            ("x" * 128, "longer"),
        ):
            self.assertIn(word, names.topic_problem(topic) or "")

    def test_groups(self) -> None:
        """Groups have the same characters and may be longer, or empty."""
        self.assertIsNone(names.group_problem(""))
        self.assertIsNone(names.group_problem("g" * 255))
        self.assertIn("longer", names.group_problem("g" * 256) or "")
        self.assertIn("illegal", names.group_problem("a b") or "")

    def test_retry(self) -> None:
        """A group's retry topic tells the group, in both forms."""
        topic = names.retry_topic("g")
        self.assertEqual(topic, "%RETRY%g")
        self.assertTrue(names.is_retry_topic(topic))
        self.assertEqual(names.group_of_retry_topic(topic), "g")
        self.assertEqual(names.group_of_retry_topic("%RETRY%g+t"), "g")
        self.assertTrue(names.is_dlq_topic(names.dlq_topic("g")))

    def test_namespaceStandsBehindThePrefix(self) -> None:
        """As Java's NamespaceUtil has it; twice it is not added."""
        for outside, inside in (
            ("T", "I%T"),
            ("%RETRY%G", "%RETRY%I%G"),
            ("%DLQ%G", "%DLQ%I%G"),
            ("J%T", "I%J%T"),
        ):
            self.assertEqual(names.in_namespace("I", outside), inside)
            self.assertEqual(names.in_namespace("I", inside), inside)
            self.assertEqual(names.without_namespace("I", inside), outside)

    def test_systemHasNoNamespace(self) -> None:
        """Nor has a name of another namespace, or a client of none."""
        for name in ("TBW102", "rmq_sys_x", "CID_RMQ_SYS_x", ""):
            self.assertEqual(names.in_namespace("I", name), name)
        self.assertEqual(names.without_namespace("I", "J%T"), "J%T")
        self.assertEqual(names.in_namespace("", "T"), "T")
        self.assertEqual(names.without_namespace("", "I%T"), "I%T")

    def test_system(self) -> None:
        """System topics and groups are known by name or prefix."""
        self.assertTrue(names.is_system_topic("SCHEDULE_TOPIC_XXXX"))
        self.assertTrue(names.is_system_topic("rmq_sys_wheel_timer"))
        self.assertFalse(names.is_system_topic("T"))
        self.assertTrue(names.is_system_group("CID_RMQ_SYS_x"))
        self.assertTrue(names.is_system_group("TOOLS_CONSUMER"))
        self.assertFalse(names.is_system_group("g"))

    def test_noSend(self) -> None:
        """Clients may send to some system topics, not to those."""
        self.assertIn(names.HALF_TOPIC, names.NO_SEND_TOPICS)
        self.assertNotIn(names.AUTO_CREATE_TOPIC, names.NO_SEND_TOPICS)

    def test_reply(self) -> None:
        """Replies go to a topic named after the cluster."""
        self.assertEqual(names.reply_topic("c"), "c_REPLY_TOPIC")
