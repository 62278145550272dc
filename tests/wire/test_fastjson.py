"""Properties of reading and writing the dialect."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.fastjson import ObjectKey, dumps, dumps_standard, loads
from tests.examples import examples
from tests.wire.vectors import FOLDER

#: What UTF-8 can carry.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
PLAIN = st.booleans() | LONGS | TEXTS | st.floats(allow_nan=False, allow_infinity=False)
OBJECT_KEYS = st.dictionaries(TEXTS, LONGS | TEXTS, max_size=3).map(ObjectKey.of)
KEYS = TEXTS | LONGS | OBJECT_KEYS
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)
#: Pieces of the dialect, to be put together in any order.
PIECES = st.lists(
    st.sampled_from(
        ["{", "}", "[", "]", ":", ",", '"', "'", "\\", "/*", "*/", "//", "\n", " "]
        + ["0", "-1", "1.5E3", "9" * 30, "true", "null", "NaN", "a", "$ref", "\\u12"]
        + ['"a"', "'b'", '{"$ref":"$.a"}', '"$.a[0].b"', "\ud83d", "é", "\0", "L", "٣"]
    ),
    max_size=30,
).map("".join)


def marked(value: object) -> bool:
    """Whether a value holds something like a reference."""
    return "$ref" in repr(value)


class RoundTripTests(SynchronousTestCase):
    """What was written is read."""

    @examples()
    @given(VALUES)
    def test_own(self, value: object) -> None:
        """The library's own form, with keys of all kinds."""
        if not marked(value):
            self.assertEqual(loads(dumps(value)), value)

    @examples()
    @given(VALUES)
    def test_stable(self, value: object) -> None:
        """What was read is written as it was."""
        text = dumps(value)
        if not marked(value):
            self.assertEqual(dumps(loads(text)), text)

    @examples()
    @given(
        st.recursive(
            st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS,
            lambda inner: (
                st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
            ),
            max_leaves=12,
        )
    )
    def test_standard(self, value: object) -> None:
        """The standard form is read by any reader of JSON."""
        text = dumps_standard(value)
        self.assertTrue(text.isascii())
        self.assertEqual(json.loads(text), value)
        if not marked(value):
            self.assertEqual(loads(text), value)


class SampleTests(SynchronousTestCase):
    """Bodies and files as C{docs/facts} has them."""

    def test_samples(self) -> None:
        """Each is read, and written as it was, byte for byte."""
        lines = (FOLDER / "bodies.fastjson").read_bytes().splitlines()
        for line in lines:
            self.assertEqual(dumps(loads(line)), line)
        self.assertGreater(len(lines), 40)


class AnythingTests(SynchronousTestCase):
    """Texts that nobody meant to be read."""

    def check(self, text: str | bytes) -> None:
        """It is refused, or what it is read as can be written and read again."""
        try:
            value = loads(text)
        except RemoteProtocolError:
            return
        loads(dumps(value))

    @examples()
    @given(PIECES)
    def test_pieces(self, text: str) -> None:
        """Pieces of the dialect in any order."""
        self.check(text)

    @examples()
    @given(st.binary(max_size=60))
    def test_bytes(self, data: bytes) -> None:
        """Any bytes."""
        self.check(data)

    @examples()
    @given(VALUES, st.integers(0, 1000), st.binary(max_size=3), st.integers(0, 3))
    def test_mutated(self, value: object, at: int, other: bytes, cut: int) -> None:
        """A text with a few bytes replaced, removed or added."""
        text = dumps(value)
        at %= len(text)
        self.check(text[:at] + other + text[at + cut :])

    @examples(0.2)
    @given(VALUES)
    def test_cut(self, value: object) -> None:
        """A text that ends too early."""
        text = dumps(value)
        for end in range(len(text)):
            self.check(text[:end])
