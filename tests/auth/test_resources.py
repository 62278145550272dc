"""Resources of ACL 2.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.resources import (
    Pattern,
    Resource,
    ResourceType,
    cluster,
    group,
    topic,
)
from tests.auth.policy_samples import resource


class ResourceTests(SynchronousTestCase):
    """Texts and values."""

    def test_texts(self) -> None:
        """The type in any case; a star at the end is a prefix, alone it is any name."""
        for text, kind, name, pattern in (
            ("*", ResourceType.ANY, None, Pattern.ANY),
            ("Topic:*", ResourceType.TOPIC, None, Pattern.ANY),
            ("TOPIC:abc", ResourceType.TOPIC, "abc", Pattern.LITERAL),
            ("group:abc*", ResourceType.GROUP, "abc", Pattern.PREFIXED),
            ("Cluster:a:b", ResourceType.CLUSTER, "a:b", Pattern.LITERAL),
            ("Topic:a*b", ResourceType.TOPIC, "a*b", Pattern.LITERAL),
            ("Topic:a*b*", ResourceType.TOPIC, "a", Pattern.PREFIXED),
            ("Topic:", ResourceType.TOPIC, "", Pattern.LITERAL),
            ("Topic", ResourceType.TOPIC, "", Pattern.LITERAL),
        ):
            self.assertEqual(Resource.parse(text), Resource(kind, name, pattern), text)

    def test_noResources(self) -> None:
        """Nothing, a blank text, and an unknown type."""
        for text in (None, "", " ", "abc", "Topics:abc", " Topic:abc"):
            self.assertIsNone(Resource.parse(text))

    def test_written(self) -> None:
        """The text of a resource is read as the same one, in the proper case."""
        for text in ("*", "Topic:*", "Topic:abc", "Group:abc*", "Cluster:c"):
            self.assertEqual(str(resource(text)), text)
        self.assertEqual(str(resource("Any:x")), "*")
        self.assertEqual(str(topic(None)), "Topic:null")

    def test_matches(self) -> None:
        """All of a type, a name, or a prefix; the types must be the same."""
        for text, wanted, matches in (
            ("*", topic("a"), True),
            ("Topic:*", topic("a"), True),
            ("Topic:*", topic(None), True),
            ("Topic:*", group("a"), False),
            ("Topic:a", topic("a"), True),
            ("Topic:a", topic("ab"), False),
            ("Topic:a", topic(None), False),
            ("Topic:a*", topic("ab"), True),
            ("Topic:a*", topic("ba"), False),
            ("Topic:a*", topic(None), False),
            ("Cluster:c", cluster("c"), True),
        ):
            self.assertEqual(
                resource(text).matches(wanted), matches, f"{text} {wanted}"
            )

    def test_groupsByTheirRetryTopics(self) -> None:
        """The prefix of a retry topic is taken off, that of dead letters is not."""
        self.assertEqual(group("%RETRY%G"), group("G"))
        self.assertEqual(group("%DLQ%G").name, "%DLQ%G")
        self.assertIsNone(group(None).name)
