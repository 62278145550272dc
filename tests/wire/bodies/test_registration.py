"""Tests of registrations, plain and compressed."""

from __future__ import annotations

import zlib

import attrs
import msgspec
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.registration import (
    MAX_PLAIN_BYTES,
    PlainRegistration,
    RegisterBrokerBody,
    plain_body,
)
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)

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

    def test_quickly(self) -> None:
        """What brokers without static topics write is read in a quicker way: the same
        version, topics and filter servers. Anything else is left to the general way."""
        body = RegisterBrokerBody.of([CONFIG], DataVersion(counter=3))
        data = attrs.evolve(body, filter_server_list=["f"]).encode()
        quick = PlainRegistration.read(data)
        assert quick is not None
        self.assertEqual(quick.version, DataVersion(counter=3))
        self.assertEqual(quick.filter_servers, ["f"])
        (topic,) = quick.topics.values()
        self.assertEqual(list(quick.topics), ["T1"])
        self.assertEqual(TopicConfig(**msgspec.structs.asdict(topic)), CONFIG)
        for other in (
            BODY.encode(),
            data.replace(b'["f"]', b"null"),
            data.replace(b'"perm":6', b'"perm":"6"'),
            data.replace(b'"perm"', b'"PERM"'),
            data.replace(b'"attributes":{}', b'"attributes":{"$ref":"$"}'),
            data.replace(b'"T1":', b"T1:"),
            data[:-1],
            b"\xff",
            b"",
            b"[" * 100000,
            data.replace(
                b'"topicQueueMappingInfoMap":{}', b'"topicQueueMappingInfoMap":{"T":{}}'
            ),
        ):
            self.assertNotEqual(other, data)
            self.assertIsNone(PlainRegistration.read(other))

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

    def test_bomb(self) -> None:
        """What would grow beyond the limit is refused, without the memory for it."""
        stream = zlib.compressobj(9)
        pieces = [stream.compress(bytes(1 << 20)) for _ in range(MAX_PLAIN_BYTES >> 20)]
        pieces += [stream.compress(b"\0"), stream.flush()]
        with self.assertRaises(RemoteProtocolError) as caught:
            RegisterBrokerBody.decode(b"".join(pieces), True, 479)
        self.assertIn(str(MAX_PLAIN_BYTES), str(caught.exception))

    def test_noZlib(self) -> None:
        """What is not compressed although it should be is refused."""
        with self.assertRaises(RemoteProtocolError):
            RegisterBrokerBody.decode(b"{}", True, 479)
