# -*- test-case-name: tests.spark.test_decoding -*-
"""Stored records to Arrow record batches.

Only the columns asked for are computed: that is all the column pruning there is, and it
is worth it (two columns 1115 k messages/s, all of them 450 k; the Spark sheet, 3 and
4). What every row has goes through arrays; what few rows have (IPv6 hosts, compressed
bodies, odd properties) goes through the codecs of C{rocketbroker.records} one by one
and is put back in its place.

A body that is compressed is made large again, and its system flag then no longer says
that it is compressed, as in a client. One that cannot be is kept as it is, flag and
all, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketbroker.errors import ConfigurationError
from rocketbroker.records import compression, hosts, ids, properties
from rocketbroker.records.malformed import Malformed
from rocketbroker.spark.gathering import cut_and_take, joined_rows
from rocketbroker.spark.layout import CUTS, Bytes, Ints, Layout, window
from rocketbroker.spark.properties import MAP, PropertyColumns, read_properties

COMPRESSED: Final = 0x1
INNER_BATCH: Final = 0x80
KIND: Final = 0x700
KIND_SHIFT: Final = 8

#: Compressed bodies of a few bytes can become megabytes each; a batch is closed when
#: those in it have become this large together.
MAX_PLAIN_BATCH: Final = 256 * 1024 * 1024

#: The years 1 to 9999: a time outside, which any producer can claim, is null, because
#: neither Spark's nor Python's times can express it.
LEAST_MS: Final = -62_135_596_800_000
MAX_MS: Final = 253_402_300_799_999

TIMESTAMP: Final[Any] = pa.timestamp("us", tz="UTC")

#: Arrow's type of each column, native and Kafka's.
TYPES: Final[dict[str, Any]] = {
    "topic": pa.string(),
    "brokerName": pa.string(),
    "queueId": pa.int32(),
    "queueOffset": pa.int64(),
    "storeTimestamp": TIMESTAMP,
    "bornTimestamp": TIMESTAMP,
    "tags": pa.string(),
    "keys": pa.list_(pa.string()),
    "msgId": pa.string(),
    "properties": MAP,
    "body": pa.binary(),
    "bornHost": pa.string(),
    "storeHost": pa.string(),
    "flag": pa.int32(),
    "sysFlag": pa.int32(),
    "reconsumeTimes": pa.int32(),
    "preparedTransactionOffset": pa.int64(),
    "commitLogOffset": pa.int64(),
    "bodyCRC": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP,
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


@final
class Decoder:
    """Makes record batches with certain columns.

    @ivar schema: the schema of the batches.
    @ivar undecodable: how many bodies could not be decompressed.
    """

    def __init__(self, columns: Sequence[str], broker: str, decompress: bool) -> None:
        """
        @param columns: names of L{TYPES}, in order.
        @param broker: the broker's name, which no record holds.
        @param decompress: whether bodies are made large again.
        """
        self.schema = pa.schema([(name, TYPES[name]) for name in columns])
        self.undecodable = 0
        self._columns = columns
        self._broker = broker
        self._decompress = decompress and bool(
            {"body", "value", "sysFlag"} & set(columns)
        )

    def batches(self, layout: Layout) -> Iterator[Any]:
        """The records as batches, one unless compressed bodies become very large.

        @raise ConfigurationError: one holds several messages, as those of topics with
            batch queues do: the ranges of offsets that splits have would give some of
            them twice.
        """
        if layout.size and (layout.front["sys_flag"] & INNER_BATCH).any():
            raise ConfigurationError(
                "a topic with batch queues (queue.type=BatchCQ) cannot be read: its "
                "records hold several messages each"
            )
        for part, plain in self._parts(layout):
            rows = Rows(part, plain, self._broker)
            arrays = [MAKERS[name](rows) for name in self._columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _parts(self, layout: Layout) -> Iterator[tuple[Layout, dict[int, bytes]]]:
        if layout.size == 0:
            return
        flags = layout.front["sys_flag"]
        if not self._decompress or not (flags & COMPRESSED).any():
            yield layout, {}
            return
        start, size = 0, 0
        plain: dict[int, bytes] = {}
        for row in np.flatnonzero(flags & COMPRESSED).tolist():
            begin, end = layout.cuts[CUTS * row : CUTS * row + 2].tolist()
            kind = (int(flags[row]) & KIND) >> KIND_SHIFT
            try:
                body = compression.decompress(layout.data[begin:end].tobytes(), kind)
            except Malformed:
                self.undecodable += 1
                continue
            if plain and size + len(body) > MAX_PLAIN_BATCH:
                yield layout.rows(start, row), plain
                start, size, plain = row, 0, {}
            plain[row - start] = body
            size += len(body)
        yield layout.rows(start, layout.size), plain


@final
class Rows:
    """The records of one batch, and what more than one column needs of them.

    @ivar layout: where everything stands.
    @ivar plain: of the rows whose bodies were decompressed, the bodies.
    @ivar broker: the broker's name.
    """

    def __init__(self, layout: Layout, plain: dict[int, bytes], broker: str) -> None:
        self.layout = layout
        self.plain = plain
        self.broker = broker
        self._properties: PropertyColumns | None = None

    @property
    def properties(self) -> PropertyColumns:
        """The properties, taken apart once."""
        if self._properties is None:
            strings = cut_and_take(self.layout.data, self.layout.cuts, 4, CUTS)
            self._properties = read_properties(strings)
        return self._properties

    def piece(self, number: int) -> Any:
        """Piece 0 (body), 2 (topic) or 4 (properties) of each record."""
        return cut_and_take(self.layout.data, self.layout.cuts, number, CUTS)


def topics(rows: Rows) -> Any:
    """The topic of each."""
    return texts(rows.piece(2))


def texts(raw: Any) -> Any:
    """Bytes as strings; what is not UTF-8 is replaced, as in Java."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        words = [each.decode("utf-8", "replace") for each in raw.to_pylist()]
        return pa.array(words, pa.string())


def bodies(rows: Rows) -> Any:
    """The body of each, decompressed where that was asked for and possible."""
    stored = rows.piece(0)
    if not rows.plain:
        return stored
    places = np.array(list(rows.plain), np.int64)
    others = np.setdiff1d(np.arange(rows.layout.size), places, assume_unique=True)
    plain = pa.array(list(rows.plain.values()), pa.binary())
    parts = [(others, stored.take(pa.array(others))), (places, plain)]
    return joined_rows(rows.layout.size, parts)


def system_flags(rows: Rows) -> Any:
    """The system flag of each; decompressed bodies are no longer compressed."""
    flags = rows.layout.front["sys_flag"].astype(np.int32)
    if rows.plain:
        flags[list(rows.plain)] &= ~COMPRESSED
    return pa.array(flags)


def keys(rows: Rows) -> Any:
    """The keys of each, null if there is no such property."""
    joined = rows.properties.single[properties.KEYS]
    if pc.any(pc.match_substring_regex(joined, "^ | $|  ")).as_py():
        words = [
            None if text is None else [word for word in text.split(" ") if word]
            for text in joined.to_pylist()
        ]
        return pa.array(words, pa.list_(pa.string()))
    return pc.split_pattern(joined, " ").cast(pa.list_(pa.string()))


def message_ids(rows: Rows) -> Any:
    """The id that users see of each: the unique key, without one the offset id."""
    unique = rows.properties.single[properties.UNIQUE_KEY]
    if unique.null_count == 0:
        return unique
    return pc.coalesce(unique, offset_ids(rows.layout))


def offset_ids(layout: Layout) -> Any:
    """The offset id of each: store host and physical offset in hex."""
    positions = layout.front["position"]
    if layout.store_v6.any():
        found = [
            ids.offset_id(host, position)
            for host, position in zip(
                raw_hosts(layout.data, layout.store_host, layout.store_v6),
                positions.tolist(),
                strict=True,
            )
        ]
        return pa.array(found, pa.string())
    host = window(layout.data, layout.store_host, hosts.V4_SIZE)
    position = np.ascontiguousarray(positions, ">i8").view(np.uint8).reshape(-1, 8)
    text = np.concatenate([host, position], axis=1).tobytes().hex().upper()
    offsets = np.arange(layout.size + 1, dtype=np.int32) * 32
    return pa.Array.from_buffers(
        pa.string(),
        layout.size,
        [None, pa.py_buffer(offsets), pa.py_buffer(text.encode("ascii"))],
    )


def raw_hosts(data: Bytes, places: Ints, wide: Any) -> list[bytes]:
    """The bytes of the host at each place; 20 of them where C{wide}, else 8."""
    sizes = np.where(wide, hosts.V6_SIZE, hosts.V4_SIZE)
    return [
        data[place : place + size].tobytes()
        for place, size in zip(places.tolist(), sizes.tolist(), strict=True)
    ]


def host_texts(data: Bytes, places: Ints, wide: Any) -> Any:
    """Address and port of each; there are few different ones."""
    if wide.any():
        found = raw_hosts(data, places, wide)
        known = {host: hosts.text(host) for host in set(found)}
        return pa.array([known[host] for host in found], pa.string())
    words = window(data, places, hosts.V4_SIZE).view(np.uint64)[:, 0]
    different, which = np.unique(words, return_inverse=True)
    names = [hosts.text(word.tobytes()) for word in different]
    return pa.array(names, pa.string()).take(pa.array(which))


def times(ms: Any) -> Any:
    """Milliseconds as time stamps."""
    beyond = (ms > MAX_MS) | (ms < LEAST_MS)
    micros = np.where(beyond, 0, ms) * 1000
    return pa.array(micros, mask=beyond).cast(pa.int64()).cast(TIMESTAMP)


def headers(rows: Rows) -> Any:
    """The properties in the form of Kafka's headers."""
    maps = rows.properties.maps
    pairs = pa.StructArray.from_arrays(
        [maps.keys, maps.items.cast(pa.binary())], ["key", "value"]
    )
    kind = TYPES["headers"]
    return pa.ListArray.from_arrays(maps.offsets, pairs).cast(kind)


def fixed(name: str, kind: type[np.signedinteger[Any]]) -> Callable[[Rows], Any]:
    """How to make a column of a fixed field of the record's front."""
    return lambda rows: pa.array(rows.layout.front[name].astype(kind))


def later(name: str, kind: type[np.signedinteger[Any]]) -> Callable[[Rows], Any]:
    """The same for a field behind the hosts."""
    return lambda rows: pa.array(rows.layout.back[name].astype(kind))


#: How each column is made.
MAKERS: Final[dict[str, Callable[[Rows], Any]]] = {
    "topic": topics,
    "brokerName": lambda rows: pa.repeat(rows.broker, rows.layout.size),
    "queueId": fixed("queue_id", np.int32),
    "queueOffset": fixed("queue_offset", np.int64),
    "storeTimestamp": lambda rows: times(rows.layout.store_ms),
    "bornTimestamp": lambda rows: times(rows.layout.front["born_ms"].astype(np.int64)),
    "tags": lambda rows: rows.properties.single[properties.TAGS],
    "keys": keys,
    "msgId": message_ids,
    "properties": lambda rows: rows.properties.maps,
    "body": bodies,
    "bornHost": lambda rows: host_texts(
        rows.layout.data, rows.layout.born_host, rows.layout.born_v6
    ),
    "storeHost": lambda rows: host_texts(
        rows.layout.data, rows.layout.store_host, rows.layout.store_v6
    ),
    "flag": fixed("flag", np.int32),
    "sysFlag": system_flags,
    "reconsumeTimes": later("reconsume_times", np.int32),
    "preparedTransactionOffset": later("prepared_offset", np.int64),
    "commitLogOffset": fixed("position", np.int64),
    "bodyCRC": fixed("body_crc", np.int32),
    "key": lambda rows: rows.properties.single[properties.KEYS].cast(pa.binary()),
    "value": bodies,
    "partition": fixed("queue_id", np.int32),
    "offset": fixed("queue_offset", np.int64),
    "timestamp": lambda rows: times(rows.layout.store_ms),
    "headers": headers,
}
