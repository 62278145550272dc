"""Java's hash of a string."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import hashing
from tests.examples import examples


def by_loop(text: str) -> int:
    """The same, as its definition says."""
    units = text.encode("utf-16-be", "surrogatepass")
    sum32 = 0
    for at in range(0, len(units), 2):
        sum32 = (31 * sum32 + int.from_bytes(units[at : at + 2], "big")) % 2**32
    return sum32 - 2**32 if sum32 >= 2**31 else sum32


class HashTests(SynchronousTestCase):
    """C{String.hashCode}, tag codes, index hashes."""

    def test_vectors(self) -> None:
        """Known values of Java."""
        for text, code in {
            "": 0,
            "a": 97,
            "TagA": 2598919,
            "polygenelubricants": -(2**31),
            "\U0001d11e": 0xD834 * 31 + 0xDD1E,
        }.items():
            self.assertEqual(hashing.java_hash(text), code, text)

    @examples()
    @given(st.text())
    def test_anyText(self, text: str) -> None:
        """Any text has the hash of the definition."""
        self.assertEqual(hashing.java_hash(text), by_loop(text))

    def test_lengths(self) -> None:
        """Long ASCII texts, which are summed in pieces, have it too."""
        for size in (255, 256, 257, 511, 512, 513, 5000):
            text = "".join(chr(at * 7 % 128) for at in range(size))
            self.assertEqual(hashing.java_hash(text), by_loop(text), size)

    def test_loneSurrogate(self) -> None:
        """Half a pair is a unit like any other."""
        self.assertEqual(hashing.java_hash("\ud834"), 0xD834)

    def test_tagCode(self) -> None:
        """A tag code is the hash; asked again it is the same; no tag is 0."""
        self.assertEqual(hashing.tag_code("TagA"), 2598919)
        self.assertEqual(hashing.tag_code("TagA"), 2598919)
        self.assertEqual(hashing.tag_code(""), 0)

    def test_cacheIsBounded(self) -> None:
        """More tags than are remembered still get their codes."""
        for number in range(hashing.MAX_CACHED_TAGS + 10):
            tag = f"tag-{number}"
            self.assertEqual(hashing.tag_code(tag), hashing.java_hash(tag))
        tag = "t" * (hashing.LONGEST_CACHED_TAG + 1)
        self.assertEqual(hashing.tag_code(tag), hashing.java_hash(tag))

    def test_indexHash(self) -> None:
        """An index hash is never negative; the one without a counterpart is 0."""
        self.assertEqual(hashing.index_hash("T", "k1"), 2539445)
        none = hashing.unsigned_hash("polygenelubricants")
        self.assertEqual(none, 1 << 31)
        self.assertEqual(hashing.without_sign(none), 0)

    def test_indexHashAfter(self) -> None:
        """The hash of a key goes on from that of its topic, in UTF-16 units."""
        for topic in ("T", "%RETRY%group", "Thema-ü"):
            prefix = hashing.unsigned_hash(topic + "#")
            for key in ("k1", "", "x" * 300, "straße", "\U0001f600!"):
                self.assertEqual(
                    hashing.index_hash_after(prefix, key),
                    hashing.index_hash(topic, key),
                )
