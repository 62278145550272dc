"""SQL92 expressions."""

from __future__ import annotations

import ast
import pickle
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SubscriptionParseFailed
from rocketbroker.filtering import sql, sqlconditions
from rocketbroker.filtering.sql import LONG_CHARACTERS, Parser, compiled
from rocketbroker.filtering.sqlconditions import MAX_DEPTH, MAX_OPERANDS, PIECE
from rocketbroker.records.properties import decode, encode
from tests.examples import examples
from tests.filtering import sqloracle

NAMES = st.sampled_from(["a", "b", "c", "Not1"])
STRINGS = st.sampled_from(["''", "'x'", "'it''s'", "'5'", "'true'", "'5.5'"])
NUMBERS = st.sampled_from(
    ["0", "1", "5", "5L", "5.5", ".5", "5.", "1e1", "2147483648", "0.0"]
    + ["9223372036854775807", "9223372036854775808"]
)
WORDS = st.sampled_from(["TRUE", "false", "NULL"])
SEARCH = st.sampled_from(["CONTAINS", "StartsWith", "ENDSWITH"])
LISTS = st.lists(STRINGS, min_size=1, max_size=3).map(", ".join)


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Words with blanks between them."""
    return st.tuples(*parts).map(" ".join)


def just(*words: str) -> st.SearchStrategy[str]:
    """One of some words."""
    return st.sampled_from(words)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of expressions; parentheses or not, so that all powers meet."""
    operand = st.one_of(inner, inner.map(lambda text: f"({text})"))
    return st.one_of(
        joined(operand, just("=", "<>", ">", ">=", "<", "<="), operand),
        joined(operand, just("AND", "or"), operand),
        joined(just("NOT", "-", "+"), operand),
        joined(operand, just("IS NULL", "IS NOT NULL")),
        joined(operand, just("", "NOT"), SEARCH, STRINGS),
        joined(operand, just("BETWEEN", "NOT BETWEEN"), operand, just("AND"), operand),
        joined(operand, just("IN", "NOT IN"), LISTS.map(lambda text: f"({text})")),
    )


EXPRESSIONS = st.recursive(
    st.one_of(NAMES, STRINGS, NUMBERS, WORDS), larger, max_leaves=8
)
VALUES = st.sampled_from(
    ["", "x", "it's", "5", "5.5", "-1", "true", "FALSE", "10", "2147483648", " 5"]
)
#: Properties strings: entries, some of which are none, or twice.
STORED = st.lists(
    st.one_of(
        st.tuples(just("a", "b", "c", "ba", ""), just("\x01", "\x01\x01"), VALUES)
        .map("".join)
        .map(str.encode),
        st.sampled_from(
            [b"a", b"\x01", b"a\x01\xff", b"b\x01\xc3\xa4", b"a\x01b\x01c"]
        ),
    )
).map(b"\x02".join)


def wants(expression: str, **properties: str) -> bool:
    """Whether an expression wants a message with these properties."""
    return wants_stored(expression, encode(properties))


def wants_stored(expression: str, properties: bytes) -> bool:
    """The same for stored properties; a short expression and a long one agree."""
    found = compiled(expression).matches(properties)
    assert compiled(expression.ljust(LONG_CHARACTERS + 1)).matches(properties) is found
    return found


class ExpressionTests(SynchronousTestCase):
    """What expressions mean."""

    def refused(self, *expressions: str) -> None:
        """They are no expressions."""
        for expression in expressions:
            self.assertRaises(SubscriptionParseFailed, compiled, expression)

    def test_comparisons(self) -> None:
        """Strings are read as numbers of the literal's type."""
        self.assertTrue(wants("a > 5", a="6"))
        self.assertFalse(wants("a > 5", a="5"))
        self.assertTrue(wants("a >= 5", a="5"))
        self.assertTrue(wants("5 < a", a="6"))
        self.assertTrue(wants("a = 5.0", a="5"))
        self.assertFalse(wants("a = 5", a="5.0"))
        self.assertFalse(wants("a <> 5", a="5.5"))
        self.assertTrue(wants("a <= 9223372036854775807", a="3000000000"))
        self.assertFalse(wants("a < 5", a="-3000000000"))
        self.assertTrue(wants("a > b", a="10", b="9.5"))
        self.assertFalse(wants("a > b", a="ten", b="9"))
        self.assertTrue(wants("a = b", a="x", b="x"))
        self.assertTrue(wants("a = 'it''s'", a="it's"))
        self.assertTrue(wants("5 = 5.0"))

    def test_absent(self) -> None:
        """A comparison with an absent property is neither true nor false."""
        for expression in ("a = 1", "a <> 1", "a > 1", "NOT (a = 1)", "a NOT IN ('x')"):
            self.assertFalse(wants(expression))
        self.assertTrue(wants("1 <> a"))
        self.assertTrue(wants("a = b"))
        self.assertTrue(wants("a IS NULL"))
        self.assertTrue(wants("a IS NOT NULL", a="x"))
        self.assertTrue(wants("a = 1 OR b = 2", b="2"))
        self.assertFalse(wants("NOT (a = 1 AND b = 2)", b="2"))
        self.assertTrue(wants("NOT (a = 1 AND b = 2)", b="3"))

    def test_bareProperty(self) -> None:
        """A property as a condition is false if it is there."""
        self.assertFalse(wants("a", a="true"))
        self.assertTrue(wants("NOT a", a="x"))
        self.assertFalse(wants("NOT a"))
        self.assertTrue(wants("a = TRUE", a="TrUe"))
        self.assertTrue(wants("a = FALSE", a="whatever"))
        self.assertFalse(wants("TRUE = a", a="true"))

    def test_between(self) -> None:
        """Both ends belong to it."""
        for value, inside in (("0", False), ("1", True), ("5", True), ("6", False)):
            self.assertIs(wants("a BETWEEN 1 AND 5", a=value), inside)
            self.assertIs(wants("a NOT BETWEEN 1 AND 5", a=value), not inside)
        self.assertTrue(wants("a BETWEEN -5 AND -7 OR TRUE", a="1"))
        self.assertTrue(wants("a BETWEEN 1 AND 5 AND b = 1", a="2", b="1"))
        self.assertTrue(wants("a NOT BETWEEN 5 AND 1", a="3"))
        self.refused("a NOT BETWEEN NULL AND 1", "a NOT BETWEEN 1 AND NULL")
        self.refused("a BETWEEN 5 AND 1", "a BETWEEN NULL AND 1", "a BETWEEN 'a' AND 1")

    def test_in(self) -> None:
        """Strings only, of properties only."""
        self.assertTrue(wants("a IN ('x', 'y')", a="y"))
        self.assertTrue(wants("a NOT IN ('x', 'y')", a="z"))
        self.refused("'a' IN ('a')", "a IN (1)", "a IN ()", "NOT a IN ('x')")

    def test_searches(self) -> None:
        """Nothing is in an absent property, nor in any other value, negated or not."""
        self.assertTrue(wants("a CONTAINS 'el'", a="hello"))
        self.assertTrue(wants("a startswith 'he'", a="hello"))
        self.assertTrue(wants("a ENDSWITH 'lo'", a="hello"))
        self.assertTrue(wants("a NOT CONTAINS 'x'", a="hello"))
        self.assertFalse(wants("a NOT CONTAINS 'x'"))
        self.assertFalse(wants("a NOT CONTAINS ''", a="hello"))
        self.assertFalse(wants("5 NOT CONTAINS '5'"))
        self.assertTrue(wants("'hello' CONTAINS 'l'"))

    def test_precedence(self) -> None:
        """NOT binds strongest, then comparisons, equality, AND, OR."""
        self.assertFalse(wants("NOT a = 5", a="6"))
        self.assertTrue(wants("NOT (a = 5)", a="6"))
        self.assertTrue(wants("a = 1 OR a = 2 AND b = 3", a="1"))
        self.assertTrue(wants("a > 1 = TRUE", a="2"))
        self.refused("NOT a BETWEEN 1 AND 2")

    def test_rest(self) -> None:
        """What stands behind a whole expression is ignored, unless it is asked for."""
        self.assertTrue(wants("a = 007", a="0"))
        self.assertTrue(wants("a = 1 b = ? 2", a="1"))
        self.assertTrue(wants("a IS NULL NOT b"))
        self.assertTrue(wants("b = 1 OR a IS NULL > 5 = ("))
        self.refused("a = 1 ?", "a = 1 AND", "", "(a = 1", ")", "(a IS NULL > 5)")

    def test_loneNot(self) -> None:
        """Where a comparison could go on a NOT has to be one of it."""
        self.refused("a = 1 NOT b", "a NOT", "a NOT > 5", "a = b AND c NOT 'IN'")
        self.refused("a IS 'NOT' NULL")

    def test_refused(self) -> None:
        """What has no meaning, with the place where it can be told."""
        self.refused("a = NULL", "NULL <> a", "a > 'x'", "a > TRUE", "NULL < a")
        self.refused("5", "'x'", "-a", "a AND 5", "TRUE = 1", "(a = 1) > 2")
        self.refused("a = 9223372036854775808", "a = 0.0", "a = 1e-400", "a = 1e999")
        error = self.assertRaises(SubscriptionParseFailed, compiled, "a > = 5")
        self.assertIn("'=' at 4 is not expected", error.remark)

    def test_odd(self) -> None:
        """Conditions and numbers that no client writes."""
        self.assertFalse(wants("1 = TRUE"))
        self.assertTrue(wants("'true' = TRUE"))
        self.assertTrue(wants("-a IS NULL", a="5"))
        self.assertFalse(wants("-(a > b) IS NULL", a="x", b="1"))
        self.assertTrue(wants("c > -(a > b) OR TRUE", a="x", b="1"))
        self.assertTrue(wants("a > -5", a="-4"))
        self.assertTrue(wants("+a = 5", a="5"))
        self.assertTrue(wants("TRUE"))
        self.assertFalse(wants("NULL"))
        self.assertTrue(wants("a = 1 -- so\n AND /* and */ b = 2", a="1", b="2"))

    def test_limits(self) -> None:
        """As long and as deep as the limits say, and not more."""
        padded = "a = 1".ljust(sql.MAX_CHARACTERS)
        self.assertTrue(wants(padded, a="1"))
        self.refused(padded + " ")
        deep = MAX_DEPTH - 2
        self.assertTrue(wants("(" * deep + "a = 1" + ")" * deep, a="1"))
        self.refused("(" * (deep + 1) + "a = 1" + ")" * (deep + 1))
        self.refused("a" + " = a" * (MAX_DEPTH + 1))
        chain = [f"a = {number}" for number in range(MAX_OPERANDS // 2)]
        self.assertTrue(wants(" OR ".join(chain), a=f"{len(chain) - 1}"))
        self.refused(" OR ".join([*chain, "b"]))
        many = ", ".join(f"'{number}'" for number in range(2 * MAX_OPERANDS))
        self.assertTrue(wants(f"a IN ({many})", a=f"{MAX_OPERANDS}"))
        self.refused("(" * 30000)

    def test_kept(self) -> None:
        """The last expressions are kept compiled, and mistakes too."""
        first = compiled("a = 'kept'")
        self.assertIs(compiled("a = 'kept'"), first)
        for number in range(sql.MAX_KEPT):
            compiled(f"a = {number}")
        self.assertIsNot(compiled("a = 'kept'"), first)
        self.refused("kept >", "kept >")
        with self.assertRaises(SubscriptionParseFailed):
            sql.known("kept >")

    def test_keptCharacters(self) -> None:
        """Long expressions are kept as long as they have so many characters together;
        one that is too long for any is not."""
        first = "a = 'kept'"
        compiled(first)
        self.assertIsNotNone(sql.known(first))
        long = ["b = 'kept'".ljust(sql.MAX_CHARACTERS - number) for number in range(5)]
        for expression in long[: sql.MAX_KEPT_CHARACTERS // sql.MAX_CHARACTERS]:
            compiled(expression)
        self.assertIsNone(sql.known(first))
        self.assertIsNotNone(sql.known(long[1]))
        with self.assertRaises(SubscriptionParseFailed):
            sql.known("a = 1".ljust(sql.MAX_CHARACTERS + 1))

    def test_travels(self) -> None:
        """A filter can be sent to another process."""
        copy = pickle.loads(pickle.dumps(compiled("a > 5")))
        self.assertTrue(copy.matches(b"a\x016"))

    def test_cost(self) -> None:
        """The more there is in an expression, the more it costs."""
        self.assertLess(compiled("a = 1").cost_ns, compiled("a = 1 OR a = 2").cost_ns)


def source_of(expression: str) -> str:
    """The source of the function that an expression becomes."""
    parser = Parser(expression)
    return parser.source.text(parser.expression())


class SourceTests(SynchronousTestCase):
    """What users write is not in the source of the function."""

    def test_shape(self) -> None:
        """Expressions that differ in names, strings and numbers have one source."""
        first = source_of("ab = 'x' AND (cd > 5 OR ab IN ('y') OR ab CONTAINS 'z')")
        other = source_of(
            "t12 = '\"' AND (p_ > 77 OR t12 IN ('}') OR t12 CONTAINS '\\')"
        )
        self.assertEqual(first, other)

    @examples(2)
    @given(EXPRESSIONS, st.booleans())
    def test_names(self, expression: str, is_long: bool) -> None:
        """The source names counted constants and variables, and what it may call."""
        chain = " OR ".join([f"({expression})"] * (1 + is_long * 100))
        try:
            parser = Parser(chain.ljust(is_long * (LONG_CHARACTERS + 1)))
            text = "".join(parser.source.texts(parser.expression()))
        except SubscriptionParseFailed:
            return
        allowed = re.compile(r"[cfluv]\d+|[prt]|properties")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name) and node.id not in sqlconditions.BUILTINS:
                self.assertTrue(allowed.fullmatch(node.id), node.id)
            elif isinstance(node, ast.Constant):
                self.assertIn(node.value, (None, True, False, b"\x02", 0, 1, 2, 10))
            elif isinstance(node, ast.Attribute):
                calls = "rpartition partition isdigit startswith endswith get"
                self.assertIn(node.attr, calls.split())

    def test_noBuiltins(self) -> None:
        """The function can call nothing else."""
        found: Any = compiled("a = 5").matches
        self.assertNotIn("open", found.__builtins__)
        self.assertNotIn("__import__", found.__builtins__)

    def test_short(self) -> None:
        """An operand that stands in many is in the source once for each."""
        expression = "a > b"
        for _ in range(10):
            expression = f"-({expression}) BETWEEN 1 AND 2"
        self.assertFalse(wants(expression, a="1", b="2"))
        self.assertLess(len(source_of(expression)), 10_000)


class LongTests(SynchronousTestCase):
    """Long expressions, which are compiled in pieces, in steps."""

    def steps(self, expression: str) -> int:
        """In how many steps an expression is compiled."""
        return sum(1 for _ in sql.in_steps(expression))

    def test_shortSteps(self) -> None:
        """A step parses so many words, or compiles so much source, and a piece more."""
        for operand, words in (
            ("a{} BETWEEN b AND c", 6),
            ("NOT (NOT (a{} IN ('x')))", 12),
        ):
            parts = [operand.format(number) for number in range(600)]
            expression = " AND ".join(parts)
            parser = Parser(expression)
            texts = parser.source.texts(parser.expression())
            self.assertGreater(len(texts), 9)
            self.assertLess(max(map(len, texts)), 2 * PIECE)
            least = 600 * words // (2 * sql.STEP_WORDS) + len(texts)
            self.assertGreater(self.steps(expression), least)
        listed = ", ".join(f"'{number}'" for number in range(6400))
        self.assertGreater(self.steps(f"a IN ({listed})"), 6400 // sql.STEP_WORDS)

    def test_onlyWhatIsCalled(self) -> None:
        """Of a piece only the form that is called is compiled."""
        parser = Parser(" AND ".join(f"a{number} = b" for number in range(600)))
        texts = parser.source.texts(parser.expression())
        heads = re.findall(r"def (\w+)", "".join(texts))
        self.assertEqual(len(heads), len({*heads}))
        self.assertEqual({head[0] for head in heads}, {"m", "l"})

    @examples(1)
    @given(
        st.lists(EXPRESSIONS.map(lambda text: f"({text})"), min_size=2, max_size=4),
        st.booleans(),
        just("", "NOT"),
        STORED,
    )
    def test_sameOutcome(
        self, parts: list[str], is_and: bool, negated: str, properties: bytes
    ) -> None:
        """In pieces, a chain wants what it wants as a whole."""
        word = " AND " if is_and else " OR "
        neutral = "1 = 1" if is_and else "1 = 2"
        # Conditions that decide nothing, so that each part is in a piece of its own.
        padding = word.join([neutral] * (PIECE // 40))
        whole = word.join(parts)
        long = word.join(f"{part}{word}{padding}" for part in parts)
        try:
            wanted = compiled(f"{negated} ({whole})").matches(properties)
        except SubscriptionParseFailed:
            return
        parser = Parser(f"{negated} ({long})")
        self.assertGreater(len(parser.source.texts(parser.expression())), 1)
        found = compiled(f"{negated} ({long})").matches(properties)
        self.assertIs(found, wanted)

    def test_hint(self) -> None:
        """A condition of a chain that has a hint gives it to the whole."""
        parts = [f"a{number} > {number}" for number in range(300)]
        found = compiled(" AND ".join([*parts, "b = 'x'", *parts]))
        assert found.hint is not None
        self.assertTrue(found.hint.search(b"a\x011\x02b\x01x\x02"))


class StoredTests(SynchronousTestCase):
    """Properties are read where they are stored."""

    def test_places(self) -> None:
        """The first entry is one, and the last, with or without its end."""
        for stored in (
            b"a\x015\x02b\x01x\x02",
            b"b\x01x\x02a\x015",
            b"a\x015\x02b\x01x",
        ):
            self.assertTrue(wants_stored("a = 5 AND b = 'x'", stored))
        self.assertTrue(wants_stored("a IS NULL", b""))

    def test_names(self) -> None:
        """A name that ends, or begins, with another is not the other."""
        stored = b"ba\x011\x02ab\x012\x02A\x013\x02"
        self.assertTrue(wants_stored("a IS NULL AND b IS NULL", stored))
        self.assertTrue(wants_stored("ba = 1 AND ab = 2 AND A = 3", stored))

    def test_insideValue(self) -> None:
        """What looks like an entry within a value is none."""
        self.assertTrue(wants_stored("a IS NULL", b"b\x01a\x01x\x02"))
        self.assertTrue(wants_stored("b ENDSWITH 'x'", b"b\x01a\x01x\x02"))

    def test_several(self) -> None:
        """The last of several counts, but one without a value is none."""
        self.assertTrue(wants_stored("a = 2", b"a\x011\x02a\x012\x02"))
        self.assertTrue(wants_stored("a = 1", b"a\x011\x02a\x01\x02"))
        self.assertTrue(wants_stored("a = 1", b"a\x011\x02a\x02\x02a\x01"))
        self.assertTrue(wants_stored("a IS NULL", b"a\x01\x02\x02\x01"))

    def test_otherLetters(self) -> None:
        """Text is compared, in UTF-8; what is not UTF-8 is replaced, as Java does."""
        stored = "a\x01\u00e4\u20ac\x02".encode()
        self.assertTrue(wants_stored("a = '\u00e4\u20ac'", stored))
        self.assertTrue(wants_stored("a STARTSWITH '\u00e4'", stored))
        self.assertTrue(wants_stored("a = 5", "a\x01\u0665".encode()))
        self.assertTrue(wants_stored("a = '\ufffd'", b"a\x01\xff\x02"))
        self.assertTrue(wants_stored("a = b", b"a\x01\xff\x02b\x01\xfe\x02"))
        self.assertFalse(wants_stored("a = '\ud800'", b"a\x01\xed\xa0\x80"))

    def test_hostile(self) -> None:
        """Names and strings are looked for and compared, and nothing else."""
        for text in ('" or 1 or "', "{properties}", "%s", "\\x02a\\x01", "#\n1"):
            quoted = text.replace("'", "''")
            self.assertTrue(wants(f"a = '{quoted}'", a=text))
            self.assertFalse(wants(f"a = '{quoted}'", a="x"))
            self.assertTrue(wants(f"a CONTAINS '{quoted}'", a=f"<{text}>"))
        for name in ("__import__", "self", "lambda", "None", "__class__", "$", "value"):
            self.assertTrue(wants(f"{name} = 'x' AND a IS NULL", **{name: "x"}))
            self.assertTrue(wants(f"{name} IS NULL"))


class OracleTests(SynchronousTestCase):
    """Against a parser library and another way to evaluate."""

    @examples(2)
    @given(EXPRESSIONS, st.lists(STORED, min_size=3, max_size=6))
    def test_same(self, expression: str, some: list[bytes]) -> None:
        """What the grammar takes, both take, and want the same messages. What it does
        not take is refused here, or stops at the end of a whole expression."""
        try:
            tree = sqloracle.tree_of(expression)
        except sqloracle.Refused:
            tree = None
        try:
            hint = compiled(expression).hint
        except SubscriptionParseFailed:
            self.assertIsNone(tree, expression)
            return
        if tree is None:
            # Only what follows a whole expression can be the reason.
            self.assertTrue(self.has_whole_beginning(expression), expression)
            return
        for properties in some:
            self.assertIs(
                wants_stored(expression, properties),
                sqloracle.matches(tree, decode(properties)),
                (expression, properties),
            )
            if hint is not None and wants_stored(expression, properties):
                self.assertIsNotNone(hint.search(properties), expression)

    def has_whole_beginning(self, expression: str) -> bool:
        """Whether an expression begins with one."""
        words = expression.split(" ")
        for end in range(len(words) - 1, 0, -1):
            try:
                sqloracle.tree_of(" ".join(words[:end]))
            except sqloracle.Refused:
                continue
            return True
        return False

    @examples(5)
    @given(st.text(alphabet="ab5.eE'()<>=+-, \nNOTANDINL/*?$", max_size=40))
    def test_rubbish(self, text: str) -> None:
        """Any text is an expression or refused, and evaluates to yes or no."""
        try:
            found = compiled(text)
        except SubscriptionParseFailed as error:
            self.assertTrue(error.remark)
            return
        self.assertIn(found.matches(b"a\x015\x02b\x01x"), (True, False))
