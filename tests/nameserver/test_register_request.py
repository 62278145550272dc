"""What a registration says, in each form of its body."""

from __future__ import annotations

from zlib import crc32

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.nameserver.register_request import registration
from rocketbroker.routing.registration import Registration
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.steps import finished
from tests.nameserver.case import broker_header, registration_body


class RegistrationTests(SynchronousTestCase):
    """L{registration}."""

    def setUp(self) -> None:
        """A connection."""
        self.connection = RecordedConnection()

    def read(
        self, body: bytes = b"", version: int = VERSION, **ext: str
    ) -> Registration:
        """What a request says."""
        header = {**broker_header(), "haServerAddr": "h:2", **ext}
        request = Command(RequestCode.REGISTER_BROKER, header, body, version=version)
        return finished(registration(self.connection, request))

    def refusal(self, body: bytes = b"", **ext: str) -> str:
        """Why it is refused."""
        return str(self.assertRaises(SystemFailure, self.read, body, **ext))

    def test_header(self) -> None:
        """The header says who, where and for how long."""
        new = self.read(
            heartbeatTimeoutMillis="10000", enableActingMaster="true", __ZONE_NAME="z"
        )
        self.assertEqual((new.cluster, new.name, new.broker_id), ("c1", "b1", 0))
        self.assertEqual((new.address, new.ha_address), ("b1-0:1", "h:2"))
        self.assertEqual((new.timeout_ms, new.acting_master), (10000, True))
        self.assertEqual(new.zone, "z")
        self.assertIs(new.channel, self.connection)

    def test_thirdState(self) -> None:
        """What an old broker does not say is not the same as false."""
        self.assertIsNone(self.read().acting_master)
        self.assertIsNone(self.read().timeout_ms)
        self.assertIs(self.read(enableActingMaster="false").acting_master, False)

    def test_lacking(self) -> None:
        """Without name, address, cluster or id it makes no sense."""
        for key in ("brokerName", "brokerAddr", "clusterName", "brokerId"):
            header = {**broker_header(), "haServerAddr": "h:2"}
            del header[key]
            request = Command(RequestCode.REGISTER_BROKER, header)
            error = self.assertRaises(
                SystemFailure, finished, registration(self.connection, request)
            )
            self.assertEqual(str(error), f"The registration lacks {key}.")
        self.assertEqual(self.refusal(brokerId="x"), "The registration lacks brokerId.")
        request = Command(RequestCode.REGISTER_BROKER)
        self.assertRaises(
            SystemFailure, finished, registration(self.connection, request)
        )

    def test_plain(self) -> None:
        """The plain form has topics, mappings and filter servers."""
        info = TopicQueueMappingInfo(topic="T1", bname="b1")
        body = registration_body(mappings={"T1": info}, filter_servers=("f:1",))
        new = self.read(body.encode())
        self.assertEqual(set(new.topics), {"T1", "T2"})
        self.assertEqual(new.mappings, {"T1": info})
        self.assertEqual(new.filter_servers, ["f:1"])
        self.assertEqual(new.data_version, DataVersion(counter=1, timestamp=5))

    def test_compressed(self) -> None:
        """The compressed form has the same."""
        body = registration_body(filter_servers=("f:1",)).encode(compressed=True)
        new = self.read(body, compressed="true")
        self.assertEqual(set(new.topics), {"T1", "T2"})
        self.assertEqual(new.filter_servers, ["f:1"])

    def test_before37(self) -> None:
        """Before version 37 a body is a table of topics."""
        body = dumps(registration_body().topic_config_serialize_wrapper)
        new = self.read(body, version=36)
        self.assertEqual(set(new.topics), {"T1", "T2"})
        self.assertIsNone(new.filter_servers)
        self.assertEqual(self.read(version=36).topics, {})

    def test_noBody(self) -> None:
        """No body is version zero without topics and filter servers."""
        new = self.read()
        self.assertEqual((new.data_version, new.topics), (DataVersion(), {}))
        self.assertEqual(new.filter_servers, ())

    def test_nullFilterServers(self) -> None:
        """A null list of filter servers is not an empty one."""
        body = b'{"filterServerList":null,"topicConfigSerializeWrapper":{}}'
        self.assertIsNone(self.read(body).filter_servers)
        body = b'{"topicConfigSerializeWrapper":{}}'
        self.assertEqual(self.read(body).filter_servers, [])

    def test_crc(self) -> None:
        """A checksum that is not 0 must be that of the bytes received."""
        body = registration_body().encode()
        good = crc32(body) & 0x7FFFFFFF
        self.read(body, bodyCrc32=str(good))
        self.read(body, bodyCrc32="0")
        self.assertEqual(self.refusal(body, bodyCrc32=str(good ^ 1)), "crc32 not match")

    def test_crcOfCompressed(self) -> None:
        """The bytes received are the compressed ones."""
        body = registration_body().encode(compressed=True)
        good = str(crc32(body) & 0x7FFFFFFF)
        self.read(body, compressed="true", bodyCrc32=good)

    def test_nonsense(self) -> None:
        """A body in no form is refused in words."""
        for body, ext in (
            (b"{", {}),
            (b"[1]", {}),
            (b"\x00\x01", {"compressed": "true"}),
            (registration_body().encode(), {"compressed": "true"}),
            (b'{"topicConfigSerializeWrapper":{"topicConfigTable":3}}', {}),
        ):
            self.assertTrue(
                self.refusal(body, **ext).startswith(
                    "Failed to decode RegisterBrokerBody: "
                )
            )
