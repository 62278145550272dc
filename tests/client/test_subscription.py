"""What a group wants of a topic."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.subscription import subscription
from rocketbroker.errors import ConfigurationError


class SubscriptionTests(SynchronousTestCase):
    """As users say it, as heartbeats carry it, and what it wants."""

    def test_tagsAreATextOrAList(self) -> None:
        """Both mean the same."""
        for tags in ("TagA || TagB", ["TagA", "TagB"]):
            found = subscription("T", tags)
            self.assertEqual(found.expression, "TagA || TagB")
            self.assertTrue(found.wants("TagA"))
            self.assertFalse(found.wants("TagC") or found.wants(None))

    def test_noTagsWantEverything(self) -> None:
        """So do the star and the empty text."""
        for tags in (None, "*", ""):
            found = subscription("T", tags)
            self.assertTrue(found.wants("x") and found.wants(None))
            self.assertEqual(found.data(1).to_json()["subString"], "*")

    def test_heartbeatHasCodesOfTags(self) -> None:
        """docs/facts/client.md 15."""
        data = subscription("T", "TagA || TagB").data(17)
        self.assertEqual(data.code_set, [2598919, 2598920])
        self.assertEqual((data.tags_set, data.sub_version), (["TagA", "TagB"], 17))

    def test_sqlIsCheckedHere(self) -> None:
        """The broker applies it; what it would refuse is refused before."""
        found = subscription("T", sql="a > 5")
        self.assertTrue(found.wants(None))
        data = found.data(1)
        self.assertEqual((data.expression_type, data.sub_string), ("SQL92", "a > 5"))
        self.assertEqual((data.tags_set, data.code_set), ([], []))
        with self.assertRaises(ConfigurationError):
            subscription("T", sql="a >")

    def test_anythingElseIsOneSentence(self) -> None:
        """What could match nothing, or everything, by mistake."""
        wrong: list[dict[str, Any]] = [
            {"tags": "a > 5"},
            {"tags": "a = 'x' and b = 1"},
            {"tags": 5},
            {"tags": ["a", 5]},
            {"tags": ["a", " "]},
            {"tags": "||"},
            {"tags": "a", "sql": "a > 5"},
        ]
        for given in wrong:
            with self.assertRaises(ConfigurationError):
                subscription("T", **given)
        names: list[Any] = ["", "a b", None, "x" * 128]
        for topic in names:
            with self.assertRaises(ConfigurationError):
                subscription(topic)
