# -*- test-case-name: tests.arrow.test_columns -*-
"""The columns: of each its name, its types, and how it is made of stored records.

Names and types: C{docs/facts/spark.md 6}. The two sets of columns are that of
RocketMQ's own terms and one in the terms of Kafka's data source, for queries that were
written for it. There, C{partition} is the queue's number, so it is unique only within
one broker.

What every row has goes through arrays; what few rows have (IPv6 hosts, decompressed
bodies, odd properties) goes through the codecs of C{rocketbroker.records} one by one
and is put back in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketbroker.arrow.binary_arrays import cut_and_take, joined_rows
from rocketbroker.arrow.layout import CUTS, Bytes, Ints, Layout, window
from rocketbroker.arrow.properties import MAP, PropertyColumns, read_properties
from rocketbroker.errors import ConfigurationError
from rocketbroker.records import hosts, ids, properties
from rocketbroker.sources.options import ReadOptions

COMPRESSED: Final = 0x1

#: The years 1 to 9999: a time outside, which any producer can claim, is null, because
#: neither Spark's nor Python's times can express it.
LEAST_MS: Final = -62_135_596_800_000
MAX_MS: Final = 253_402_300_799_999

TIMESTAMP: Final[Any] = pa.timestamp("us", tz="UTC")

HEADERS: Final[Any] = pa.list_(
    pa.struct([("key", pa.string()), ("value", pa.binary())])
)


@final
class BatchRecords:
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
        if number == 0 and self.layout.bodies is not None:
            return self.layout.bodies
        return cut_and_take(self.layout.data, self.layout.cuts, number, CUTS)


def topics(rows: BatchRecords) -> Any:
    """The topic of each."""
    return texts(rows.piece(2))


def texts(raw: Any) -> Any:
    """Bytes as strings; what is not UTF-8 is replaced, as in Java."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        words = [each.decode("utf-8", "replace") for each in raw.to_pylist()]
        return pa.array(words, pa.string())


def bodies(rows: BatchRecords) -> Any:
    """The body of each, decompressed where that was asked for and possible."""
    stored = rows.piece(0)
    if not rows.plain:
        return stored
    places = np.array(list(rows.plain), np.int64)
    others = np.setdiff1d(np.arange(rows.layout.size), places, assume_unique=True)
    plain = pa.array(list(rows.plain.values()), pa.binary())
    parts = [(others, stored.take(pa.array(others))), (places, plain)]
    return joined_rows(rows.layout.size, parts)


def system_flags(rows: BatchRecords) -> Any:
    """The system flag of each; decompressed bodies are no longer compressed."""
    flags = rows.layout.front["sys_flag"].astype(np.int32)
    if rows.plain:
        flags[list(rows.plain)] &= ~COMPRESSED
    return pa.array(flags)


def keys(rows: BatchRecords) -> Any:
    """The keys of each, null if there is no such property."""
    joined = rows.properties.single[properties.KEYS]
    if pc.any(pc.match_substring_regex(joined, "^ | $|  ")).as_py():
        words = [
            None if text is None else [word for word in text.split(" ") if word]
            for text in joined.to_pylist()
        ]
        return pa.array(words, pa.list_(pa.string()))
    return pc.split_pattern(joined, " ").cast(pa.list_(pa.string()))


def message_ids(rows: BatchRecords) -> Any:
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


def born_hosts(rows: BatchRecords) -> Any:
    """The address and port of the client that sent each."""
    layout = rows.layout
    return host_texts(layout.data, layout.born_host, layout.born_v6)


def store_hosts(rows: BatchRecords) -> Any:
    """The address and port of the broker that stored each."""
    layout = rows.layout
    return host_texts(layout.data, layout.store_host, layout.store_v6)


def times(ms: Any) -> Any:
    """Milliseconds as time stamps."""
    beyond = (ms > MAX_MS) | (ms < LEAST_MS)
    micros = np.where(beyond, 0, ms) * 1000
    return pa.array(micros, mask=beyond).cast(pa.int64()).cast(TIMESTAMP)


def headers(rows: BatchRecords) -> Any:
    """The properties in the form of Kafka's headers."""
    maps = rows.properties.maps
    pairs = pa.StructArray.from_arrays(
        [maps.keys, maps.items.cast(pa.binary())], ["key", "value"]
    )
    return pa.ListArray.from_arrays(maps.offsets, pairs).cast(HEADERS)


def fixed(
    name: str, kind: type[np.signedinteger[Any]]
) -> Callable[[BatchRecords], Any]:
    """How to make a column of a fixed field of the record's front."""
    return lambda rows: pa.array(rows.layout.front[name].astype(kind))


def later(
    name: str, kind: type[np.signedinteger[Any]]
) -> Callable[[BatchRecords], Any]:
    """The same for a field behind the hosts."""
    return lambda rows: pa.array(rows.layout.back[name].astype(kind))


class Column(NamedTuple):
    """A column.

    @ivar ddl: its type as Spark's SQL says it.
    @ivar arrow: its type in Arrow.
    @ivar make: its values for the records of one batch.
    """

    ddl: str
    arrow: Any
    make: Callable[[BatchRecords], Any]


#: Columns by their names, in the order of C{SELECT *}.
Columns: TypeAlias = Mapping[str, Column]

NATIVE: Final[Columns] = {
    "topic": Column("string", pa.string(), topics),
    "brokerName": Column(
        "string", pa.string(), lambda rows: pa.repeat(rows.broker, rows.layout.size)
    ),
    "queueId": Column("int", pa.int32(), fixed("queue_id", np.int32)),
    "queueOffset": Column("bigint", pa.int64(), fixed("queue_offset", np.int64)),
    "storeTimestamp": Column(
        "timestamp", TIMESTAMP, lambda rows: times(rows.layout.store_ms)
    ),
    "bornTimestamp": Column(
        "timestamp",
        TIMESTAMP,
        lambda rows: times(rows.layout.front["born_ms"].astype(np.int64)),
    ),
    "tags": Column(
        "string", pa.string(), lambda rows: rows.properties.single[properties.TAGS]
    ),
    "keys": Column("array<string>", pa.list_(pa.string()), keys),
    "msgId": Column("string", pa.string(), message_ids),
    "properties": Column("map<string,string>", MAP, lambda rows: rows.properties.maps),
    "body": Column("binary", pa.binary(), bodies),
    "bornHost": Column("string", pa.string(), born_hosts),
    "storeHost": Column("string", pa.string(), store_hosts),
    "flag": Column("int", pa.int32(), fixed("flag", np.int32)),
    "sysFlag": Column("int", pa.int32(), system_flags),
    "reconsumeTimes": Column("int", pa.int32(), later("reconsume_times", np.int32)),
    "preparedTransactionOffset": Column(
        "bigint", pa.int64(), later("prepared_offset", np.int64)
    ),
    "commitLogOffset": Column("bigint", pa.int64(), fixed("position", np.int64)),
    "bodyCRC": Column("int", pa.int32(), fixed("body_crc", np.int32)),
}

#: The same for queries in Kafka's terms.
KAFKA: Final[Columns] = {
    "key": Column(
        "binary",
        pa.binary(),
        lambda rows: rows.properties.single[properties.KEYS].cast(pa.binary()),
    ),
    "value": NATIVE["body"],
    "topic": NATIVE["topic"],
    "partition": NATIVE["queueId"],
    "offset": NATIVE["queueOffset"],
    "timestamp": NATIVE["storeTimestamp"],
    "headers": Column("array<struct<key:string,value:binary>>", HEADERS, headers),
}

#: By the names that option C{columns} gives them.
SETS: Final[Mapping[str, Columns]] = {"native": NATIVE, "kafka": KAFKA}


def ddl(columns: Columns) -> str:
    """A schema as Spark's SQL writes it."""
    return ", ".join(f"{name} {column.ddl}" for name, column in columns.items())


def arrow_schema(columns: Columns) -> Any:
    """A schema as Arrow has it."""
    return pa.schema([(name, column.arrow) for name, column in columns.items()])


def chosen(names: Iterable[str], known: Columns) -> Columns:
    """The columns of these names, in their order.

    @raise ConfigurationError: there is none of such a name; the sentence names it.
    """
    found = {}
    for name in names:
        if name not in known:
            raise ConfigurationError(
                f"there is no column {name!r}; the columns are {', '.join(known)}"
            )
        found[name] = known[name]
    return found


def check_types(wanted: Iterable[tuple[str, str]], known: Columns) -> None:
    """See that columns asked for have the types that they have.

    @param wanted: name and type (as Spark's C{simpleString}) of each.
    @raise ConfigurationError: one has not; the sentence names it.
    """
    for name, kind in wanted:
        if kind != known[name].ddl:
            raise ConfigurationError(
                f"column {name!r} is of type {known[name].ddl}, not {kind}"
            )


def columns_of(options: ReadOptions) -> Columns:
    """The columns that a read gives.

    @raise ConfigurationError: one does not exist; the sentence names it.
    """
    known = SETS[options.columns]
    return chosen(options.select, known) if options.select else known
