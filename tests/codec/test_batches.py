"""Tests of L{rocketbroker.codec.batches}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.outer_batch import tag_code_of
from rocketbroker.codec.batches import ids_of, split, tags_of
from rocketbroker.records.batches import encode_part
from rocketbroker.records.hashing import tag_code
from tests.examples import examples

SHARED = b"A\x01b\x02"

_OWN = st.lists(
    st.sampled_from([b"TAGS", b"\x01", b"\x02", b"a", b"X", b"\xff"]), max_size=12
).map(b"".join)


class SplitTests(SynchronousTestCase):
    """Batches."""

    def test_parts(self) -> None:
        """Each message has the shared properties and its own, and its own tag if it has
        one."""
        parts = [(1, b"one", b""), (2, b"", b"TAGS\x01x"), (-3, b"3", b"K\x01v\x02")]
        body = b"".join(encode_part(flag, one, own) for flag, one, own in parts)
        self.assertEqual(
            split(body, SHARED, 7, 100, tag_code),
            [
                (1, b"one", SHARED, 7),
                (2, b"", SHARED + b"TAGS\x01x\x02", tag_code("x")),
                (-3, b"3", SHARED + b"K\x01v\x02", 7),
            ],
        )

    def test_left(self) -> None:
        """A body that is cut off anywhere, and properties that are too long, are
        left."""
        body = encode_part(1, b"one", b"K\x01v")
        self.assertIsNone(split(body, SHARED, 7, 3, tag_code))
        for end in range(1, len(body)):
            self.assertIsNone(split(body[:end], SHARED, 7, 4, tag_code))
            self.assertIsNone(split(body + body[:end], SHARED, 7, 4, tag_code))
        for at in (*range(4), *range(16, 20), 23, 24):
            other = body[:at] + bytes((body[at] ^ 0x81,)) + body[at + 1 :]
            self.assertIsNone(split(other, SHARED, 7, 4, tag_code), at)

    @examples()
    @given(_OWN)
    def test_tags(self, own: bytes) -> None:
        """The tags are those that the ordinary code finds."""
        found = tags_of(own).decode("utf-8", "replace")
        self.assertEqual(tag_code(found) if found else 0, tag_code_of(own))

    def test_ids(self) -> None:
        """All ids but the last end with a comma and the host of the next."""
        self.assertEqual(ids_of([9], b"HOST"), b"")
        expected = b"%016X,HOST%016X,HOST" % (1, 0xABCDEF0123)
        self.assertEqual(ids_of([1, 0xABCDEF0123, 3], b"HOST"), expected)
