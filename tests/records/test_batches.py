"""Several messages in one."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import batches, compression, record, sysflags
from rocketbroker.records.malformed import Malformed
from tests.examples import examples
from tests.records.samples import VECTOR, example

PARTS = [(5, b"one", b"TAGS\1a\2"), (0, b"", b""), (-1, b"three", b"k\1v")]
BODY = batches.encode(PARTS)


class OuterBatchTests(SynchronousTestCase):
    """The body of a batch, together and apart."""

    def test_vector(self) -> None:
        """One part, field by field."""
        self.assertEqual(
            batches.encode_part(5, b"hi", b"a\1b\2").hex(),
            "0000001c" + "00000000" * 2 + "00000005" + "00000002" + "6869"
            "0004" + "61016202",
        )

    @examples()
    @given(
        st.lists(
            st.tuples(
                st.integers(-(2**31), 2**31 - 1), st.binary(), st.binary(max_size=200)
            ),
            min_size=1,
        )
    )
    def test_roundTrip(self, parts: list[tuple[int, bytes, bytes]]) -> None:
        """What was put together comes apart."""
        self.assertEqual(batches.decode(batches.encode(parts)), parts)

    def test_cut(self) -> None:
        """Cut within a part it is refused; bytes left over are refused."""
        sizes = [len(batches.encode_part(*part)) for part in PARTS]
        borders = {sizes[0], sizes[0] + sizes[1], len(BODY)}
        for size in range(len(BODY)):
            if size not in borders:
                self.assertRaises(Malformed, batches.decode, BODY[:size])
            self.assertRaises(Malformed, batches.decode, BODY + bytes(1))

    def test_empty(self) -> None:
        """No message at all is not a batch."""
        self.assertRaises(Malformed, batches.decode, b"")

    @examples()
    @given(st.integers(min_value=0), st.binary(min_size=1, max_size=8))
    def test_mutated(self, at: int, patch: bytes) -> None:
        """Changed bytes give messages or the declared error."""
        data = bytearray(BODY)
        start = at % len(data)
        data[start : start + len(patch)] = patch
        with contextlib.suppress(Malformed):
            batches.decode(bytes(data))


class InnerBatchTests(SynchronousTestCase):
    """A record that holds several messages."""

    flag = sysflags.NEED_UNWRAP | sysflags.INNER_BATCH

    def test_unwrap(self) -> None:
        """Parts count up from the record's offset and take the rest from it."""
        data = example(body=BODY, sys_flag=self.flag, properties=b"WAIT\1true\2x\1y\2")
        whole = record.decode(data)
        self.assertTrue(batches.is_inner_batch(whole))
        messages = batches.unwrap(whole)
        self.assertEqual([one.queue_offset for one in messages], [7, 8, 9])
        self.assertEqual([one.body for one in messages], [b"one", b"", b"three"])
        self.assertEqual([one.flag for one in messages], [5, 0, -1])
        self.assertEqual(messages[2].properties, {"k": "v", "WAIT": "true"})
        self.assertEqual(messages[0].body_crc, record.body_crc(b"one"))
        self.assertEqual({one.position for one in messages}, {4096})
        self.assertEqual({one.sys_flag for one in messages}, {self.flag})

    def test_compressed(self) -> None:
        """A compressed one is made large first; its parts are not compressed."""
        small = compression.compress(BODY, compression.ZSTD)
        flag = sysflags.with_compression(self.flag, compression.ZSTD)
        whole = record.decode(example(body=small, sys_flag=flag))
        messages = batches.unwrap(whole)
        self.assertEqual(messages[2].plain_body(), b"three")

    def test_damaged(self) -> None:
        """A body that is no batch is refused."""
        whole = record.decode(example(body=b"junk", sys_flag=self.flag))
        self.assertRaises(Malformed, batches.unwrap, whole)

    def test_ordinary(self) -> None:
        """An ordinary message is itself."""
        message = record.decode(VECTOR)
        self.assertEqual(batches.unwrap(message), [message])
