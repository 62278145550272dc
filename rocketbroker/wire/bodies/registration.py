# -*- test-case-name: tests.wire.bodies.test_registration -*-
"""The registration of a broker: the body of 103, plain and compressed.

The compressed form is one zlib stream (level 9) over::

    int32 length, JSON of the data version
    int32 count of topics, each: int32 length, a line of words (TopicConfig.to_line)
    int32 length, JSON array of filter servers
    int32 count of mappings, each: int32 length, JSON      (from version 413 on)

Bodies of a hundred thousand topics take a second to read, so that a server reads them
in steps: L{reading} and L{inflating}.

Shapes: C{docs/facts/namesrv.md} 11.3 and 11.4.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, Final, Self, final

import attrs
import msgspec

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
    WrittenTopic,
)
from rocketbroker.wire.fields import Fields, object_of, read_texts
from rocketbroker.wire.json_reader import loads_in_steps
from rocketbroker.wire.json_writer import dumps, joined
from rocketbroker.wire.steps import Steps, finished

#: Since this version a compressed body ends with the mappings of static topics.
FIRST_WITH_MAPPINGS: Final = 413

#: The largest body after decompression: four times the longest frame, room for 600,000
#: topics. zlib can make a thousand bytes of one, and the sender is not known yet.
MAX_PLAIN_BYTES: Final = 64 * 1024 * 1024

#: The most topics of one broker: so many fit with names of usual length into the
#: largest body. With shorter ones memory would be taken for millions.
MAX_TOPICS: Final = 600_000

#: So much of a body is read in a step, in whatever form it is: 15 ms at most. Shorter
#: ones are read at once.
STEP_BYTES: Final = 8 * 1024

#: How far ahead the end of a topic, a name or a table is looked for in one step.
NEAR_BYTES: Final = 32 * 1024

#: The longest part of a longer body: a topic, the mapping of a static one, or all that
#: stands around the tables of these. The mapping of 16,384 queues, the most that a
#: topic has, takes 200 KiB; a topic in strict JSON of this length is read in 15 ms.
MAX_PART_BYTES: Final = 1024 * 1024

#: How many values a part may have, about: twice as many as a mapping of 16,384 queues.
MAX_PART_VALUES: Final = 32 * 1024

#: The same for all that stands around the tables. It is dealt with at once, and a topic
#: of two values that is among it takes ten microseconds.
MAX_REST_VALUES: Final = 4096

#: So many members of a table are read in a step.
STEP_MEMBERS: Final = 64

_INT32: Final = Struct(">i")

# Possessive (*+), so that there is one way through a text. Of what stands in a table
# only brackets count: a topic has a table of attributes, a mapping one of queues, and
# what is not known yet may nest once more.
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_FLAT: Final = rb"\{(?:[^{}\"]++|%b)*+\}" % _STRING
_NESTED: Final = rb"\{(?:[^{}\"]++|%b|%b)*+\}" % (_STRING, _FLAT)
_VALUE: Final = rb"\{(?:[^{}\"]++|%b|%b)*+\}" % (_STRING, _NESTED)
_MEMBER: Final = rb"\s*+%b\s*+:\s*+%b\s*+" % (_STRING, _VALUE)
_MEMBERS: Final = re.compile(
    rb"%b(?:,%b){0,%d}+" % (_MEMBER, _MEMBER, STEP_MEMBERS - 1), re.S
)
#: Where a topic that ends with a number may end. If it does not, L{_MEMBERS} knows.
_LIKELY_END: Final = re.compile(rb'[0-9]\}(?=,"|\})')
_SPACE: Final = re.compile(rb"\s*+")
#: What stands before the value of a member, and what has no bracket in it, outside of
#: strings and inside.
_KEY: Final = re.compile(rb"\s*+%b\s*+:\s*+(?=\{)" % _STRING, re.S)
_OUTSIDE: Final = re.compile(rb"[^{}\"]*+")
_INSIDE: Final = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.S)

#: Where a table begins. The name's first quote is no escaped one.
_TABLE: Final = re.compile(
    rb'(?<!\\)"(topicConfigTable|topicQueueMappingInfoMap)"\s*+:\s*+\{'
)
#: What refers to another value, other than a topic's attributes, of which nothing is
#: used.
_REFERENCE: Final = re.compile(rb'(?<!"attributes":\{)"\$ref"')


#: Reads the topics of a table that are written exactly as brokers write them, in a
#: tenth of the time that the general way takes.
_WRITTEN_TABLE: Final = msgspec.json.Decoder(dict[str, WrittenTopic])


@attrs.frozen(kw_only=True)
class RegisterBrokerBody:
    """Topics and filter servers of one broker."""

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper = attrs.field(
        factory=TopicConfigAndMappingSerializeWrapper
    )
    filter_server_list: list[str] = attrs.field(factory=list)

    @classmethod
    def of(
        cls,
        configs: Iterable[TopicConfig],
        version: DataVersion,
        infos: Mapping[str, TopicQueueMappingInfo] | None = None,
    ) -> Self:
        """These topics and no filter servers."""
        wrapper = TopicConfigAndMappingSerializeWrapper.of(configs, version, infos)
        return cls(topic_config_serialize_wrapper=wrapper)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the plain form.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a registration")
        return cls(
            topic_config_serialize_wrapper=(
                TopicConfigAndMappingSerializeWrapper.from_json(
                    fields.members("topicConfigSerializeWrapper")
                )
            ),
            filter_server_list=fields.strings("filterServerList"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "filterServerList": self.filter_server_list,
            "topicConfigSerializeWrapper": self.topic_config_serialize_wrapper,
        }

    @classmethod
    def decode(cls, body: bytes, compressed: bool, version: int) -> RegisterBrokerBody:
        """Read a body.

        @param compressed: as the header says.
        @param version: the sender's, of the command.
        @raise RemoteProtocolError: it is no such thing.
        """
        if not compressed:
            return object_of(body, cls.from_json)
        return finished(inflating(body, version))

    def encode(self, compressed: bool = False) -> bytes:
        """The body; the header must say whether it is compressed."""
        if not compressed:
            return dumps(self)
        wrapper = self.topic_config_serialize_wrapper
        configs = wrapper.topic_config_table.values()
        infos = wrapper.topic_queue_mapping_info_map.values()
        pieces = [
            *_packed(dumps(wrapper.data_version)),
            _INT32.pack(len(configs)),
        ]
        for config in configs:
            pieces += _packed(config.to_line().encode())
        pieces += _packed(dumps(self.filter_server_list))
        pieces.append(_INT32.pack(len(infos)))
        for info in infos:
            pieces += _packed(dumps(info))
        return zlib.compress(b"".join(pieces), 9)


def plain_body(
    configs: Sequence[TopicConfig],
    version: DataVersion,
    infos: Mapping[str, TopicQueueMappingInfo] | None = None,
) -> bytes:
    """The same as C{RegisterBrokerBody.of(...).encode()}, from the texts
    that topics keep: a quarter of its time, which for 10,000 of them is 2 ms.

    @param configs: sorted by name.
    @param infos: of those among them that are static.
    """
    return dumps(
        {
            "filterServerList": [],
            "topicConfigSerializeWrapper": {
                "dataVersion": version,
                "mappingDataVersion": DataVersion(),
                "topicConfigTable": joined([config.member for config in configs]),
                "topicQueueMappingDetailMap": {},
                "topicQueueMappingInfoMap": {
                    name: info.written() for name, info in (infos or {}).items()
                },
            },
        }
    )


def _packed(data: bytes) -> tuple[bytes, bytes]:
    return _INT32.pack(len(data)), data


# Reading in steps.


@final
@attrs.frozen(kw_only=True)
class Contents:
    """What is read of a registration.

    @ivar topics: by name.
    @ivar mappings: the shares of static topics, by topic.
    @ivar filter_servers: None leaves the known ones unchanged.
    """

    data_version: DataVersion
    topics: Mapping[str, TopicConfig | WrittenTopic]
    mappings: Mapping[str, TopicQueueMappingInfo] = attrs.Factory(dict)
    filter_servers: Sequence[str] | None = None

    @classmethod
    def of(cls, body: RegisterBrokerBody) -> Self:
        """All of a body."""
        wrapper = body.topic_config_serialize_wrapper
        return cls(
            data_version=wrapper.data_version,
            topics=wrapper.topic_config_table,
            mappings=wrapper.topic_queue_mapping_info_map,
            filter_servers=body.filter_server_list,
        )


def reading(body: bytes, only_topics: bool = False) -> Steps[Contents]:
    """Read a plain body.

    Its tables are cut into members, of which some are read in each step.

    @param only_topics: it is that of a broker before version 37.
    @raise RemoteProtocolError: it is no such thing, or a part of it is too long.
    """
    rest, tables = body, list[dict[str, Any]]()
    if len(body) > STEP_BYTES:
        rest, tables = yield from _without_tables(body)
    value = yield from loads_in_steps(rest, MAX_REST_VALUES)
    wrapper = value
    if not only_topics and isinstance(value, dict):
        wrapper = value.get("topicConfigSerializeWrapper")
    cut: dict[str, dict[str, Any]] = {}
    if isinstance(wrapper, dict):
        for name in ("topicConfigTable", "topicQueueMappingInfoMap"):
            place = wrapper.get(name)
            if type(place) is int and 0 <= place < len(tables):
                cut[name] = tables[place]
                wrapper[name] = None
    if only_topics:
        old = TopicConfigSerializeWrapper.from_json(value)
        return Contents(
            data_version=old.data_version,
            topics=cut.get("topicConfigTable", old.topic_config_table),
        )
    contents = Contents.of(RegisterBrokerBody.from_json(value))
    null = isinstance(value, dict) and value.get("filterServerList", ()) is None
    return attrs.evolve(
        contents,
        topics=cut.get("topicConfigTable", contents.topics),
        mappings=cut.get("topicQueueMappingInfoMap", contents.mappings),
        filter_servers=None if null else contents.filter_servers,
    )


def _without_tables(body: bytes) -> Steps[tuple[bytes, list[dict[str, Any]]]]:
    """Read the tables of a body.

    @return: the body with a number in the place of each table, and the tables.
    """
    tables: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    around = at = 0
    while found := (yield from _next_table(body, at)):
        pieces += body[at : found.end() - 1], b"%d" % len(tables)
        around += found.end() - at
        if around > MAX_PART_BYTES:
            break
        table: dict[str, Any] = {}
        read = _read_topics if found[1] == b"topicConfigTable" else _read_mappings
        at = _skip_space(body, found.end())
        is_over = body[at : at + 1] == b"}"
        while not is_over:
            at = yield from read(body, at, table)
            if len(table) > MAX_TOPICS:
                raise _too_many(len(table))
            is_over = body[at : at + 1] == b"}"
            if not is_over and body[at : at + 1] != b",":
                raise RemoteProtocolError(f"a registration has no comma at {at}")
            if not is_over:
                at += 1
            yield
        at += 1
        tables.append(table)
    around += len(body) - at
    if around > MAX_PART_BYTES:
        raise RemoteProtocolError(
            f"a registration of {len(body)} bytes has {around} beside its topics, the "
            f"most is {MAX_PART_BYTES}"
        )
    return b"".join([*pieces, body[at:]]), tables


def _next_table(body: bytes, at: int) -> Steps[re.Match[bytes] | None]:
    """Where the next table begins, if what stands before it is not too long."""
    end = min(len(body), at + MAX_PART_BYTES)
    while at < end:
        found = _TABLE.search(body, at, at + NEAR_BYTES)
        if found is not None:
            return found
        # So much overlaps, because a beginning may lie across the place.
        at += NEAR_BYTES - STEP_BYTES
        yield
    return None


def _skip_space(body: bytes, at: int) -> int:
    found = _SPACE.match(body, at, at + NEAR_BYTES)
    assert found is not None, "matches anything"
    return found.end()


def _read_topics(body: bytes, at: int, table: dict[str, Any]) -> Steps[int]:
    """Read some topics into a table; the place behind them."""
    near = at + STEP_BYTES
    likely = _LIKELY_END.search(body, near, near + NEAR_BYTES)
    if likely is not None:
        try:
            table.update(_WRITTEN_TABLE.decode(b"{%b}" % body[at : likely.end()]))
            return likely.end()
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    text, end = yield from _members(body, at)
    try:
        table.update(_WRITTEN_TABLE.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield
        members = yield from _leniently(text)
        table.update(members.table("table", TopicConfig.from_json))
    return end


def _read_mappings(body: bytes, at: int, table: dict[str, Any]) -> Steps[int]:
    """The same with mappings."""
    text, end = yield from _members(body, at)
    members = (yield from _leniently(text)).members("table")
    for name, value in members.items():
        if value is not None:
            table[str(name)] = yield from TopicQueueMappingInfo.reading(value)
    return end


def _members(body: bytes, at: int) -> Steps[tuple[bytes, int]]:
    """Some members of a table, as the text of one; the place behind them."""
    found = _MEMBERS.match(body, at, at + STEP_BYTES)
    end = (yield from _end_of_member(body, at)) if found is None else found.end()
    return b"{%b}" % body[at:end], end


def _end_of_member(body: bytes, at: int) -> Steps[int]:
    """The place behind a member that may be long: the bracket that closes it.

    @raise RemoteProtocolError: it is too long, or no member.
    """
    key = _KEY.match(body, at, at + NEAR_BYTES)
    place = stop = len(body) if key is None else key.end()
    most = min(len(body), at + MAX_PART_BYTES)
    depth, is_text = 0, False
    while place < most:
        if place >= stop - 1:
            # An escape may lie across the end of a step.
            stop = place + STEP_BYTES
            yield
        found = (_INSIDE if is_text else _OUTSIDE).match(body, place, min(stop, most))
        assert found is not None, "matches anything"
        place = found.end()
        if place == stop or place >= most:
            continue
        char = body[place : place + 1]
        if char == b"\\":
            if stop >= most:
                break
            continue
        place += 1
        if char == b'"':
            is_text = not is_text
        else:
            depth += 1 if char == b"{" else -1
            if not depth:
                return _skip_space(body, place)
    raise RemoteProtocolError(
        f"a registration of {len(body)} bytes has a part at {at} that is no topic, "
        f"or longer than {MAX_PART_BYTES} bytes"
    )


def _leniently(text: bytes) -> Steps[Fields]:
    """A few members in any form that RocketMQ reads, as C{table}."""
    if b'"$ref"' in text and _REFERENCE.search(text):
        raise RemoteProtocolError("a registration refers to one of its parts")
    value = yield from loads_in_steps(text, MAX_PART_VALUES)
    return Fields({"table": value}, "a registration")


def inflating(body: bytes, version: int) -> Steps[RegisterBrokerBody]:
    """Read a compressed body.

    @param version: the sender's, of the command.
    @raise RemoteProtocolError: it is no such thing, or a part of it is too long.
    """
    items = _Items(body)
    data_version = DataVersion.from_json((yield from items.value()))
    configs = {}
    for _ in range(items.count()):
        line = str((yield from items.item()), "utf-8", "replace")
        config = yield from TopicConfig.reading_line(line, MAX_PART_VALUES)
        configs[config.topic_name] = config
        if items.is_step():
            yield
    filter_servers = read_texts((yield from items.value()))
    infos = {}
    if version >= FIRST_WITH_MAPPINGS:
        for _ in range(items.count()):
            value = yield from items.value()
            info = yield from TopicQueueMappingInfo.reading(value)
            infos[info.topic or ""] = info
            if items.is_step():
                yield
    wrapper = TopicConfigAndMappingSerializeWrapper(
        topic_config_table=configs,
        data_version=data_version,
        topic_queue_mapping_info_map=infos,
    )
    return RegisterBrokerBody(
        topic_config_serialize_wrapper=wrapper, filter_server_list=filter_servers
    )


def _too_many(count: int) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"a registration with {count} topics, the most is {MAX_TOPICS}"
    )


def _too_early() -> RemoteProtocolError:
    return RemoteProtocolError("a registration that ends too early")


@final
class _Items:
    """Counted and measured pieces of a zlib stream, in order.

    The stream is inflated as it is read, so that of what nobody asks for nothing is in
    memory.
    """

    __slots__ = ("_at", "_body", "_fed", "_plain", "_step", "_stream", "_total")

    def __init__(self, body: bytes) -> None:
        self._stream = zlib.decompressobj()
        self._body = body
        self._fed = self._at = self._total = self._step = 0
        self._plain = b""

    def count(self) -> int:
        """How many topics follow.

        @raise RemoteProtocolError: that is no number of topics.
        """
        number = self._number()
        if number > MAX_TOPICS:
            raise _too_many(number)
        return number

    def value(self) -> Steps[object]:
        """The value of an item that is JSON."""
        return (yield from loads_in_steps((yield from self.item()), MAX_PART_VALUES))

    def item(self) -> Steps[bytes]:
        """A length and so many bytes."""
        size = self._number()
        if size > MAX_PART_BYTES:
            raise RemoteProtocolError(
                f"a registration has a part of {size} bytes, the most is "
                f"{MAX_PART_BYTES}"
            )
        pieces: list[bytes] = []
        while (there := len(self._plain) - self._at) < size:
            pieces.append(self._take(there))
            size -= there
            self._inflate()
            if len(pieces) > 1:
                yield
        return b"".join([*pieces, self._take(size)]) if pieces else self._take(size)

    def is_step(self) -> bool:
        """Whether so much was taken since the last step that this is the end of one."""
        taken = self._total - len(self._plain) + self._at
        if taken - self._step < STEP_BYTES:
            return False
        self._step = taken
        return True

    def _number(self) -> int:
        number: int = _INT32.unpack(self._take(4))[0]
        if number < 0:
            raise RemoteProtocolError(f"a registration with {number} of something")
        return number

    def _take(self, size: int) -> bytes:
        """The next bytes."""
        while len(self._plain) - self._at < size:
            self._inflate()
        start = self._at
        self._at = start + size
        return self._plain[start : self._at]

    def _inflate(self) -> None:
        """Get some more bytes, L{STEP_BYTES} at most, from as many of the stream."""
        stream = self._stream
        data = stream.unconsumed_tail
        if not data and not stream.eof:
            data = self._body[self._fed : self._fed + STEP_BYTES]
            self._fed += len(data)
        try:
            more = b"" if stream.eof else stream.decompress(data, STEP_BYTES)
        except zlib.error as e:
            raise RemoteProtocolError(f"a registration that is not zlib: {e}") from e
        if not more and (stream.eof or not data):
            raise _too_early()
        if not more and len(data) == STEP_BYTES:
            # No compressor makes that of anything.
            raise RemoteProtocolError(
                f"a registration of which {STEP_BYTES} bytes mean nothing"
            )
        self._plain = self._plain[self._at :] + more
        self._at = 0
        self._total += len(more)
        if self._total > MAX_PLAIN_BYTES:
            raise RemoteProtocolError(
                f"a registration of more than {MAX_PLAIN_BYTES} bytes"
            )
