"""Rules of faults, as JSON describes them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.testing.fault_rules import (
    ACTIONS,
    BUSY,
    FAMILIES,
    MAX_HITS,
    Place,
    rule_of,
)
from rocketbroker.errors import InvalidParameter

PLACE = Place(310, "T", frozenset({"G"}), frozenset({"C", "1.2.3.4:5"}))


class FaultRuleTests(SynchronousTestCase):
    """What a rule is about, and what it counts."""

    def refused(self, **value: object) -> str:
        """Why a rule is refused."""
        return str(self.assertRaises(InvalidParameter, rule_of, 1, value))

    def test_eachFieldNarrows(self) -> None:
        """All that are given have to fit."""
        self.assertTrue(rule_of(1, {"action": "drop"}).fits(PLACE))
        fitting = {"topic": "T", "group": "G", "client": "1.2.3.4:5", "request": "send"}
        self.assertTrue(rule_of(1, {"action": "drop", **fitting}).fits(PLACE))
        for key in fitting:
            value = {"action": "drop", **fitting, key: "pull"}
            self.assertFalse(rule_of(1, value).fits(PLACE), key)

    def test_requestsByCodeNameAndFamily(self) -> None:
        """One or several, and those of the action where none is given."""
        for given, codes in (
            (11, {11}),
            ("11", {11}),
            ("heart_beat", {34}),
            ("pull", FAMILIES["pull"]),
            (["pop", 11, "HEART_BEAT"], {200050, 11, 34}),
        ):
            rule = rule_of(1, {"action": "drop", "request": given})
            self.assertEqual(rule.codes, codes)
        for action, possible in ACTIONS.items():
            rule = rule_of(1, {"action": action, "code": 1, "ms": 1})
            usual = FAMILIES["send"] if action == "duplicate" else possible
            self.assertEqual(rule.codes, usual)

    def test_senselessRulesAreRefused(self) -> None:
        """With a sentence that says what is wrong."""
        for value, words in (
            ({}, "no action None"),
            ({"action": "explode"}, "it is one of code, delay, drop, cut, busy, "),
            ({"action": "drop", "tpic": "T"}, "has no tpic"),
            ({"action": "drop", "topic": 1}, "topic cannot be 1"),
            ({"action": "drop", "times": 0}, "whole number, 1 at least"),
            ({"action": "drop", "times": True}, "times cannot be True"),
            ({"action": "code"}, "needs a code"),
            ({"action": "delay"}, "needs ms"),
            ({"action": "drop", "request": "sned"}, "no request 'sned'"),
            ({"action": "corrupt", "request": "send"}, "the requests 10, 310, 320"),
            ({"action": "flush_timeout", "request": 11}, "for those of 10, 310, 320"),
        ):
            self.assertIn(words, self.refused(**value))
        self.assertRaises(InvalidParameter, rule_of, 1, "drop")

    def test_hitsAreCountedAndListed(self) -> None:
        """The last of them; a rule is over after so many as it was given."""
        rule = rule_of(7, {"action": "drop", "times": MAX_HITS + 1, "owner": "me"})
        for number in range(MAX_HITS + 1):
            self.assertFalse(rule.is_over)
            rule.hit(PLACE, number)
        self.assertTrue(rule.is_over)
        listed = rule.to_json()
        hits = listed.pop("lastHits")
        assert isinstance(hits, list)
        self.assertEqual(len(hits), MAX_HITS)
        self.assertEqual(
            hits[-1],
            {
                "time": MAX_HITS,
                "request": 310,
                "topic": "T",
                "group": "G",
                "client": "1.2.3.4:5",
            },
        )
        self.assertEqual(listed["id"], 7)
        self.assertEqual(listed["hits"], MAX_HITS + 1)
        self.assertEqual(listed["owner"], "me")

    def test_remarksAreRocketMQs(self) -> None:
        """Unless another is given; of a code without one there is none."""
        for value, words in (
            ({"action": "busy"}, BUSY),
            ({"action": "code", "code": 2}, BUSY),
            ({"action": "code", "code": 2, "remark": "no"}, "no"),
            ({"action": "code", "code": 4242}, None),
        ):
            self.assertEqual(rule_of(1, value).words(PLACE), words)
        for code, words in (
            (17, "topic[T] not exist, apply first please!\nSee https://rocketmq."),
            (26, "subscription group [G] does not exist, \nSee https://rocketmq."),
        ):
            found = rule_of(1, {"action": "code", "code": code}).words(PLACE)
            assert found is not None
            self.assertTrue(found.startswith(words), found)
