"""Requests of the broker to name servers."""

from __future__ import annotations

import zlib
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.masters import Master
from rocketbroker.broker.registration.name_server_api import (
    Batch,
    NameServerApi,
    RegisterAnswer,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import (
    ConnectionLost,
    RemoteProtocolError,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.wire.bodies.registration import RegisterBrokerBody
from rocketbroker.wire.bodies.topics import DataVersion, KVTable, TopicConfig
from rocketbroker.wire.fastjson import dumps, loads
from rocketbroker.wire.headers.namesrv import RegisterBrokerRequestHeader
from tests.broker.callers import Call, Caller

VERSION = DataVersion(counter=3, timestamp=5)


class OuterTests(SynchronousTestCase):
    """One method for each request."""

    def setUp(self) -> None:
        """A broker that calls nobody yet."""
        self.make()

    def make(self, **options: Any) -> None:
        """A broker with these settings."""
        self.caller = Caller()
        broker = BrokerOptions(broker_name="b", broker_cluster_name="C", **options)
        self.compressed = broker.compressed_register
        self.calls = NameServerApi(self.caller, broker, "1.2.3.4:5", "1.2.3.4:6")

    def register(self, *configs: TopicConfig) -> Deferred[RegisterAnswer]:
        """Register topics with a name server."""
        batch = Batch([*configs], VERSION, self.compressed)
        return self.calls.register("n:1", batch)

    def call(self) -> Call:
        """The one request that waits."""
        (call,) = self.caller.take()
        return call

    def test_register(self) -> None:
        """103 carries the broker's identity, its topics, and their check sum."""
        config = TopicConfig(topic_name="T")
        done = self.register(config)
        call = self.call()
        command = call.command
        self.assertEqual((call.address, command.code, call.timeout), ("n:1", 103, 24))
        header = RegisterBrokerRequestHeader.from_ext(command.ext)
        self.assertEqual(header.broker_name, "b")
        self.assertEqual(header.cluster_name, "C")
        self.assertEqual(header.broker_addr, "1.2.3.4:5")
        self.assertEqual(header.ha_server_addr, "1.2.3.4:6")
        self.assertEqual(header.broker_id, 0)
        self.assertEqual(header.body_crc32, zlib.crc32(command.body) & 0x7FFFFFFF)
        body = RegisterBrokerBody.decode(command.body, header.compressed, 479)
        wrapper = body.topic_config_serialize_wrapper
        self.assertEqual(wrapper.topic_config_table, {"T": config})
        self.assertEqual(wrapper.data_version, VERSION)
        call.answer()
        self.assertEqual(self.successResultOf(done), RegisterAnswer())

    def test_crc(self) -> None:
        """The check sum is one that a Java int holds."""
        for number in range(8):
            batch = Batch([TopicConfig(topic_name=f"T{number}")], VERSION, False)
            self.assertLess(batch.crc, 1 << 31)
            self.assertEqual(zlib.crc32(batch.body) % (1 << 31), batch.crc)

    def test_registerCompressed(self) -> None:
        """A compressed body is one that the header calls compressed."""
        self.make(compressed_register=True)
        self.register(TopicConfig(topic_name="T"))
        command = self.call().command
        header = RegisterBrokerRequestHeader.from_ext(command.ext)
        self.assertTrue(header.compressed)
        body = RegisterBrokerBody.decode(command.body, True, command.version)
        self.assertIn("T", body.topic_config_serialize_wrapper.topic_config_table)

    def test_registerAnswered(self) -> None:
        """The answer may name topics that are ordered; another code is a failure."""
        done = self.register()
        self.call().answer(body=b'{"table":{"T":"b:8"}}')
        orders = KVTable(table={"T": "b:8"})
        self.assertEqual(self.successResultOf(done), RegisterAnswer(orders))
        done = self.register()
        self.call().answer(code=1)
        self.failureResultOf(done, SystemFailure)

    def test_registerSlave(self) -> None:
        """To a slave the answer says where its master is, if the name server knows."""
        ext = {"haServerAddr": "1.2.3.4:10912", "masterAddr": "1.2.3.4:10911"}
        unknown = {"haServerAddr": "", "masterAddr": ""}
        for answered, master in (
            (ext, Master("1.2.3.4:10912", "1.2.3.4:10911")),
            (unknown, Master()),
        ):
            done = self.register()
            self.call().answer(ext=answered)
            self.assertEqual(self.successResultOf(done).master, master)

    def test_unregister(self) -> None:
        """104 says which broker goes, and waits for three seconds."""
        done = self.calls.unregister("n:1")
        call = self.call()
        self.assertEqual((call.command.code, call.timeout), (104, 3.0))
        self.assertEqual(
            call.command.ext,
            {
                "brokerName": "b",
                "brokerAddr": "1.2.3.4:5",
                "clusterName": "C",
                "brokerId": "0",
            },
        )
        call.fail()
        self.failureResultOf(done, ConnectionLost)

    def test_needsData(self) -> None:
        """322: another version, the word for it, or no answer mean that it needs them.

        A name server that refuses to say does not.
        """
        same = b'{"counter":3,"stateVersion":0,"timestamp":5}'
        other = b'{"counter":4,"stateVersion":0,"timestamp":5}'
        for code, changed, body, needs in (
            (0, "false", b"", False),
            (0, "false", same, False),
            (0, "true", same, True),
            (0, "false", other, True),
            (1, "true", other, False),
        ):
            done = self.calls.needs_data("n:1", VERSION)
            call = self.call()
            self.assertEqual(call.command.code, 322)
            self.assertEqual(loads(call.command.body), loads(same))
            call.answer(code, body, {"changed": changed})
            self.assertEqual(self.successResultOf(done), needs)
        done = self.calls.needs_data("n:1", VERSION)
        self.call().fail()
        self.assertTrue(self.successResultOf(done))
        done = self.calls.needs_data("n:1", VERSION)
        self.call().answer(body=b"{")
        self.assertTrue(self.successResultOf(done))

    def test_registerTopic(self) -> None:
        """217 carries the route of one topic here."""
        done = self.calls.register_topic("n:1", TopicConfig(topic_name="T", perm=4))
        call = self.call()
        self.assertEqual(call.command.code, 217)
        self.assertEqual(call.command.ext, {"topic": "T"})
        value = loads(call.command.body)
        assert isinstance(value, dict)
        self.assertEqual(
            value["queueDatas"],
            [
                {
                    "brokerName": "b",
                    "perm": 4,
                    "readQueueNums": 16,
                    "topicSysFlag": 0,
                    "writeQueueNums": 16,
                }
            ],
        )
        call.answer()
        self.successResultOf(done)

    def test_route(self) -> None:
        """105 asks where a topic is; an unknown one and nonsense are errors."""
        done = self.calls.route("n:1", "T")
        call = self.call()
        self.assertEqual(call.command.code, 105)
        self.assertEqual((call.command.ext or {})["topic"], "T")
        call.answer(body=b'{"queueDatas":[{"brokerName":"b","readQueueNums":3}]}')
        (queues,) = self.successResultOf(done).queue_datas
        self.assertEqual((queues.broker_name, queues.read_queue_nums), ("b", 3))
        done = self.calls.route("n:1", "T")
        self.call().answer(17)
        self.failureResultOf(done, TopicNotExist)
        done = self.calls.route("n:1", "T")
        self.call().answer(body=b"{")
        self.failureResultOf(done, RemoteProtocolError)

    def test_registerActingMaster(self) -> None:
        """103 always says whether a slave may act as master; where it may, it says how
        soon a silent broker is gone, too."""
        for on, wanted in ((False, (False, None)), (True, (True, 7000))):
            self.make(
                enable_slave_acting_master=on, broker_not_active_timeout_millis=7000
            )
            self.register()
            header = RegisterBrokerRequestHeader.from_ext(self.call().command.ext)
            found = header.enable_acting_master, header.heartbeat_timeout_millis
            self.assertEqual(found, wanted)

    def test_heartbeat(self) -> None:
        """A heartbeat is a 322 that every name server understands, or a 904; nobody
        waits for an answer."""
        identity = {"brokerName": "b", "brokerAddr": "1.2.3.4:5", "clusterName": "C"}
        for compatible, code, ext, body in (
            (True, 322, {**identity, "brokerId": "0"}, dumps(VERSION)),
            (False, 904, identity, b""),
        ):
            self.make(compatible_with_old_name_srv=compatible)
            self.calls.heartbeat("n:1", VERSION)
            ((address, command),) = self.caller.oneways
            self.assertEqual((address, command.code, command.ext), ("n:1", code, ext))
            self.assertEqual((command.body, command.is_oneway), (body, True))

    def test_members(self) -> None:
        """The members of the group stand in the route of a topic that each of them
        has, or in the answer to 901."""
        self.make(compatible_with_old_name_srv=True)
        done = self.calls.members("n:1")
        call = self.call()
        self.assertEqual(call.command.code, 105)
        self.assertEqual(
            (call.command.ext or {})["topic"], "rmq_sys_SYNC_BROKER_MEMBER_b"
        )
        call.answer(
            body=b'{"brokerDatas":[{"brokerName":"b","cluster":"D","brokerAddrs":'
            b'{"0":"d:1"}},{"brokerName":"b","cluster":"C","brokerAddrs":{1:"c:1"}}]}'
        )
        self.assertEqual(self.successResultOf(done), {1: "c:1"})
        self.make(compatible_with_old_name_srv=False)
        done = self.calls.members("n:1")
        call = self.call()
        self.assertEqual(call.command.code, 901)
        self.assertEqual(call.command.ext, {"clusterName": "C", "brokerName": "b"})
        call.answer(
            body=b'{"brokerMemberGroup":{"brokerAddrs":{0:"a:1",1:"c:1"},'
            b'"brokerName":"b","cluster":"C"}}'
        )
        self.assertEqual(self.successResultOf(done), {0: "a:1", 1: "c:1"})

    def test_noMembers(self) -> None:
        """A name server that knows nothing of the group knows no members; one that
        fails says nothing."""
        self.make(compatible_with_old_name_srv=True)
        for code, body in ((17, b""), (0, b"{}")):
            done = self.calls.members("n:1")
            self.call().answer(code, body)
            self.assertEqual(self.successResultOf(done), {})
        done = self.calls.members("n:1")
        self.call().answer(1)
        self.failureResultOf(done, SystemFailure)
