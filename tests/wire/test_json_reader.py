"""Tests of the tolerant reader."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.json_reader import (
    MAX_BLANKS,
    MAX_DEPTH,
    MAX_EXPANSION,
    MAX_KEY,
    MAX_NUMBERS,
    MAX_STRING,
    MAX_TARGET,
    WINDOW,
    ObjectKey,
    loads,
    loads_in_steps,
)
from rocketbroker.wire.steps import finished


class DialectTests(SynchronousTestCase):
    """What is taken although it is no JSON."""

    def check(self, text: str, value: object) -> None:
        """Both as text and as bytes, C{text} is read as C{value}."""
        self.assertEqual(loads(text), value)
        self.assertEqual(loads(text.encode()), value)

    def test_strict(self) -> None:
        """What is JSON is read as JSON."""
        self.check(
            '{"a":[1,-2.5,"x",true,false,null,{}]}',
            {"a": [1, -2.5, "x", True, False, None, {}]},
        )

    def test_integerKeys(self) -> None:
        """An integer without quotes may be a key; one in quotes is a string."""
        self.check('{"a":{0:"x",-1:"y","2":"z"}}', {"a": {0: "x", -1: "y", "2": "z"}})

    def test_offsets(self) -> None:
        """Tables of numbers, of which files of offsets are made, with and without white
        space; what only looks like one is read as ever."""
        for text, value in (
            ("{0:12,1:-7}", {0: 12, 1: -7}),
            ("{\n\t0:12,\n\t1:7\n}", {0: 12, 1: 7}),
            ("{1:1,1:2}", {1: 2}),
            ("{-1:1}", {-1: 1}),
            ("{1:1,}", {1: 1}),
            ("{1:2.5,2:1}", {1: 2.5, 2: 1}),
            ('{1:"a"}', {1: "a"}),
            ("{1:1L}", {1: 1}),
        ):
            self.assertEqual(loads(f'{{"a":{text},"b":0}}'), {"a": value, "b": 0})
        for wrong in ("{1:1 2:2}", "{1:1", "{1:1}}}", "{1:}", f"{{{1 << 63}:1}}"):
            self.assertRaises(RemoteProtocolError, loads, f'{{"a":{wrong}')

    def test_objectKeys(self) -> None:
        """An object may be a key, with white space in it too."""
        key = ObjectKey((("brokerName", "b1"), ("queueId", 0), ("topic", "T1")))
        self.check('{{"brokerName":"b1","queueId":0,"topic":"T1"}:5}', {key: 5})
        self.check(
            '{\n{ "topic" : "T1",\n"queueId" : 0, "brokerName" : "b1" }\n:\t5 }',
            {key: 5},
        )

    def test_objectKeyMembers(self) -> None:
        """A key can be nested, and gives its members back."""
        value = loads('{{"a":{"b":[1,{}]}}:1}')
        assert isinstance(value, dict)
        (key,) = value
        self.assertEqual(
            key, ObjectKey((("a", ObjectKey((("b", (1, ObjectKey())),))),))
        )
        self.assertEqual(key.members()["a"].members(), {"b": (1, ObjectKey())})

    def test_identifiers(self) -> None:
        """A key may be a bare identifier."""
        self.check("{a:1,_b2:2,$c:3,null:4}", {"a": 1, "_b2": 2, "$c": 3, "null": 4})

    def test_singleQuotes(self) -> None:
        """A string, also as a key, may have single quotes, with double ones in it."""
        self.check("{'a':'say \"x\"','b':'it\\'s'}", {"a": 'say "x"', "b": "it's"})

    def test_trailingCommas(self) -> None:
        """A comma may stand before a closing bracket, but not alone."""
        self.check('{"a":[1,2,],}', {"a": [1, 2]})
        for text in ("[,]", "{,}", "[1,,2]", '{"a":1,,"b":2}'):
            with self.assertRaises(RemoteProtocolError):
                loads(text)

    def test_comments(self) -> None:
        """Comments of both kinds are skipped."""
        self.check(
            '/* a */{// b\n"a"/**/:/* * / */1// c\n,"b":[/*d*/]}// end',
            {"a": 1, "b": []},
        )

    def test_whiteSpace(self) -> None:
        """White space around everything is skipped, and so is a byte order mark."""
        self.check("\ufeff \b\f\r\n\t{ a : [ 1 , 2 ] }\n", {"a": [1, 2]})

    def test_numbers(self) -> None:
        """Numbers may have a suffix for their type, and a point with nothing behind."""
        self.check(
            "[1L,2S,3B,1.5F,2.5D,1.,-0,007,1E3]", [1, 2, 3, 1.5, 2.5, 1.0, 0, 7, 1e3]
        )
        self.check("[1.7E12,9223372036854775808,]", [1.7e12, 1 << 63])

    def test_words(self) -> None:
        """NaN and undefined are null."""
        self.check("[NaN,undefined,null,true,false,]", [None, None, None, True, False])

    def test_escapes(self) -> None:
        """All escapes of strings are understood."""
        self.check(
            r"""['\b\t\n\v\f\F\r\"\'\/\\','\0\1\7','\x41\u0042']""",
            ["\b\t\n\v\f\f\r\"'/\\", "\0\1\7", "AB"],
        )

    def test_surrogates(self) -> None:
        """Two halves of a pair are a character; a half alone is a replacement."""
        self.check(r"['\ud83d\ude00']", ["\U0001f600"])
        self.check(r"['\ud83dx']", ["\ufffdx"])
        self.check('["\\ud83d"]', ["\ufffd"])
        self.check(r"['\ud83d','\ude00']", ["\ufffd", "\ufffd"])
        self.assertEqual(loads("['\ud83d','\ud83d\ude00']"), ["\ufffd", "\U0001f600"])

    def test_noUtf8(self) -> None:
        """Bytes that are not UTF-8 become replacements."""
        self.assertEqual(loads(b'{"a":"\xff\xfe"}'), {"a": "\ufffd\ufffd"})

    def test_duplicates(self) -> None:
        """Of two equal keys the last wins."""
        self.check('{"a":1,"a":2}', {"a": 2})
        self.check("{a:1,a:2}", {"a": 2})

    def test_refused(self) -> None:
        """What makes no sense is refused, by one error, wherever it ends."""
        for text in (
            "",
            " ",
            "{",
            "[",
            "}",
            "[1",
            "[1 2]",
            "{a}",
            "{a:}",
            "{a:1",
            "{a 1}",
            "{:1}",
            "{[1]:1}",
            '"',
            "'a",
            "'\\q'",
            "'\\u12'",
            "'\\xg1'",
            "-",
            "+1",
            ".5",
            "tru",
            "nul",
            "x",
            "/",
            "/*",
            "[/*]",
            "1 1",
            "{} {}",
            "{}x",
            "\0",
            "٣",
            "1e",
            "-x",
            "new Date(1)",
        ):
            for form in (text, text.encode()):
                with self.assertRaises(RemoteProtocolError):
                    self.fail(f"{text!r} was read as {loads(form)!r}")


class LimitTests(SynchronousTestCase):
    """How deep and how long."""

    def test_depth(self) -> None:
        """One level more than the limit is refused, strict or not."""
        for opening, closing, inner in (
            ("[", "]", ""),
            ('{"a":', "}", "1"),
            ("{a:", "}", "1"),
            ("{'a':[", "]}", "1"),
        ):
            levels = sum(opening.count(bracket) for bracket in "[{")
            most = MAX_DEPTH // levels
            text = opening * most + inner + closing * most
            loads(text)
            for more in (1, 10000):
                text = opening * (most + more) + inner + closing * (most + more)
                for form in (text, text.encode()):
                    with self.assertRaises(RemoteProtocolError):
                        loads(form)

    def test_depthOfNumbers(self) -> None:
        """An object of numbers counts as a level, too."""
        for levels in (MAX_DEPTH - 1, MAX_DEPTH):
            text = "[" * levels + "{1:2,3:4}" + "]" * levels
            if levels < MAX_DEPTH:
                loads(text)
            else:
                with self.assertRaises(RemoteProtocolError):
                    loads(text)

    def test_depthOfKeys(self) -> None:
        """Objects in keys count as levels too."""
        with self.assertRaises(RemoteProtocolError):
            loads("{" * 1000 + "}:1}" * 999)

    def test_unfinishedDepth(self) -> None:
        """Many opening brackets and nothing else are refused, and quickly."""
        for opening in ("[", "{", '{"a":', "{{"):
            with self.assertRaises(RemoteProtocolError):
                loads(opening * 100000)

    def test_longNumbers(self) -> None:
        """A number of more digits than Python converts is refused."""
        with self.assertRaises(RemoteProtocolError):
            loads("{1:" + "9" * 5000 + "}")
        with self.assertRaises(RemoteProtocolError):
            loads("{" + "9" * 5000 + ":1}")

    def test_keyNumbers(self) -> None:
        """A number that is a key has 64 bits: larger ones could share one hash."""
        for key in ((1 << 63) - 1, -(1 << 63)):
            self.assertEqual(loads(f"{{{key}:1}}"), {key: 1})
        for text in ("9223372036854775808", "-9223372036854775809", "1.5", "1e300"):
            with self.assertRaises(RemoteProtocolError):
                loads(f"{{{text}:1}}")

    def test_lenientLength(self) -> None:
        """What is not strict JSON is read up to a length, strict JSON beyond."""
        self.assertEqual(loads("{1:2}", 5), {1: 2})
        self.assertEqual(loads('{"1":2}', 5), {"1": 2})
        for text in ("{1:22}", b"{1:22}"):
            self.assertRaises(RemoteProtocolError, loads, text, 5)

    def test_manyItems(self) -> None:
        """Width is not depth."""
        value = loads("[" + "[],{}," * 1000 + "]")
        assert isinstance(value, list)
        self.assertEqual(len(value), 2000)
        strict = loads("[" + ",".join(["[]", "{}"] * 1000) + "]")
        self.assertEqual(strict, value)


class ReferenceTests(SynchronousTestCase):
    """References to what stood before."""

    def test_paths(self) -> None:
        """Names and numbers of elements lead to the target."""
        text = (
            '{"a":{"b":{"c":{"k":"v"}},"l":[{"m":{"n":1}}]},'
            '"x":{"$ref":"$.a.b.c"},"y":[{"$ref":"$.a.l[0].m"}]}'
        )
        value = loads(text)
        assert isinstance(value, dict)
        self.assertEqual(value["x"], {"k": "v"})
        self.assertEqual(value["y"], [{"n": 1}])

    def test_escapedPath(self) -> None:
        """A backslash makes the next character part of a name."""
        text = (
            '{"t":{"%RETRY%g-1":{"a":{"k":"v"}},"x.y":{"a":{"k":"w"}}},'
            '"p":{"$ref":"$.t.%RETRY%g\\\\-1.a"},"q":{"$ref":"$.t.x\\\\.y.a"}}'
        )
        value = loads(text)
        assert isinstance(value, dict)
        self.assertEqual((value["p"], value["q"]), ({"k": "v"}, {"k": "w"}))

    def test_numberedPath(self) -> None:
        """An integer key is found by its text."""
        value = loads('{"t":{3:{"k":"v"}},"p":{"$ref":"$.t.3"},"q":{"$ref":"$.t[3]"}}')
        assert isinstance(value, dict)
        self.assertEqual((value["p"], value["q"]), ({"k": "v"}, {"k": "v"}))

    def test_unresolvable(self) -> None:
        """A reference that leads nowhere is an empty object."""
        for path in (
            "$.nothing",
            "$.a.b.c",
            "$.l[7]",
            "$.l[99999999999999999999]",
            "$.l.x",
            "$.l[x]",
            "$.none",
            "$x",
            "..",
            "@",
            "x",
            "",
            "$.",
            "$..a",
        ):
            reference = f'{{"$ref":"{path}"}}'
            value = loads(f'{{"a":{{}},"l":[1],"none":null,"x":{reference}}}')
            assert isinstance(value, dict)
            self.assertEqual(value["x"], {}, path)

    def test_cycles(self) -> None:
        """A reference to what holds a reference is an empty object: no cycles."""
        value = loads('{"a":{"b":{"$ref":"$.c"}},"c":{"d":{"$ref":"$.a"}}}')
        self.assertEqual(value, {"a": {"b": {}}, "c": {"d": {}}})
        self.assertEqual(loads('{"a":{"$ref":"$"}}'), {"a": {}})
        self.assertEqual(
            loads('{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}'), {"a": {}, "b": {}}
        )

    def test_expansion(self) -> None:
        """References to too much are refused; the same target counts again."""
        target = "[" + ",".join(['"' + "x" * 1000 + '"'] * 64) + "]"
        weight = 16 + 64 * 1016
        most = MAX_EXPANSION // weight
        references = ",".join(['{"$ref":"$.a"}'] * most)
        value = loads(f'{{"a":{target},"b":[{references}]}}')
        assert isinstance(value, dict)
        self.assertEqual(len(value["b"]), most)
        self.assertIs(value["b"][-1], value["a"])
        with self.assertRaises(RemoteProtocolError):
            loads(f'{{"a":{target},"b":[{references},{{"$ref":"$.a"}}]}}')

    def test_depth(self) -> None:
        """A target counts as deep as the reference to it stands."""
        half = MAX_DEPTH // 2
        deep = "[" * half + "]" * half
        for levels in (half - 1, half):
            text = "[" * levels + '{"$ref":"$.a"}' + "]" * levels
            if levels < half:
                loads(f'{{"a":{deep},"b":{text}}}')
            else:
                with self.assertRaises(RemoteProtocolError):
                    loads(f'{{"a":{deep},"b":{text}}}')

    def test_root(self) -> None:
        """A text that is only a reference is an empty object."""
        self.assertEqual(loads('{"$ref":"$"}'), {})

    def test_noReference(self) -> None:
        """With another member beside it, or no string, it is an ordinary member."""
        for text in ('{"a":{"$ref":"$","b":1}}', '{"a":{"$ref":1}}', '{"$refs":"$"}'):
            loaded = loads(text)
            self.assertIn("$ref", str(loaded))

    def test_largeTarget(self) -> None:
        """A reference to more than a step weighs is refused; one to the whole, which
        holds it, is an empty object as ever."""
        target = "x" * MAX_TARGET
        with self.assertRaises(RemoteProtocolError):
            loads(f'{{"a":["{target}"],"b":{{"$ref":"$.a"}}}}')
        value = loads(f'{{"a":["{target}"],"b":{{"$ref":"$"}}}}')
        self.assertEqual(value, {"a": [target], "b": {}})


class StepTests(SynchronousTestCase):
    """Long texts, read in steps."""

    def steps(self, text: str) -> int:
        """In how many steps a text is read; to the value that L{loads} reads."""
        steps = 0
        work = loads_in_steps(text.encode())
        while True:
            try:
                next(work)
            except StopIteration as end:
                self.assertEqual(end.value, loads(text))
                return steps
            steps += 1

    def test_strictText(self) -> None:
        """Strict JSON, with what begins and ends in each place of a window."""
        for shift in range(20):
            item = '{"a":[1.5,true,null,"x\\"y\\u00e9"],"b":{"c":-12345}}'
            items = ",".join([f'"{"s" * shift}"', *[item] * 600])
            count = self.steps(f'{{"a":[{items}],"b":12345,"c":"d"}}')
            self.assertGreater(count, 600 * len(item) // (2 * WINDOW))

    def test_dialectText(self) -> None:
        """The dialect, between strict JSON, and the halves of characters."""
        items = (
            '{1:{2:3}},{\'a\':{"b":[1]}},{{"q":1}:2},[1,],/*c*/{a:NaN},'
            '[{"a":["\\ud83d\\ude00","\\ud83d"]},{}],[[1L]],[{"a":NaN}]'
        )
        count = self.steps("[" + ",".join([items] * 500) + "]")
        self.assertGreater(count, 500 * len(items) // (2 * WINDOW))

    def test_valuesOneByOne(self) -> None:
        """Plain values, tables of numbers and long strings take a step each time that
        there are many."""
        self.assertGreater(self.steps("[" + "1," * 20000 + "1]"), 250)
        table = ",".join(f"{number}:{number}" for number in range(2000))
        self.assertGreater(self.steps(f"[{','.join(['{' + table + '}'] * 50)}]"), 49)
        string = "'" + "x" * (MAX_STRING - 2) + "'"
        self.assertGreater(self.steps(f"[{','.join([string] * 50)}]"), 49)

    def test_references(self) -> None:
        """References are looked for, and replaced, in steps."""
        one = '{"$ref":"$.a"}'
        text = f'{{"a":{{"b":1}},"x":[{",".join([one] * 20000)}]}}'
        # Reading takes a window at least; looking and replacing 64 at most.
        self.assertGreater(self.steps(text), 3 * 20000 // 64)

    def test_noUtf8(self) -> None:
        """Bytes that are not UTF-8 become replacements, also between two pieces."""
        text = b"['" + b"\xff" * 10000 + b"\xe2\x82"
        value = finished(loads_in_steps(text + b"']"))
        self.assertEqual(value, loads(text + b"']"))

    def refused(self, text: str, why: str) -> None:
        """A text is refused in steps, with a reason in words."""
        with self.assertRaises(RemoteProtocolError) as caught:
            finished(loads_in_steps(text.encode()))
        self.assertIn(why, str(caught.exception))

    def test_manyValues(self) -> None:
        """More values than are freed at once are refused, whoever reads them."""
        most = 8000
        for item, count in (("{}", 2), ("1", 1), ("[1,[2]]", 4), ("{1:2,3:4}", 3)):
            text = " " * WINDOW + ",".join([item] * (most // count))
            work = loads_in_steps(f"[{text}]".encode(), most - most // 8)
            with self.assertRaises(RemoteProtocolError) as caught:
                finished(work)
            self.assertIn(f"more than {most - most // 8} values", str(caught.exception))

    def test_longPieces(self) -> None:
        """What would take a step too long is refused, and its limit taken."""
        finished(loads_in_steps(f"['{'x' * (MAX_STRING - 2)}']".encode()))
        self.refused(f"['{'x' * (MAX_STRING - 1)}']", "a string without end, or of")
        finished(loads_in_steps(f"[{' ' * (MAX_BLANKS - 1)}1]".encode()))
        self.refused(f"[{' ' * MAX_BLANKS}1]", f"more than {MAX_BLANKS} blanks")
        finished(loads_in_steps(f"{{{{a:'{'x' * (MAX_KEY - 6)}'}}:1}}".encode()))
        self.refused(f"{{{{a:'{'x' * MAX_KEY}'}}:1}}", "a key of more than")
        self.refused("[" + "9" * 300000 + "]", "a number too long")
        self.refused("[" * (MAX_DEPTH + 1) + " " * WINDOW, "deeper")
        self.refused('[{"a":Infinity},' + " " * WINDOW + "1]", "no value")

    def test_longTable(self) -> None:
        """A table of numbers that is too long for one step is read by number."""
        table = ",".join(f"{number}:{number}" for number in range(MAX_NUMBERS // 8))
        self.assertGreater(self.steps(f"{{{table}}}"), 40)
