"""Tests of the emitter."""

from __future__ import annotations

import itertools
from enum import IntEnum

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import LocalProtocolError
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.topics import TopicList
from rocketbroker.wire.json_reader import ObjectKey
from rocketbroker.wire.json_writer import (
    STEP_ITEMS,
    dumping,
    dumps,
    dumps_standard,
    java_double,
    joined,
    member_text,
    quoted,
)

QUEUE = MessageQueue("T1", "b1", 0)


class Color(IntEnum):
    """A number with a name."""

    RED = 3


class OwnFormTests(SynchronousTestCase):
    """The library's own form."""

    def test_integerKeys(self) -> None:
        """Integer keys stand without quotes, sorted as numbers."""
        self.assertEqual(dumps({"b": {10: "x", 9: "y"}}), b'{"b":{9:"y",10:"x"}}')

    def test_sorted(self) -> None:
        """Keys are sorted: numbers, names, objects."""
        value = {"b": 1, "a": 2, "B": 3, 2: 4, 1: 5, QUEUE: 6}
        self.assertEqual(
            dumps(value),
            b'{1:5,2:4,"B":3,"a":2,"b":1,'
            b'{"brokerName":"b1","queueId":0,"topic":"T1"}:6}',
        )

    def test_objectKeys(self) -> None:
        """An object is a key, whether it is a queue or what was read as a key."""
        text = b'{{"brokerName":"b1","queueId":0,"topic":"T1"}:5}'
        self.assertEqual(dumps({QUEUE: 5}), text)
        key = ObjectKey((("brokerName", "b1"), ("queueId", 0), ("topic", "T1")))
        self.assertEqual(dumps({key: 5}), text)

    def test_nulls(self) -> None:
        """A member that is null is left out, an element is not."""
        self.assertEqual(dumps({"a": None, "b": [None]}), b'{"b":[null]}')

    def test_values(self) -> None:
        """Every kind of value has its form."""
        self.assertEqual(
            dumps([True, False, 5, -(1 << 63), 1.5, "x", b"\1\2", (), {}, Color.RED]),
            b'[true,false,5,-9223372036854775808,1.5,"x","AQI=",[],{},3]',
        )
        self.assertEqual(dumps({Color.RED: 1}), b"{3:1}")

    def test_sets(self) -> None:
        """A set is an array, sorted, so that equal ones look equal."""
        names = {f"tag{number}" for number in range(5)}
        self.assertEqual(dumps(names), b'["tag0","tag1","tag2","tag3","tag4"]')
        self.assertEqual(dumps(frozenset(names)), dumps(names))

    def test_strings(self) -> None:
        """Control characters are escaped with capitals; all others stand."""
        self.assertEqual(
            quoted("\x01\x02\x1f\x7f\x9f"), r'"\u0001\u0002\u001F\u007F\u009F"'
        )
        self.assertEqual(quoted("K\x01V\x02"), r'"K\u0001V\u0002"')
        self.assertEqual(quoted("\\\x01"), r'"\\\u0001"')
        self.assertEqual(quoted("\b\t\n\f\r\x0b"), r'"\b\t\n\f\r\u000B"')
        self.assertEqual(quoted("\u2028\u2029"), r'"\u2028\u2029"')
        self.assertEqual(quoted('"\\/'), r'"\"\\/"')
        self.assertEqual(quoted("\xa0\u4e2d\U0001f600"), '"\xa0\u4e2d\U0001f600"')
        self.assertEqual(
            dumps({"\u4e2d\n": "\u4e2d"}), '{"\u4e2d\\n":"\u4e2d"}'.encode()
        )

    def test_members(self) -> None:
        """An object of a large table is the same text when it is written for itself,
        whatever is in its strings; the table takes these texts as they are."""
        strange = (
            "plain",
            '\n"\\/',
            "\x1f",
            "\x7f",
            "\x80é\u2028\U0001f600",
            ":null",
            "",
        )
        insides: tuple[dict[str, object], ...] = {"a": 1}, {"nothing": None, "a": 1}
        for name, inside in itertools.product(strange, insides):
            table = {
                name: {
                    "b": name,
                    "attributes": {"z": name, name: "y"},
                    "number": -(1 << 63),
                    "yes": True,
                    "nothing": None,
                    "inside": inside,
                }
            }
            member = member_text(name, table[name])
            self.assertEqual(f"{{{member}}}".encode(), dumps(table))
            value = {"A": 1, "T": joined([member, '"z":2']), "B": [joined([])]}
            whole: dict[str, object] = {**table, "z": 2}
            expected = dumps({"A": 1, "T": whole, "B": [{}]})
            if name < "z":
                self.assertEqual(dumps(value), expected)
        self.assertRaises(LocalProtocolError, member_text, "\ud800", {"a": 1})

    def test_refused(self) -> None:
        """What is no value of JSON, or no Unicode, cannot be written."""
        for value in (object(), {"a": object()}, "\ud800", {"\ud800": 1}, [1j]):
            for write in (dumps, dumps_standard):
                if write is dumps_standard and "ud800" in repr(value):
                    continue
                with self.assertRaises(LocalProtocolError):
                    write(value)

    def test_depth(self) -> None:
        """What nests too deep to be read again cannot be written."""
        value: object = 1
        for _ in range(100):
            value = [value]
        dumps(value)
        with self.assertRaises(LocalProtocolError):
            dumps({"a": value})
        with self.assertRaises(LocalProtocolError):
            dumps_standard([value])


class StandardFormTests(SynchronousTestCase):
    """The form of routes for newer clients."""

    def test_keys(self) -> None:
        """All keys have quotes; integers are still sorted as numbers."""
        value = {10: "x", 9: "y", "a": 1, "n": None}
        self.assertEqual(dumps_standard(value), b'{"9":"y","10":"x","a":1}')

    def test_objectKeys(self) -> None:
        """An object that is a key becomes a string."""
        self.assertEqual(
            dumps_standard({QUEUE: 5}),
            rb'{"{\"brokerName\":\"b1\",\"queueId\":0,\"topic\":\"T1\"}":5}',
        )

    def test_ascii(self) -> None:
        """Whatever is not ASCII is escaped, and so is a slash."""
        self.assertEqual(
            dumps_standard("a/\x7f\u4e2d\U0001f600\n\x01"),
            rb'"a\/\u007F\u4E2D\uD83D\uDE00\n\u0001"',
        )

    def test_largeNumbers(self) -> None:
        """Numbers that JavaScript cannot count are strings."""
        most = (1 << 53) - 1
        self.assertEqual(
            dumps_standard([most, most + 1, -most, -most - 1]),
            b'[9007199254740991,"9007199254740992",-9007199254740991,'
            b'"-9007199254740992"]',
        )


class DoubleTests(SynchronousTestCase):
    """Numbers with a point, as Java writes them."""

    def test_samples(self) -> None:
        """Between a thousandth and ten millions plain, else with an exponent."""
        for value, text in (
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (-1.0, "-1.0"),
            (100.0, "100.0"),
            (9999999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e10, "1.0E10"),
            (1.25e-5, "1.25E-5"),
            (1e-5, "1.0E-5"),
            (0.001, "0.001"),
            (0.00099, "9.9E-4"),
            (123456.789, "123456.789"),
            (1.7976931348623157e308, "1.7976931348623157E308"),
            (5e-324, "5.0E-324"),
            (-2.5e20, "-2.5E20"),
        ):
            self.assertEqual(java_double(value), text)

    def test_noNumbers(self) -> None:
        """What is no number is null."""
        for value in (float("nan"), float("inf"), float("-inf")):
            self.assertEqual(java_double(value), "null")


class StepsTests(SynchronousTestCase):
    """The same texts in steps."""

    def test_textIsTheSame(self) -> None:
        """Whatever a value has, its text is that of one go, in both forms."""
        many = {f"k{number}": [number] * 3 for number in range(3 * STEP_ITEMS)}
        values: tuple[object, ...] = (
            TopicList(topic_list=list(many), broker_addr="\u00fc"),
            {"b": many, "a": list(many), "c": None, 2: 1, QUEUE: (1, 2)},
            [[list(range(200))] * 70] * 2,
            {},
            [],
            {"a": [], "b": {}},
            QUEUE,
            "x",
            None,
        )
        for value in values:
            for standard, whole in ((False, dumps), (True, dumps_standard)):
                steps = dumping(value, standard)
                while True:
                    try:
                        next(steps)
                    except StopIteration as end:
                        self.assertEqual(end.value, whole(value))
                        break

    def test_stepsAreShort(self) -> None:
        """There is a step for so many items of a list, however deep it is."""
        value: dict[str, object] = {"a": {"b": [1] * (10 * STEP_ITEMS), "c": 1}}
        self.assertEqual(len(list(dumping(value))), 10)

    def test_tooDeep(self) -> None:
        """What nests too deep is no text here, either."""
        value: list[object] = []
        for _ in range(200):
            value = [value]
        self.assertRaises(LocalProtocolError, list, dumping(value))
