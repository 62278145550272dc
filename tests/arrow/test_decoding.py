"""Records to Arrow batches."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.columns import KAFKA, LEAST_MS, MAX_MS, NATIVE, Columns, chosen
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.layout import lay_out, starts_one_by_one
from rocketbroker.records import compression, hosts, record
from rocketbroker.records.malformed import Malformed
from tests.examples import examples
from tests.sources.messages import OTHER_V4, V4, V6, stored

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

#: The example record of the store sheet, section 3.2.
VECTOR = bytes.fromhex(
    "00000065daa320a758932aac000000030000000000000000000000070000000000001000"
    "000000000000018bcfe568000a0000010000c3500000018bcfe568010a00000200002a9f"
    "0000000000000000000000000000000268690154000754414753016102"
)


def decode(
    buffer: bytes, columns: Columns = NATIVE, decompress: bool = True
) -> list[dict[str, Any]]:
    """The rows of a buffer of records."""
    batches = list(Decoder(columns, "broker-a", decompress).batches(lay_out(buffer)))
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def expected(one: bytes, decompress: bool = True) -> dict[str, Any]:
    """The row of one record, by the codec of records."""
    message = record.decode(one)
    body, sys_flag = message.body, message.sys_flag
    if decompress and sys_flag & 1:
        body, sys_flag = message.plain_body(), sys_flag & ~1
    found = message.properties
    return {
        "topic": message.topic,
        "brokerName": "broker-a",
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "storeTimestamp": EPOCH + datetime.timedelta(milliseconds=message.store_ms),
        "bornTimestamp": EPOCH + datetime.timedelta(milliseconds=message.born_ms),
        "tags": message.tags,
        "keys": message.keys if "KEYS" in found else None,
        "msgId": message.message_id,
        "properties": list(found.items()),
        "body": body,
        "bornHost": hosts.text(message.born_host),
        "storeHost": hosts.text(message.store_host),
        "flag": message.flag,
        "sysFlag": sys_flag,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_offset,
        "commitLogOffset": message.position,
        "bodyCRC": message.body_crc,
    }


texts = st.text(st.sampled_from("ab \x01\x02\x00äK😀"), max_size=5)
names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "a", "b", "ä"]) | texts
strings = st.lists(st.tuples(names, texts), max_size=4).map(
    lambda pairs: "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()
)
bodies = st.binary(max_size=20) | st.just(b"\xda\xa3\x20\xa7" * 3)
records = st.builds(
    stored,
    number=st.integers(0, 2**40),
    body=bodies,
    values=strings | strings.map(lambda text: text[:-1]) | st.binary(max_size=12),
    topic=st.sampled_from(["T", "%RETRY%g", "t" * 127, "t" * 128]),
    born_host=st.sampled_from([V4, OTHER_V4, V6]),
    store_host=st.sampled_from([V4, V6]),
)


class DecoderTests(SynchronousTestCase):
    """L{Decoder} gives what C{records.record} gives, many at a time."""

    def test_vector(self) -> None:
        """The example of the store sheet comes out field by field."""
        (row,) = decode(VECTOR)
        self.assertEqual(row, expected(VECTOR))
        self.assertEqual(row["tags"], "a")
        self.assertEqual(row["msgId"], "0A00000200002A9F0000000000001000")
        self.assertEqual(row["bornHost"], "10.0.0.1:50000")
        self.assertIsNone(row["keys"])

    def test_nothing(self) -> None:
        """No bytes are no rows."""
        self.assertEqual(decode(b""), [])

    @examples()
    @given(st.lists(records, min_size=1, max_size=6))
    def test_asTheCodec(self, parts: list[bytes]) -> None:
        """Any records: odd properties, IPv6, long topics, magic in the body."""
        self.assertEqual(decode(b"".join(parts)), [expected(one) for one in parts])

    def test_manyNames(self) -> None:
        """A name twice is found also among more names than a word has bits."""
        parts = [
            stored(n, values=f"n{n}\x01x\x02n{n}\x01y\x02a\x01b\x02".encode())
            for n in range(70)
        ]
        self.assertEqual(decode(b"".join(parts)), [expected(one) for one in parts])

    def test_compressed(self) -> None:
        """Bodies of all kinds are made large again, and the flag says so."""
        parts = [stored(0, b"plain")]
        for number, kind in enumerate((0, 1, 2, 3), 1):
            packed = compression.compress(b"x" * 5000, kind)
            parts.append(stored(number, packed, sys_flag=1 | kind << 8))
        rows = decode(b"".join(parts))
        self.assertEqual(rows, [expected(one) for one in parts])
        self.assertEqual(rows[2]["body"], b"x" * 5000)
        self.assertEqual(rows[2]["sysFlag"], 0x100)

    def test_leftCompressed(self) -> None:
        """With decompress off the stored bytes are given, and the flag is kept."""
        one = stored(0, compression.compress(b"x" * 5000, 3), sys_flag=0x301)
        (row,) = decode(one, decompress=False)
        self.assertEqual(row, expected(one, decompress=False))
        self.assertEqual(row["sysFlag"], 0x301)

    def test_undecodable(self) -> None:
        """A body that cannot be decompressed is kept and counted."""
        one = stored(0, b"no zlib", sys_flag=1)
        decoder = Decoder(chosen(["body", "sysFlag"], NATIVE), "b", True)
        (batch,) = decoder.batches(lay_out(one + stored(1, b"fine")))
        self.assertEqual(
            batch.to_pylist(),
            [{"body": b"no zlib", "sysFlag": 1}, {"body": b"fine", "sysFlag": 0}],
        )
        self.assertEqual(decoder.undecodable, 1)

    def test_largeBodiesCloseABatch(self) -> None:
        """A batch ends before its decompressed bodies become too large together."""
        packed = compression.compress(bytes(60_000_000), 2)
        parts = [stored(0, b"first")]
        parts += [stored(n, packed, sys_flag=0x201) for n in range(1, 10)]
        batches = Decoder(chosen(["body", "queueOffset"], NATIVE), "b", True).batches(
            lay_out(b"".join(parts))
        )
        self.assertEqual([len(batch) for batch in batches], [5, 4, 1])

    def test_timesBeyond(self) -> None:
        """A time outside the years 1 to 9999 is null."""
        for ms in (LEAST_MS, MAX_MS):
            (row,) = decode(stored(0, store_ms=ms), chosen(["storeTimestamp"], NATIVE))
            self.assertIn(row["storeTimestamp"].year, (1, 9999))
        for ms in (2**62, -(2**62), LEAST_MS - 1, MAX_MS + 1):
            (row,) = decode(stored(0, store_ms=ms), chosen(["storeTimestamp"], NATIVE))
            self.assertIsNone(row["storeTimestamp"])

    def test_someColumns(self) -> None:
        """Only the columns asked for are there, in that order."""
        rows = decode(stored(5, b"x"), chosen(["body", "queueOffset"], NATIVE))
        self.assertEqual(
            [list(row.items()) for row in rows], [[("body", b"x"), ("queueOffset", 5)]]
        )

    def test_kafkasColumns(self) -> None:
        """The same message in Kafka's terms."""
        one = stored(5, b"x", {"KEYS": "k1 k2", "a": "b"}, queue_id=3)
        (row,) = decode(one, KAFKA)
        self.assertEqual(row["key"], b"k1 k2")
        self.assertEqual(row["value"], b"x")
        self.assertEqual(row["partition"], 3)
        self.assertEqual(row["offset"], 5)
        self.assertEqual(
            row["headers"],
            [{"key": "KEYS", "value": b"k1 k2"}, {"key": "a", "value": b"b"}],
        )


class LayoutTests(SynchronousTestCase):
    """Finding records in bytes, and refusing what are none."""

    def test_cutAnywhere(self) -> None:
        """Half a record at the end is an error, wherever it is cut."""
        whole = stored(0) + VECTOR
        for end in range(len(whole)):
            if end in (0, len(stored(0))):
                continue
            self.assertRaises(Malformed, lay_out, whole[:end])

    def test_bothWays(self) -> None:
        """The search and the walk find the same, also with magic inside a body."""
        parts = b"".join(
            [stored(0), stored(1, b"\xda\xa3\x20\xa7\xda\xa3\x20\xab"), stored(2)]
        )
        found = lay_out(parts).starts
        self.assertEqual(found.tolist(), starts_one_by_one(parts).tolist())
        self.assertEqual(len(found), 3)

    @examples()
    @given(records, st.data())
    def test_mutated(self, one: bytes, data: Any) -> None:
        """A changed byte gives rows or L{Malformed}, and nothing else."""
        place = data.draw(st.integers(0, len(one) - 1))
        broken = bytearray(stored(1) + one + stored(2))
        broken[len(stored(1)) + place] ^= data.draw(st.integers(1, 255))
        try:
            rows = decode(bytes(broken))
        except Malformed:
            return
        self.assertTrue(rows)

    def test_rows(self) -> None:
        """Some rows of a layout decode as if they were alone."""
        parts = [stored(n, b"%d" % n) for n in range(5)]
        (batch,) = Decoder(chosen(["body"], NATIVE), "b", True).batches(
            lay_out(b"".join(parts)).rows(1, 3)
        )
        self.assertEqual(batch, pa.record_batch({"body": [b"1", b"2"]}))
