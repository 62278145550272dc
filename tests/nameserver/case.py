"""A name server without ports, time and threads."""

from __future__ import annotations

from twisted.internet.defer import maybeDeferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.errors import BrokerError
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.command_channel import error_response
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.registration import RegisterBrokerBody
from rocketbroker.wire.bodies.topics import (
    DataVersion,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command
from rocketbroker.wire.fastjson import loads
from rocketbroker.wire.headers.header import Header

KV_PATH = "/ns/kvConfig.json"
SETTINGS_PATH = "/ns/namesrv.properties"

#: Every request of C{docs/facts/namesrv.md} 10.
CODES = frozenset(
    (100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 217, 219, 224, 304)
    + (311, 312, 313, 318, 319, 322, 327, 901, 904)
)


class NameServerTestCase(SynchronousTestCase):
    """One name server, and ways to ask it."""

    def setUp(self) -> None:
        """Start one without settings."""
        self.clock = Clock()
        self.clock.advance(1000)
        self.files = MemoryDisk()
        self.notified: list[tuple[str, Command]] = []
        self.connection = RecordedConnection()
        self.begin()

    def begin(self, **properties: str) -> None:
        """Start the name server with settings from a file."""
        self.nameserver = NameServer(
            self.clock,
            NamesrvSettings.from_properties(
                {"kvConfigPath": KV_PATH, **properties}, SETTINGS_PATH
            ),
            self.files,
            lambda: int(self.clock.seconds() * 1000),
            at_once,
            lambda address, command: self.notified.append((address, command)),
        )
        self.nameserver.load()
        self.nameserver.start()
        self.addCleanup(lambda: self.successResultOf(self.nameserver.stop()))

    def ask(
        self,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
        version: int = VERSION,
        connection: RecordedConnection | None = None,
    ) -> Command:
        """The response to a request, as the peer would see it."""
        ext = header.to_ext() if isinstance(header, Header) else header
        request = Command(code, ext, body, version=version)
        responder = self.nameserver.responders.responders[code]
        failures: list[BrokerError] = []
        answer = maybeDeferred(responder, connection or self.connection, request)
        answer.addErrback(_expected, failures)
        if not answer.called:
            # It is done in slices.
            self.clock.advance(0)
        result = self.successResultOf(answer)
        if failures:
            return error_response(request, failures[0])
        assert isinstance(result, Command)
        return result

    def logged(self, code: int, ext: dict[str, str], body: bytes = b"") -> list[str]:
        """What the log says of a request."""
        with capturedLogs() as events:
            self.assertEqual(self.ask(code, ext, body).code, 0)
        return [formatEvent(event) for event in events]

    def json(
        self,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
        version: int = VERSION,
    ) -> object:
        """The body of a success."""
        response = self.ask(code, header, body, version)
        self.assertEqual((response.code, response.remark), (0, None))
        return loads(response.body)

    def refusal(
        self,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes = b"",
    ) -> tuple[int, str | None]:
        """Code and remark of a refusal."""
        response = self.ask(code, header, body)
        return response.code, response.remark

    def register(
        self,
        name: str = "b1",
        broker_id: int = 0,
        *,
        topics: tuple[str, ...] = ("T1", "T2"),
        counter: int = 1,
        connection: RecordedConnection | None = None,
        mappings: dict[str, TopicQueueMappingInfo] | None = None,
        version: int = VERSION,
        **ext: str,
    ) -> Command:
        """A broker registers; C{ext} are more fields of the header."""
        body = registration_body(topics, counter, mappings).encode()
        header = {**broker_header(name, broker_id), "haServerAddr": "h:2", **ext}
        code = RequestCode.REGISTER_BROKER
        return self.ask(code, header, body, version, connection)


def _expected(failure: Failure, failures: list[BrokerError]) -> None:
    """Keep what a responder may raise; anything else is a bug."""
    if not isinstance(failure.value, BrokerError):
        failure.raiseException()
    failures.append(failure.value)


def broker_header(name: str = "b1", broker_id: int = 0) -> dict[str, str]:
    """The fields that say which broker."""
    return {
        "brokerName": name,
        "brokerAddr": f"{name}-{broker_id}:1",
        "clusterName": "c1",
        "brokerId": str(broker_id),
    }


def registration_body(
    topics: tuple[str, ...] = ("T1", "T2"),
    counter: int = 1,
    mappings: dict[str, TopicQueueMappingInfo] | None = None,
    filter_servers: tuple[str, ...] = (),
) -> RegisterBrokerBody:
    """Topics of eight queues."""
    return RegisterBrokerBody(
        topic_config_serialize_wrapper=TopicConfigAndMappingSerializeWrapper(
            topic_config_table={
                topic: TopicConfig(
                    topic_name=topic, read_queue_nums=8, write_queue_nums=8
                )
                for topic in topics
            },
            data_version=DataVersion(counter=counter, timestamp=5),
            topic_queue_mapping_info_map=mappings or {},
        ),
        filter_server_list=list(filter_servers),
    )
