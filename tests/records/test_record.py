"""Records of the commit log."""

from __future__ import annotations

import contextlib
import pickle
import zlib

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import hosts, record, sysflags
from rocketbroker.records.malformed import Malformed
from tests.examples import examples
from tests.records.samples import (
    BORN,
    BORN_V6,
    SHAPES,
    STORE,
    STORE_V6,
    VECTOR,
    example,
)

i32 = st.integers(-(2**31), 2**31 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
host = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20))


class EncodeTests(SynchronousTestCase):
    """Records to bytes."""

    def test_vector(self) -> None:
        """The example of C{docs/facts}, byte for byte."""
        self.assertEqual(example(), VECTOR)

    def test_size(self) -> None:
        """The size can be told from the lengths of the parts."""
        for born, store in ((BORN, STORE), (BORN_V6, STORE), (BORN_V6, STORE_V6)):
            for topic in (b"T", b"t" * 127, b"t" * 128):
                data = example(born_host=born, store_host=store, topic=topic)
                self.assertEqual(
                    record.record_size(2, len(topic), 7, len(born), len(store)),
                    len(data),
                )

    def test_version(self) -> None:
        """A topic of more than 127 bytes makes it version 2."""
        self.assertEqual(example(topic=b"t" * 127)[4:8].hex(), "daa320a7")
        self.assertEqual(example(topic=b"t" * 128)[4:8].hex(), "daa320ab")

    def test_hostBits(self) -> None:
        """The bits for long hosts follow the hosts, whatever the flag said."""
        data = example(born_host=BORN_V6, sys_flag=sysflags.STORE_HOST_V6 | 1)
        self.assertEqual(record.decode(data).sys_flag, sysflags.BORN_HOST_V6 | 1)

    def test_recordCrc(self) -> None:
        """The CRC property is the last of the record and covers all before it."""
        data = example(append_crc=True)
        crc = zlib.crc32(data[:-20]) & 0x7FFFFFFF
        self.assertEqual(data[-20:], record.crc_property(crc))
        self.assertEqual(record.decode(data).properties["TAGS"], "a")

    def test_crcProperty(self) -> None:
        """The digits come least significant first, with zeros at the end."""
        self.assertEqual(
            record.crc_property(1234567890).hex(),
            "5f5f4352433332230130393837363534333231" + "02",
        )
        self.assertEqual(record.crc_property(12), b"__CRC32#\x012100000000\x02")

    def test_crcSeparator(self) -> None:
        """A separator is put before it where the other properties lack one."""
        data = example(properties=b"a\1b", append_crc=True)
        self.assertIn(b"a\1b\2__CRC32#\1", data)
        data = example(properties=b"", append_crc=True)
        self.assertEqual(list(record.decode(data).properties), ["__CRC32#"])


class DecodeTests(SynchronousTestCase):
    """Bytes to messages."""

    def test_vector(self) -> None:
        """The example of C{docs/facts} has the values given there."""
        message = record.decode(VECTOR)
        self.assertEqual(message.topic, "T")
        self.assertEqual((message.queue_id, message.queue_offset), (3, 7))
        self.assertEqual(message.position, 4096)
        self.assertEqual(message.body, b"hi")
        self.assertEqual(message.body_crc, 1486039724)
        self.assertEqual(message.properties, {"TAGS": "a"})
        self.assertEqual(message.tags, "a")
        self.assertEqual(hosts.text(message.born_host), "10.0.0.1:50000")
        self.assertEqual(message.born_ms, 1700000000000)
        self.assertEqual(message.store_ms, 1700000000001)
        self.assertEqual(message.offset_id, "0A00000200002A9F0000000000001000")
        self.assertEqual(message.size, 101)

    @examples()
    @given(
        st.binary(max_size=300),
        st.text(max_size=200),
        st.binary(max_size=300),
        st.tuples(i32, i64, i64, i64),
        st.tuples(i64, i32, i32, i64),
        st.tuples(host, host),
        st.binary(max_size=30),
    )
    def test_roundTrip(
        self,
        body: bytes,
        topic: str,
        properties: bytes,
        numbers: tuple[int, int, int, int],
        more: tuple[int, int, int, int],
        both_hosts: tuple[bytes, bytes],
        rest: bytes,
    ) -> None:
        """Every field comes back, and what follows the record is not looked at."""
        queue_id, queue_offset, position, born_ms = numbers
        store_ms, flag, reconsume_times, prepared_offset = more
        data = record.encode(
            topic.encode("utf-8"),
            body,
            properties,
            queue_id,
            queue_offset,
            position,
            born_ms,
            both_hosts[0],
            store_ms,
            both_hosts[1],
            flag,
            0x301,
            reconsume_times,
            prepared_offset,
        )
        message = record.decode(data + rest)
        self.assertEqual(message.size, len(data))
        self.assertEqual((message.topic, message.body), (topic, body))
        self.assertEqual(message.property_bytes, properties)
        self.assertEqual(
            (message.queue_id, message.queue_offset, message.position), numbers[:3]
        )
        self.assertEqual((message.born_ms, message.store_ms), (born_ms, store_ms))
        self.assertEqual((message.born_host, message.store_host), both_hosts)
        self.assertEqual(message.flag, flag)
        self.assertEqual(message.sys_flag & 0x701, 0x301)
        self.assertEqual((message.reconsume_times, message.prepared_offset), more[2:])

    def test_cut(self) -> None:
        """A record cut at any byte is refused."""
        for shape, data in SHAPES.items():
            for size in range(len(data)):
                with self.assertRaises(Malformed, msg=f"{shape} {size}"):
                    record.decode(data[:size])

    @examples()
    @given(
        st.sampled_from(sorted(SHAPES)),
        st.integers(min_value=0),
        st.binary(min_size=1, max_size=8),
    )
    def test_mutated(self, shape: str, at: int, patch: bytes) -> None:
        """Changed bytes give a message or the declared error."""
        data = bytearray(SHAPES[shape])
        start = at % len(data)
        data[start : start + len(patch)] = patch
        with contextlib.suppress(Malformed):
            list(record.decode_all(bytes(data)))

    @examples()
    @given(st.binary(max_size=200))
    def test_garbage(self, data: bytes) -> None:
        """Any bytes give messages or the declared error."""
        with contextlib.suppress(Malformed):
            list(record.decode_all(data))

    def test_lengths(self) -> None:
        """Lengths below zero: of body and properties none, of the topic an error."""
        negative = bytearray(example(body=b"", properties=b""))
        negative[84:88] = b"\xff" * 4
        self.assertEqual(record.decode(bytes(negative)).body, b"")
        negative[-2:] = b"\xff\xff"
        self.assertEqual(record.decode(bytes(negative)).properties, {})
        negative[88] = 0xFF
        self.assertRaises(Malformed, record.decode, bytes(negative))

    def test_sizeMustBeTheSum(self) -> None:
        """A record whose parts do not fill it is refused."""
        data = bytearray(VECTOR + b"\0")
        data[3] += 1
        self.assertRaises(Malformed, record.decode, bytes(data))

    def test_several(self) -> None:
        """Records that follow each other, of all shapes."""
        whole = b"".join(SHAPES.values())
        self.assertEqual(
            [message.size for message in record.decode_all(whole)],
            [len(data) for data in SHAPES.values()],
        )

    def test_tornTail(self) -> None:
        """What stands before a torn record is given first."""
        found = record.decode_all(VECTOR + VECTOR[:50])
        self.assertEqual(next(found).queue_offset, 7)
        self.assertRaises(Malformed, next, found)


class StoredMessageTests(SynchronousTestCase):
    """What a message knows about itself."""

    def test_ids(self) -> None:
        """Its id is the producer's, or where it is stored."""
        message = record.decode(example(properties=b"UNIQ_KEY\1ABC\2"))
        self.assertEqual(message.message_id, "ABC")
        self.assertEqual(record.decode(VECTOR).message_id, message.offset_id)

    def test_keys(self) -> None:
        """Keys are separated by spaces; empty ones do not count."""
        message = record.decode(example(properties=b"KEYS\1a  b \2"))
        self.assertEqual(message.keys, ["a", "b"])
        self.assertEqual(record.decode(VECTOR).keys, [])

    def test_plainBody(self) -> None:
        """A compressed body is made large again; a bomb is refused."""
        small = zlib.compress(b"hello" * 10)
        for sys_flag in (0x1, 0x301):
            message = record.decode(example(body=small, sys_flag=sys_flag))
            self.assertEqual(message.plain_body(), b"hello" * 10)
            self.assertRaises(Malformed, message.plain_body, 49)
        self.assertEqual(record.decode(VECTOR).plain_body(), b"hi")

    def test_travels(self) -> None:
        """It can be pickled, and equals what comes out."""
        message = record.decode(VECTOR)
        self.assertEqual(pickle.loads(pickle.dumps(message)), message)
        self.assertEqual(hash(message), hash(record.decode(VECTOR)))
        self.assertNotEqual(message, record.decode(example(body=b"ho")))
        self.assertNotEqual(message, 5)
        self.assertIn("T 3@7", repr(message))

    def test_decompressed(self) -> None:
        """A copy with the body made large; only the bit for compression is cleared."""
        small = zlib.compress(b"hello")
        message = record.decode(example(body=small, sys_flag=0x301))
        plain = message.decompressed()
        self.assertEqual((plain.body, plain.sys_flag), (b"hello", 0x300))
        self.assertEqual(plain.queue_offset, message.queue_offset)
        self.assertIs(plain.decompressed(), plain)
