"""The properties string."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import properties
from rocketbroker.records.malformed import Malformed
from tests.examples import examples

NAMES = st.text(st.characters(exclude_characters="\1\2", codec="utf-8"), min_size=1)
VALUES = st.text(st.characters(exclude_characters="\2", codec="utf-8"), min_size=1)


class PropertiesTests(SynchronousTestCase):
    """Names and values to bytes and back."""

    def test_vector(self) -> None:
        """One entry as RocketMQ writes it."""
        data = bytes.fromhex("54414753016102")
        self.assertEqual(properties.encode({"TAGS": "a"}), data)
        self.assertEqual(properties.decode(data), {"TAGS": "a"})

    @examples()
    @given(st.dictionaries(NAMES, VALUES))
    def test_roundTrip(self, mapping: dict[str, str]) -> None:
        """What can be carried comes back, with and without the last separator."""
        data = properties.encode_checked(mapping)
        self.assertEqual(properties.decode(data), mapping)
        self.assertEqual(properties.decode(data.removesuffix(b"\2")), mapping)

    @examples()
    @given(st.binary())
    def test_anyBytes(self, data: bytes) -> None:
        """Any bytes are some properties, none of them empty."""
        found = properties.decode(data)
        self.assertNotIn("", found)
        self.assertNotIn("", found.values())

    def test_whatDoesNotCount(self) -> None:
        """Entries without name, value or separator are passed over."""
        data = b"\2\1\2a\1\2\1b\2ab\2c\1d\1e\2\2"
        self.assertEqual(properties.decode(data), {"c": "d\1e"})

    def test_lastCounts(self) -> None:
        """Of equal names the last counts, unless it has no value."""
        self.assertEqual(properties.decode(b"a\1x\2a\1y\2a\1\2"), {"a": "y"})

    @examples()
    @given(st.lists(st.sampled_from([b"a", b"b", b"ab", b"\1", b"\2", b"xyz"])))
    def test_find(self, pieces: list[bytes]) -> None:
        """Looking for one name gives what decoding gives."""
        data = b"".join(pieces)
        mapping = properties.decode(data)
        for name in ("a", "ab", "xyz", "b"):
            value = properties.find(data, name.encode())
            self.assertEqual(value and value.decode(), mapping.get(name))

    def test_joined(self) -> None:
        """A separator is put between two strings only where one is missing."""
        self.assertEqual(properties.joined(b"", b"b\1c\2"), b"b\1c\2")
        self.assertEqual(properties.joined(b"a\1b", b"b\1c\2"), b"a\1b\2b\1c\2")
        self.assertEqual(properties.joined(b"a\1b\2", b"b\1c\2"), b"a\1b\2b\1c\2")

    def test_emptyValuesAreLeftOut(self) -> None:
        """An empty value cannot be told from none."""
        self.assertEqual(properties.encode({"a": "", "b": "c"}), b"b\1c\2")

    def test_surrogates(self) -> None:
        """What UTF-8 cannot carry becomes a question mark."""
        self.assertEqual(properties.encode({"a": "\ud834"}), b"a\1?\2")

    def test_whatCannotBeCarried(self) -> None:
        """The user is told about names and values that would not arrive."""
        for name, value in (
            ("", "a"),
            ("a", ""),
            ("a\1", "b"),
            ("a\2", "b"),
            ("a", "b\2c"),
        ):
            self.assertRaises(Malformed, properties.encode_checked, {name: value})

    def test_limit(self) -> None:
        """The length is limited, to the byte."""
        fits = {"a": "b" * (properties.MAX_BYTES - 3)}
        self.assertEqual(len(properties.encode_checked(fits)), properties.MAX_BYTES)
        fits["a"] += "b"
        self.assertRaises(Malformed, properties.encode_checked, fits)
