"""Tests of members as typed values."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.fields import (
    MAX_KEPT_DEPTH,
    Fields,
    object_of,
    read_long,
    read_text,
    read_texts,
)
from rocketbroker.wire.json_reader import ObjectKey


class FieldsTests(SynchronousTestCase):
    """What is converted, and what is refused."""

    def test_missing(self) -> None:
        """A member that is missing or null is the default, and empty if it is many."""
        for members in ({}, {"x": None}):
            fields = Fields(members, "it")
            self.assertEqual(fields.text("x"), None)
            self.assertEqual(fields.integer("x", 7), 7)
            self.assertEqual(fields.boolean("x", True), True)
            self.assertEqual(fields.choice("x", ("A",)), None)
            self.assertEqual(fields.strings("x"), [])
            self.assertEqual(fields.members("x"), {})

    def test_numbers(self) -> None:
        """A number may stand in quotes, or with a point that means nothing."""
        for value in (5, "5", 5.0, "+5"):
            self.assertEqual(Fields({"x": value}, "it").integer("x"), 5)
        self.assertEqual(Fields({"x": ""}, "it").integer("x", 3), 3)
        self.assertEqual(
            Fields({"x": 1.7e12}, "it").integer("x", bits=64), 1700000000000
        )

    def test_noNumbers(self) -> None:
        """What is no number, or does not fit, is refused."""
        wrong: list[object] = [
            "x",
            1 << 31,
            -(1 << 31) - 1,
            True,
            [],
            1e999,
            "٣",
            "9" * 5000,
        ]
        for value in wrong:
            with self.assertRaises(RemoteProtocolError):
                Fields({"x": value}, "it").integer("x")

    def test_edges(self) -> None:
        """The largest and smallest numbers of both widths are taken."""
        for bits in (32, 64):
            for value in ((1 << bits - 1) - 1, -(1 << bits - 1)):
                fields = Fields({"x": value}, "it")
                self.assertEqual(fields.integer("x", bits=bits), value)

    def test_text(self) -> None:
        """Numbers and booleans become their text; what is nested is refused."""
        for value, text in ((5, "5"), (True, "true"), (1.5, "1.5"), ("x", "x")):
            self.assertEqual(Fields({"x": value}, "it").text("x"), text)
        with self.assertRaises(RemoteProtocolError):
            Fields({"x": {}}, "it").text("x")

    def test_booleans(self) -> None:
        """A boolean may be text or a number; other words are refused."""
        for value in (True, "true", "TRUE", "1", 1):
            self.assertIs(Fields({"x": value}, "it").boolean("x"), True)
        for value in (False, "false", "0", 0, ""):
            self.assertIs(Fields({"x": value}, "it").boolean("x"), False)
        wrong: list[object] = ["yes!", [], 1.5]
        for bad in wrong:
            with self.assertRaises(RemoteProtocolError):
                Fields({"x": bad}, "it").boolean("x")

    def test_choices(self) -> None:
        """A name may stand as its place; an unknown one is null."""
        names = ("A", "B")
        for value, name in (("B", "B"), (1, "B"), ("C", None), (2, None), (-1, None)):
            self.assertEqual(Fields({"x": value}, "it").choice("x", names), name)
        with self.assertRaises(RemoteProtocolError):
            Fields({"x": []}, "it").choice("x", names)

    def test_looseNames(self) -> None:
        """Case, underscores and hyphens are overlooked; the exact name wins."""
        self.assertEqual(Fields({"Group_Name": "g"}, "it").text("groupName"), "g")
        both = {"group_name": "no", "groupName": "yes"}
        self.assertEqual(Fields(both, "it").text("groupName"), "yes")

    def test_tables(self) -> None:
        """Keys of a table of numbers may stand in quotes; null values are left out."""
        fields = Fields(
            {"x": {1: "a", "2": "b", 3: None}, "y": {"k": 5, "n": None}}, "it"
        )
        self.assertEqual(fields.numbered("x", read_text), {1: "a", 2: "b"})
        self.assertEqual(fields.texts("y"), {"k": "5"})
        for key in ("k", ObjectKey(), 1 << 63, str(1 << 63), "1_0"):
            with self.assertRaises(RemoteProtocolError):
                Fields({"x": {key: "a"}}, "it").numbered("x", read_text)

    def test_kept(self) -> None:
        """What is only kept may not nest deep: it is written inside of something."""
        value: object = 1
        for _ in range(MAX_KEPT_DEPTH):
            value = {"a": value}
        self.assertIs(Fields({"x": value}, "it").kept("x"), value)
        with self.assertRaises(RemoteProtocolError):
            Fields({"x": [value]}, "it").kept("x")

    def test_wrongShapes(self) -> None:
        """An array where an object should be is refused, and the other way."""
        for read in (
            lambda: Fields([], "it"),
            lambda: Fields({"x": []}, "it").members("x"),
            lambda: Fields({"x": {}}, "it").items("x"),
            lambda: Fields({"x": [[]]}, "it").strings("x"),
            lambda: Fields({"x": ["a"]}, "it").integers("x"),
            lambda: read_texts({}),
            lambda: read_text(5),
            lambda: read_long("x"),
            lambda: object_of(b"[", read_text),
        ):
            with self.assertRaises(RemoteProtocolError):
                read()
