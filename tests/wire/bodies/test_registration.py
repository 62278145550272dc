"""Tests of registrations, plain and compressed."""

from __future__ import annotations

import re
import zlib
from struct import pack
from typing import TypeVar

import attrs
import msgspec
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.registration import (
    MAX_PART_BYTES,
    MAX_PART_VALUES,
    MAX_PLAIN_BYTES,
    MAX_TOPICS,
    NEAR_BYTES,
    STEP_BYTES,
    Contents,
    RegisterBrokerBody,
    inflating,
    plain_body,
    reading,
)
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    WrittenTopic,
)
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.steps import Steps, finished

T = TypeVar("T")

CONFIG = TopicConfig(topic_name="T1", read_queue_nums=8, write_queue_nums=8)
INFO = TopicQueueMappingInfo(
    topic="T1", total_queues=8, bname="b1", epoch=123, curr_id_map={0: 0}
)
BODY = RegisterBrokerBody(
    topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
        topic_config_table={"T1": CONFIG},
        data_version=DataVersion(timestamp=1700000000000),
        topic_queue_mapping_info_map={"T1": INFO},
    ),
    filter_server_list=[],
)
#: The sample of C{docs/facts/namesrv.md} 11.4, whose end is abbreviated there.
PLAIN = (
    bytes.fromhex(
        "0000002c7b22636f756e746572223a302c22737461746556657273696f6e223a302c"
        "2274696d657374616d70223a317d000000010000001654312038203820362053494e474c45"
        "5f544147207b7d000000025b5d"
    ),
    bytes.fromhex("000000010000006c7b22626e616d65223a226231222c"),
)


class RegistrationTests(SynchronousTestCase):
    """In and out."""

    def test_plain(self) -> None:
        """The plain form is the JSON of the sample."""
        data = BODY.encode()
        self.assertTrue(
            data.startswith(
                b'{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":'
                b'{"counter":0,"stateVersion":0,"timestamp":1700000000000},'
                b'"mappingDataVersion":'
            )
        )
        self.assertEqual(RegisterBrokerBody.decode(data, False, 479), BODY)

    def test_fromTexts(self) -> None:
        """From the texts that topics keep it is the same, byte for byte."""
        version = DataVersion(timestamp=1, counter=7)
        attributes = {"+queue.type": "BatchCQ"}
        configs = [CONFIG, TopicConfig(topic_name="T\u00fc", attributes=attributes)]
        for some in (configs, configs[:1], []):
            whole = RegisterBrokerBody.of(some, version).encode()
            self.assertEqual(plain_body(some, version), whole)

    def test_oldPlain(self) -> None:
        """Brokers before 5.0 send only topics and their version."""
        body = RegisterBrokerBody.decode(
            b'{"topicConfigSerializeWrapper":{"dataVersion":{"counter":3},'
            b'"topicConfigTable":{"T1":{"topicName":"T1"}}}}',
            False,
            409,
        )
        wrapper = body.topic_config_serialize_wrapper
        self.assertEqual(wrapper.data_version.counter, 3)
        self.assertEqual(
            wrapper.topic_config_table, {"T1": TopicConfig(topic_name="T1")}
        )

    def test_compressed(self) -> None:
        """The compressed form is read as it was written."""
        data = BODY.encode(compressed=True)
        self.assertEqual(data[:2], b"\x78\xda")
        self.assertEqual(RegisterBrokerBody.decode(data, True, 479), BODY)

    def test_compressedSample(self) -> None:
        """The compressed form is, before compression, the bytes of the sample."""
        wrapper = TopicConfigAndMappingSerializeWrapper(
            topic_config_table={"T1": CONFIG},
            data_version=DataVersion(timestamp=1),
            topic_queue_mapping_info_map={"T1": INFO},
        )
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper)
        plain = zlib.decompress(body.encode(compressed=True))
        self.assertEqual(plain[: len(PLAIN[0])], PLAIN[0])
        self.assertEqual(plain[len(PLAIN[0]) :][: len(PLAIN[1])], PLAIN[1])

    def test_oldCompressed(self) -> None:
        """The mappings at the end are read from brokers of 5.0 on only."""
        data = zlib.compress(PLAIN[0])
        body = RegisterBrokerBody.decode(data, True, 409)
        wrapper = body.topic_config_serialize_wrapper
        self.assertEqual(wrapper.topic_config_table, {"T1": CONFIG})
        with self.assertRaises(RemoteProtocolError):
            RegisterBrokerBody.decode(data, True, 413)

    def test_of(self) -> None:
        """A registration is made of topics and a version."""
        body = RegisterBrokerBody.of([CONFIG], DataVersion(counter=2))
        wrapper = body.topic_config_serialize_wrapper
        self.assertEqual(wrapper.topic_config_table, {"T1": CONFIG})
        self.assertEqual(wrapper.data_version, DataVersion(counter=2))

    def test_cut(self) -> None:
        """A compressed body that ends anywhere too early is refused."""
        plain = zlib.decompress(BODY.encode(compressed=True))
        for end in range(len(plain)):
            with self.assertRaises(RemoteProtocolError):
                RegisterBrokerBody.decode(zlib.compress(plain[:end]), True, 479)

    def test_negative(self) -> None:
        """A negative length or count is refused."""
        for at in (0, 48, 52):
            plain = bytearray(zlib.decompress(BODY.encode(compressed=True)))
            plain[at] = 0xFF
            with self.assertRaises(RemoteProtocolError):
                RegisterBrokerBody.decode(zlib.compress(bytes(plain)), True, 479)

    def test_noZlib(self) -> None:
        """What is not compressed although it should be is refused."""
        with self.assertRaises(RemoteProtocolError):
            RegisterBrokerBody.decode(b"{}", True, 479)


def steps_of(steps: Steps[T]) -> tuple[int, T]:
    """How many steps there are, and the result."""
    count = 0
    while True:
        count += 1
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value


def as_written(contents: Contents) -> Contents:
    """The same with all topics in the form that only says what is used."""
    topics = {}
    for name, topic in contents.topics.items():
        if isinstance(topic, WrittenTopic):
            topic = TopicConfig(**msgspec.structs.asdict(topic))
        topics[name] = attrs.evolve(topic, attributes={})
    return attrs.evolve(contents, topics=topics)


class LongTests(SynchronousTestCase):
    """Bodies that are read in steps."""

    def setUp(self) -> None:
        """A broker with static topics."""
        configs = [
            attrs.evolve(
                CONFIG,
                topic_name=f"T{number}}}}}",
                attributes={"+k": '8},"}}\\'} if number % 9 == 0 else {},
            )
            for number in range(1000)
        ]
        infos = {f"T{n}": attrs.evolve(INFO, topic=f"T{n}") for n in range(300)}
        body = RegisterBrokerBody.of(configs, DataVersion(counter=3), infos)
        self.body = attrs.evolve(body, filter_server_list=["f:1"])
        self.expected = as_written(Contents.of(self.body))

    def read(self, data: bytes, only_topics: bool = False) -> Contents:
        """What is read in steps of a limited size."""
        count, contents = steps_of(reading(data, only_topics))
        self.assertGreater(count, len(data) // (STEP_BYTES + NEAR_BYTES))
        return as_written(contents)

    def refusal(self, steps: Steps[object]) -> str:
        """Why a body is refused."""
        return str(self.assertRaises(RemoteProtocolError, finished, steps))

    def test_sameAsShortOnes(self) -> None:
        """They say what is in them, in any form in which their members are read."""
        data = self.body.encode()
        self.assertGreater(len(data), 10 * STEP_BYTES)
        self.assertEqual(self.read(data), self.expected)
        for old, new in (
            (rb'"perm":6', b'"perm":"6"'),
            (rb'"perm":6', b'"new":{"a":{}},"perm":6'),
            (rb'"perm":6', b' "perm" : 6 '),
            (rb'"order":false,', b""),
            (rb'"attributes":\{\}', b'"attributes":{"$ref":"$.x"}'),
            (rb'"topicConfigTable":\{', b'"topicConfigTable" : { '),
            (rb"\},\"T", b'} , "T'),
            (
                rb'"topicConfigTable":',
                b'"topicConfigTable":{"Z":{}},"topicConfigTable":',
            ),
        ):
            other = re.sub(old, lambda _, new=new: new, data)  # type: ignore[misc]
            self.assertNotEqual(other, data)
            self.assertEqual(self.read(other), self.expected, new)
        null = self.read(data.replace(b'["f:1"]', b"null"))
        self.assertEqual(null, attrs.evolve(self.expected, filter_servers=None))

    def test_onlyTopics(self) -> None:
        """Before version 37 a body is a table of topics."""
        data = dumps(self.body.topic_config_serialize_wrapper)
        contents = self.read(data, only_topics=True)
        self.assertEqual(contents.topics, self.expected.topics)
        self.assertEqual(contents.data_version, DataVersion(counter=3))

    def test_namesInStrings(self) -> None:
        """A table is one only in its place: not in a string, nor elsewhere."""
        for name in ('x"topicConfigTable":{', "x\\"):
            other = attrs.evolve(self.body, filter_server_list=[name])
            contents = self.read(other.encode())
            self.assertEqual(contents.topics, self.expected.topics)
            self.assertEqual(contents.filter_servers, [name])
        data = self.body.encode().replace(
            b'{"filterServerList"', b'{"a":{"topicConfigTable":{}},"filterServerList"'
        )
        self.assertEqual(self.read(data), self.expected)

    def test_cut(self) -> None:
        """What ends too early is refused."""
        data = self.body.encode()
        for end in range(STEP_BYTES + 1, len(data), 997):
            self.refusal(reading(data[:end]))

    def test_limits(self) -> None:
        """A long body has no long parts, nor many, and nothing refers to others."""
        long, many = b" " * MAX_PART_BYTES, b"1," * MAX_PART_VALUES
        data = self.body.encode()
        for other, reason in (
            (b"[" * 90 + b"1," * 600000 + b"1" + b"]" * 90, "beside its topics"),
            (data.replace(b'"perm":6', b'"perm":6' + long, 1), "no topic"),
            (data.replace(b'"T9}}":{', b'"T9}}":[],"T":{'), "no topic"),
            (data.replace(b'"T9}}":{', b'"T9}}":{"a":[%b1],' % many), "values"),
            (data.replace(b"[", b"[" + many), "values"),
            (data.replace(b"[", b"[" + long), "beside its topics"),
            (b'{"topicConfigTable":{},' * 50000, "beside its topics"),
            (re.sub(rb'"T9}}":[^}]*}[^}]*}', b'"T9":{"$ref":"$"}', data), "refers to"),
            (data.replace(b'"T9":{', b'"T9":{"$ref":"$",'), "refers to"),
        ):
            self.assertNotEqual(other, data)
            self.assertIn(reason, self.refusal(reading(other)))

    def test_compressed(self) -> None:
        """Compressed ones are read in steps, too."""
        data = self.body.encode(compressed=True)
        count, body = steps_of(inflating(data, 479))
        self.assertEqual(Contents.of(body), Contents.of(self.body))
        self.assertGreater(count, len(zlib.decompress(data)) // STEP_BYTES // 2)

    def test_longParts(self) -> None:
        """One topic or mapping may be long, in any dialect, and is read in steps."""
        ids = {number: number for number in range(16384)}
        info = attrs.evolve(INFO, topic="S", curr_id_map=ids)
        long = {f"k{n}": '\\"{' * 100 for n in range(900)} | {"l": "x" * (1 << 19)}
        configs = [CONFIG, attrs.evolve(CONFIG, topic_name="L", attributes=long)]
        whole = RegisterBrokerBody.of(configs, DataVersion(), {"S": info, "T1": INFO})
        expected = as_written(Contents.of(whole))
        plain = whole.encode()
        self.assertGreater(len(dumps(info)), 5 * NEAR_BYTES)
        quoted = re.sub(rb"([0-9]+):([0-9]+)", rb'"\1" : "\2"', plain)
        shorter = re.sub(b'"x+"', b"1", plain)
        nested = b'"n":[{"a":{"b":{"c":{}}}}],"perm":6'
        for data in (
            plain,
            quoted,
            shorter.replace(b'"k0":', b"'k0':"),
            shorter.replace(b'"perm":6', nested),
        ):
            count, contents = steps_of(reading(data))
            self.assertEqual(as_written(contents), expected)
            self.assertGreater(count, len(data) // STEP_BYTES)
        count, body = steps_of(inflating(whole.encode(compressed=True), 479))
        self.assertEqual(body, whole)
        self.assertGreater(count, len(plain) // STEP_BYTES // 2)

    def test_longRest(self) -> None:
        """What stands beside the topics may be long, and is read in steps."""
        data = self.body.encode()
        other = data.replace(b'"f:1"', b"'f:1'/*" + b"x" * 60000 + b"*/")
        other = other.replace(b"{", b'{"new":["' + b"y" * 500_000 + b'"],', 1)
        self.assertIn("more than", self.refusal(reading(other)))
        few = b",".join(b'"%b"' % (b"y" * 1000) for _ in range(500))
        other = data.replace(b"{", b'{"new":[' + few + b"],", 1)
        self.assertEqual(self.read(other), self.expected)

    def test_endOfLongParts(self) -> None:
        """A part ends at its bracket, wherever a step of reading ends."""
        for size in range(STEP_BYTES - 90, STEP_BYTES + 10):
            topic = attrs.evolve(CONFIG, attributes={"}": "x" * size + '\\"\\'})
            body = RegisterBrokerBody.of([topic], DataVersion())
            contents = finished(reading(body.encode()))
            self.assertEqual(as_written(contents), as_written(Contents.of(body)))
            self.assertIn(
                "no topic", self.refusal(reading(body.encode()[: size + 200]))
            )

    def test_bombs(self) -> None:
        """What would grow beyond a limit is refused without the memory for it."""
        head = pack(">i", 2) + b"{}"
        line = b"T 8 8 6 SINGLE_TAG ".ljust(MAX_PART_BYTES)
        lines = (pack(">i", len(line)) + line) * ((1 << 20) // len(line))
        whole = zlib.compressobj(9)
        pieces = [whole.compress(head + pack(">i", MAX_TOPICS))]
        pieces += [whole.compress(lines) for _ in range(MAX_PLAIN_BYTES >> 20)]
        pieces.append(whole.flush())
        empty = zlib.compressobj(9)
        nothing = empty.compress(b"") + empty.flush(zlib.Z_SYNC_FLUSH)
        for data, reason in (
            (b"".join(pieces), str(MAX_PLAIN_BYTES)),
            (zlib.compress(head + pack(">i", MAX_TOPICS + 1)), str(MAX_TOPICS)),
            (zlib.compress(pack(">i", MAX_PART_BYTES + 1)), str(MAX_PART_BYTES)),
            (nothing + b"\0\0\0\xff\xff" * STEP_BYTES, "mean nothing"),
        ):
            self.assertIn(reason, self.refusal(inflating(data, 479)))
