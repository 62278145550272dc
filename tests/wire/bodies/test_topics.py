"""Tests of topics and versions as bodies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    KVTable,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigSerializeWrapper,
    TopicList,
)
from rocketbroker.wire.fastjson import dumps, loads

VERSION = b'{"counter":1,"stateVersion":0,"timestamp":1700000000000}'
TOPIC = (
    b'{"attributes":{"message.type":"NORMAL"},"order":false,"perm":6,'
    b'"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"T1",'
    b'"topicSysFlag":0,"writeQueueNums":8}'
)
CONFIG = TopicConfig(
    topic_name="T1",
    read_queue_nums=8,
    write_queue_nums=8,
    attributes={"message.type": "NORMAL"},
)


class DataVersionTests(SynchronousTestCase):
    """Versions of tables."""

    def test_sample(self) -> None:
        """It is read and written as C{docs/facts} has it."""
        version = DataVersion.from_json(loads(VERSION))
        self.assertEqual(version, DataVersion(timestamp=1700000000000, counter=1))
        self.assertEqual(dumps(version), VERSION)

    def test_next(self) -> None:
        """The next version has the time of the change and one more change."""
        version = DataVersion(timestamp=5, counter=7).next(9, 2)
        self.assertEqual(version, DataVersion(timestamp=9, counter=8, state_version=2))

    def test_null(self) -> None:
        """No version is version zero."""
        self.assertEqual(DataVersion.from_json(None), DataVersion())


class TopicConfigTests(SynchronousTestCase):
    """One topic."""

    def test_sample(self) -> None:
        """It is read and written as C{docs/facts} has it."""
        self.assertEqual(TopicConfig.from_json(loads(TOPIC)), CONFIG)
        self.assertEqual(dumps(CONFIG), TOPIC)

    def test_defaults(self) -> None:
        """What is missing is as in a new object of Java's."""
        self.assertEqual(TopicConfig.from_json({}), TopicConfig())
        self.assertEqual(TopicConfig().read_queue_nums, 16)

    def test_looseForm(self) -> None:
        """A member in another form is read as leniently as RocketMQ reads it, and what
        is wrong is refused; the members beside it stay."""
        form = loads(TOPIC)
        assert isinstance(form, dict)
        for name, value in (
            ("readQueueNums", "8"),
            ("topicFilterType", 0),
            ("order", "false"),
            ("topicSysFlag", None),
            ("unknown", [1]),
            ("topicFilterType", "UNKNOWN"),
        ):
            self.assertEqual(TopicConfig.from_json({**form, name: value}), CONFIG)
        loose = {name.upper(): value for name, value in form.items()}
        self.assertEqual(TopicConfig.from_json(loose), CONFIG)
        wrong: object
        for wrong in (1 << 31, "x", []):
            self.assertRaises(
                RemoteProtocolError, TopicConfig.from_json, {**form, "perm": wrong}
            )

    def test_line(self) -> None:
        """The line of a compressed registration has six words."""
        config = TopicConfig(topic_name="T1", read_queue_nums=8, write_queue_nums=8)
        self.assertEqual(config.to_line(), "T1 8 8 6 SINGLE_TAG {}")
        self.assertEqual(TopicConfig.from_line("T1 8 8 6 SINGLE_TAG {}"), config)

    def test_lineWithoutAttributes(self) -> None:
        """The sixth word may be missing or nonsense, and a seventh is not looked at."""
        for end in ("", " x", " {} more", ' {"a":[]}', ""):
            config = TopicConfig.from_line("T1 8 8 6 SINGLE_TAG" + end)
            self.assertEqual(config.attributes, {})

    def test_lineTooShort(self) -> None:
        """A line of four words, or of other words, is refused."""
        for line in ("T1 8 8 6", "", "T1 x 8 6 SINGLE_TAG", "T1 8 8 6 OTHER"):
            with self.assertRaises(RemoteProtocolError):
                TopicConfig.from_line(line)


class WrapperTests(SynchronousTestCase):
    """Tables of topics."""

    def test_plain(self) -> None:
        """C{topics.json} is read and written as C{docs/facts} has it."""
        text = (
            b'{"dataVersion":' + VERSION + b',"topicConfigTable":{"T1":' + TOPIC + b"}}"
        )
        wrapper = TopicConfigSerializeWrapper.from_json(loads(text))
        self.assertEqual(wrapper.topic_config_table, {"T1": CONFIG})
        self.assertEqual(dumps(wrapper), text)

    def test_sharedAttributes(self) -> None:
        """A reference to another topic's attributes is resolved."""
        text = (
            '{"topicConfigTable":{"A":{"attributes":{"k":"v"},"topicName":"A"},'
            '"B":{"attributes":{"$ref":"$.topicConfigTable.A.attributes"},'
            '"topicName":"B"}}}'
        )
        wrapper = TopicConfigSerializeWrapper.from_json(loads(text))
        self.assertEqual(wrapper.topic_config_table["B"].attributes, {"k": "v"})

    def test_mapping(self) -> None:
        """The form of 5.0 has the mappings beside the topics."""
        text = (
            b'{"dataVersion":' + VERSION + b',"mappingDataVersion":' + VERSION + b","
            b'"topicConfigTable":{"T1":' + TOPIC + b'},"topicQueueMappingDetailMap":'
            b'{"T1":{"hostedQueues":{0:[{"gen":0}]}}},"topicQueueMappingInfoMap":{"T1":'
            b'{"bname":"b1","currIdMap":{0:0,3:1},"dirty":false,"epoch":123,'
            b'"scope":"__global__","topic":"T1","totalQueues":8}}}'
        )
        wrapper = TopicConfigAndMappingSerializeWrapper.from_json(loads(text))
        self.assertEqual(
            wrapper.topic_queue_mapping_info_map["T1"].curr_id_map, {0: 0, 3: 1}
        )
        self.assertEqual(dumps(wrapper), text)

    def test_of(self) -> None:
        """A table is made of its topics."""
        wrapper = TopicConfigAndMappingSerializeWrapper.of([CONFIG], DataVersion())
        self.assertEqual(wrapper.topic_config_table, {"T1": CONFIG})


class TableTests(SynchronousTestCase):
    """Small tables."""

    def test_topicList(self) -> None:
        """A list of topics has an address only if there is one."""
        text = b'{"brokerAddr":"x:1","topicList":["T1"]}'
        topics = TopicList(topic_list=["T1"], broker_addr="x:1")
        self.assertEqual(TopicList.from_json(loads(text)), topics)
        self.assertEqual(dumps(topics), text)
        self.assertEqual(dumps(TopicList(topic_list=["T1"])), b'{"topicList":["T1"]}')

    def test_kvTable(self) -> None:
        """A table of strings is read and written as C{docs/facts} has it."""
        text = b'{"table":{"T1":"b1:8"}}'
        self.assertEqual(KVTable.from_json(loads(text)), KVTable(table={"T1": "b1:8"}))
        self.assertEqual(dumps(KVTable(table={"T1": "b1:8"})), text)
