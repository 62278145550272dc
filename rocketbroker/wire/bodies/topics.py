# -*- test-case-name: tests.wire.bodies.test_topics -*-
"""Topics and their versions as bodies and files, and two small tables.

Shapes: C{docs/facts/namesrv.md} 11; C{docs/facts/broker.md} 26.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, Literal, Self

import attrs
import msgspec

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.mappings import (
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)
from rocketbroker.wire.fields import Fields, Int32
from rocketbroker.wire.json_reader import MAX_VALUES, loads_in_steps
from rocketbroker.wire.json_writer import Written, dumps, joined, member_text
from rocketbroker.wire.steps import Steps, finished

#: Java's topic filter types, in the order of their ordinals.
TOPIC_FILTER_TYPES: Final = ("SINGLE_TAG", "MULTI_TAG")

_ATTRIBUTES: Final = msgspec.json.Decoder(dict[str, str])


@attrs.frozen(kw_only=True)
class DataVersion:
    """The version of a table that several servers have.

    @ivar state_version: of the store's state machine; 0 without one.
    @ivar timestamp: when it was made, in ms.
    @ivar counter: how many changes there were.
    """

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it; null is version zero.

        @raise RemoteProtocolError: it is no version.
        """
        if value is None:
            return cls()
        fields = Fields(value, "a data version")
        return cls(
            state_version=fields.integer("stateVersion", bits=64),
            timestamp=fields.integer("timestamp", bits=64),
            counter=fields.integer("counter", bits=64),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "counter": self.counter,
            "stateVersion": self.state_version,
            "timestamp": self.timestamp,
        }

    def is_newer_than(self, other: DataVersion) -> bool:
        """Whether a table of this version is newer, by RocketMQ's order."""
        return (self.state_version, self.counter, self.timestamp) > (
            other.state_version,
            other.counter,
            other.timestamp,
        )

    def next(self, now_ms: int, state_version: int = 0) -> Self:
        """The version after one more change."""
        return attrs.evolve(
            self,
            state_version=state_version,
            timestamp=now_ms,
            counter=self.counter + 1,
        )


class WrittenTopic(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, gc=False
):
    """A topic exactly as brokers write it: tables have fifty thousand of them."""

    topic_name: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: Literal["SINGLE_TAG", "MULTI_TAG"] = "SINGLE_TAG"
    topic_sys_flag: Int32 = 0
    order: bool = False
    attributes: dict[str, str] = {}


@attrs.frozen(kw_only=True)
class TopicConfig:
    """The settings of one topic; the defaults are Java's.

    @ivar perm: bits: 4 read, 2 write, 1 inherit, 8 priority.
    @ivar topic_sys_flag: bits: 1 unit, 2 unit subscription.
    """

    topic_name: str = ""
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no topic.
        """
        try:
            written = msgspec.convert(value, WrittenTopic)
        except msgspec.ValidationError:
            return cls._from_fields(Fields(value, "a topic"))
        return cls(**msgspec.structs.asdict(written))

    @classmethod
    def _from_fields(cls, fields: Fields) -> Self:
        """Read what stands there in another form, as leniently as RocketMQ does."""
        kind = fields.choice("topicFilterType", TOPIC_FILTER_TYPES)
        return cls(
            topic_name=fields.text("topicName") or "",
            read_queue_nums=fields.integer("readQueueNums", 16),
            write_queue_nums=fields.integer("writeQueueNums", 16),
            perm=fields.integer("perm", 6),
            topic_filter_type=kind or "SINGLE_TAG",
            topic_sys_flag=fields.integer("topicSysFlag"),
            order=fields.boolean("order"),
            attributes=fields.texts("attributes"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "attributes": self.attributes,
            "order": self.order,
            "perm": self.perm,
            "readQueueNums": self.read_queue_nums,
            "topicFilterType": self.topic_filter_type,
            "topicName": self.topic_name,
            "topicSysFlag": self.topic_sys_flag,
            "writeQueueNums": self.write_queue_nums,
        }

    @cached_property
    def member(self) -> str:
        """The topic as a member of the JSON object of all topics; made once."""
        return member_text(self.topic_name, self.to_json())

    @classmethod
    def from_line(cls, line: str) -> Self:
        """Read the line of a compressed registration.

        Its last word, the attributes, may be missing, and is nothing if it does not
        parse.

        @raise RemoteProtocolError: it has fewer than five words, or other ones.
        """
        return finished(cls.reading_line(line))

    @classmethod
    def reading_line(cls, line: str, max_values: int = MAX_VALUES) -> Steps[Self]:
        """The same in steps: attributes may be long.

        @param max_values: how many values these may have.
        """
        words = line.split(" ", 6)
        if len(words) < 5:
            raise RemoteProtocolError("a topic of fewer than five words")
        attributes: dict[str, str] = {}
        if len(words) > 5 and words[5] != "{}":
            attributes = yield from _line_attributes(words[5], max_values)
        return cls(
            topic_name=words[0],
            read_queue_nums=_line_number(words[1]),
            write_queue_nums=_line_number(words[2]),
            perm=_line_number(words[3]),
            topic_filter_type=_line_choice(words[4]),
            attributes=attributes,
        )

    def to_line(self) -> str:
        """The line of a compressed registration: no flag, no order."""
        attributes = dumps(self.attributes).decode() if self.attributes else "{}"
        return (
            f"{self.topic_name} {self.read_queue_nums} {self.write_queue_nums} "
            f"{self.perm} {self.topic_filter_type} {attributes}"
        )


def _line_number(word: str) -> int:
    if len(word) < 10 and word.isascii() and word.isdigit():
        return int(word)
    fields = Fields({"number": word}, "a topic's line")
    return fields.integer("number")


def _line_attributes(word: str, max_values: int) -> Steps[dict[str, str]]:
    """Strict JSON at once, whatever else RocketMQ reads in steps."""
    try:
        return _ATTRIBUTES.decode(word)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield
    try:
        text = word.encode("utf-8", "replace")
        member = {"attributes": (yield from loads_in_steps(text, max_values))}
        return Fields(member, "a topic").texts("attributes")
    except RemoteProtocolError:
        return {}


def _line_choice(word: str) -> str:
    if word in TOPIC_FILTER_TYPES:
        return word
    raise RemoteProtocolError(f"a topic filter type {word[:40]!r}")


def written_topics(table: Mapping[str, TopicConfig]) -> Written:
    """A table of topics by name, from the texts that each of them keeps."""
    names = sorted(table)
    configs = [table[name] for name in names]
    if [config.topic_name for config in configs] == names:
        return joined([config.member for config in configs])
    pairs = zip(names, configs, strict=True)
    return joined([member_text(name, config.to_json()) for name, config in pairs])


@attrs.frozen(kw_only=True)
class TopicConfigSerializeWrapper:
    """A table of topics with its version: C{topics.json}, old answers and bodies."""

    topic_config_table: dict[str, TopicConfig] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such table.
        """
        fields = Fields(value, "a table of topics")
        return cls(
            topic_config_table=fields.table("topicConfigTable", TopicConfig.from_json),
            data_version=DataVersion.from_json(fields.value("dataVersion")),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "dataVersion": self.data_version,
            "topicConfigTable": written_topics(self.topic_config_table),
        }


@attrs.frozen(kw_only=True)
class TopicConfigAndMappingSerializeWrapper:
    """The same with static topics: the answer of 21 and the body of 103.

    @ivar topic_queue_mapping_detail_map: as it was read.
    """

    topic_config_table: dict[str, TopicConfig] = attrs.field(factory=dict)
    data_version: DataVersion = attrs.field(factory=DataVersion)
    mapping_data_version: DataVersion = attrs.field(factory=DataVersion)
    topic_queue_mapping_info_map: dict[str, TopicQueueMappingInfo] = attrs.field(
        factory=dict
    )
    topic_queue_mapping_detail_map: dict[object, object] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it; brokers before 5.0 send only topics and their version.

        @raise RemoteProtocolError: it is no such table.
        """
        fields = Fields(value, "a table of topics")
        details = fields.kept("topicQueueMappingDetailMap")
        return cls(
            topic_config_table=fields.table("topicConfigTable", TopicConfig.from_json),
            data_version=DataVersion.from_json(fields.value("dataVersion")),
            mapping_data_version=DataVersion.from_json(
                fields.value("mappingDataVersion")
            ),
            topic_queue_mapping_info_map=fields.table(
                "topicQueueMappingInfoMap", TopicQueueMappingInfo.from_json
            ),
            topic_queue_mapping_detail_map=(
                details if isinstance(details, dict) else {}
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "dataVersion": self.data_version,
            "mappingDataVersion": self.mapping_data_version,
            "topicConfigTable": written_topics(self.topic_config_table),
            "topicQueueMappingDetailMap": self.topic_queue_mapping_detail_map,
            "topicQueueMappingInfoMap": self.topic_queue_mapping_info_map,
        }

    @classmethod
    def of(
        cls,
        configs: Iterable[TopicConfig],
        version: DataVersion,
        infos: Mapping[str, TopicQueueMappingInfo] | None = None,
    ) -> Self:
        """These topics.

        @param infos: of those among them that are static.
        """
        table = {config.topic_name: config for config in configs}
        return cls(
            topic_config_table=table,
            data_version=version,
            topic_queue_mapping_info_map=dict(infos or {}),
        )


@attrs.frozen(kw_only=True)
class TopicConfigAndQueueMapping:
    """A topic with its queues' mapping, if it is a static one: the answer of 351."""

    config: TopicConfig
    mapping: TopicQueueMappingDetail | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no topic.
        """
        detail = Fields(value, "a topic").value("mappingDetail")
        return cls(
            config=TopicConfig.from_json(value),
            mapping=(
                None if detail is None else TopicQueueMappingDetail.from_json(detail)
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The JSON form, to be written."""
        value = self.config.to_json()
        if self.mapping is not None:
            value["mappingDetail"] = self.mapping.written()
        return value


@attrs.frozen(kw_only=True)
class TopicList:
    """Names of topics.

    @ivar broker_addr: some broker's address, in the answer of 304.
    """

    topic_list: list[str] = attrs.field(factory=list)
    broker_addr: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such list.
        """
        fields = Fields(value, "a list of topics")
        return cls(
            topic_list=fields.strings("topicList"),
            broker_addr=fields.text("brokerAddr"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"brokerAddr": self.broker_addr, "topicList": self.topic_list}


@attrs.frozen(kw_only=True)
class KVTable:
    """Strings by name."""

    table: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such table.
        """
        return cls(table=Fields(value, "a table").texts("table"))

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"table": self.table}
