"""Tag expressions."""

from __future__ import annotations

import pickle

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering import tags
from rocketbroker.records.hashing import tag_code


class ParseTests(SynchronousTestCase):
    """Text to filter."""

    def test_all(self) -> None:
        """Nothing, an empty expression and a star want everything."""
        for expression in (None, "", "*"):
            wanted = tags.parse(expression)
            self.assertTrue(wanted.wants_all)
            self.assertEqual(wanted.expression, "*")
            self.assertIsNone(wanted.matcher())

    def test_tags(self) -> None:
        """Tags are trimmed, empty ones dropped; the text stays as it was."""
        wanted = tags.parse(" TagA ||TagB|| ||")
        self.assertEqual(wanted.tags, {"TagA", "TagB"})
        self.assertEqual(wanted.codes, {2598919, 2598920})
        self.assertEqual(wanted.expression, " TagA ||TagB|| ||")
        self.assertFalse(wanted.wants_all)

    def test_single(self) -> None:
        """One bar separates nothing."""
        self.assertEqual(tags.parse("a|b").tags, {"a|b"})

    def test_onlySeparators(self) -> None:
        """Separators alone make no sense."""
        for expression in ("||", "|| ||", " || "):
            self.assertRaises(SubscriptionParseFailed, tags.parse, expression)

    def test_limit(self) -> None:
        """As many tags as the limit are taken, one more is refused."""
        most = "||".join(f"t{number}" for number in range(tags.MAX_TAGS))
        self.assertEqual(len(tags.parse(most).tags), tags.MAX_TAGS)
        self.assertRaises(SubscriptionParseFailed, tags.parse, most + "||x")

    def test_longExpressions(self) -> None:
        """An expression has at most so many characters, and parts, which may be empty
        or the same."""
        self.assertEqual(len(tags.parse("t" * tags.MAX_CHARACTERS).tags), 1)
        self.refused("t" * (tags.MAX_CHARACTERS + 1), "characters")
        self.assertEqual(tags.parse("||t" * (tags.MAX_PARTS - 1)).tags, {"t"})
        self.refused("||t" * tags.MAX_PARTS, f"{tags.MAX_PARTS + 1} parts")

    def refused(self, expression: str, why: str) -> None:
        """An expression is refused in words."""
        with self.assertRaises(SubscriptionParseFailed) as caught:
            tags.parse(expression)
        self.assertIn(why, caught.exception.remark)

    def test_types(self) -> None:
        """No type is the type of tags; another one is refused."""
        self.assertEqual(tags.parse("a", None).tags, {"a"})
        self.assertTrue(tags.is_tag_type(""))
        self.assertFalse(tags.is_tag_type("SQL92"))
        self.assertRaises(SubscriptionParseFailed, tags.parse, "a > 1", "SQL92")

    def test_emptyType(self) -> None:
        """With the empty type only a star matches anything."""
        self.assertTrue(tags.parse("*", "").matches_code(tag_code("a")))
        self.assertFalse(tags.parse("a", "").matches_code(tag_code("a")))


class MatchTests(SynchronousTestCase):
    """What passes."""

    def test_codes(self) -> None:
        """A code passes if it is one of a wanted tag; so does an unknown one."""
        wanted = tags.parse("TagA || B")
        self.assertTrue(wanted.matches_code(2598919))
        self.assertTrue(wanted.matches_code(None))
        self.assertFalse(wanted.matches_code(0))
        self.assertFalse(wanted.matches_code(5))

    def test_lowBits(self) -> None:
        """Of a code's 64 bits the lower 32 count, with their sign."""
        wanted = tags.parse("polygenelubricants")
        self.assertTrue(wanted.matches_code(-(2**31)))
        self.assertTrue(wanted.matches_code(2**31))
        self.assertTrue(wanted.matches_code(2**40 - 2**31))

    def test_allTakesUntagged(self) -> None:
        """A star takes messages without a tag."""
        self.assertTrue(tags.parse("*").matches_code(0))

    def test_travels(self) -> None:
        """A filter can be pickled."""
        again = pickle.loads(pickle.dumps(tags.parse("a||b")))
        self.assertEqual(again.tags, {"a", "b"})
        self.assertEqual(repr(again), "<wants a||b>")
