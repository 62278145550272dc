"""Brokers come, speak, go, fall silent."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import capturedLogs, formatEvent

from rocketbroker.errors import SystemFailure
from rocketbroker.nameserver.brokers import FEW, MAX_WAITING_BYTES
from rocketbroker.records.names import MAX_QUEUES
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.registration import STEP_BYTES
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, VERSION, Command
from rocketbroker.wire.fastjson import dumps
from tests.nameserver.case import (
    NameServerTestCase,
    broker_header,
    registration_body,
)

UNREGISTER = RequestCode.UNREGISTER_BROKER
QUERY = RequestCode.QUERY_DATA_VERSION


class RegisterTests(NameServerTestCase):
    """Request 103."""

    def test_master(self) -> None:
        """A master is told nothing but success."""
        response = self.register()
        self.assertEqual((response.code, response.remark), (0, None))
        self.assertEqual((response.ext, response.body), ({}, b""))
        self.assertEqual(self.nameserver.brokers.registered, 1)

    def test_rivals(self) -> None:
        """Two brokers with one name and id are a warning, once for each pair."""
        with capturedLogs() as events:
            for _ in range(2):
                for host in ("h1", "h2", "h3", "h1"):
                    self.register(brokerAddr=f"{host}:1", topics=("T1", "T2"))
            self.register(broker_id=1)
        lines = [formatEvent(event) for event in events]
        self.assertEqual(
            lines[0],
            "Two brokers are called b1 and have the id 0: h1:1 and h2:1. Clients find "
            "only one of them. Give one of them another brokerName or brokerId.",
        )
        self.assertEqual(len(lines), 3)

    def test_noRivals(self) -> None:
        """A broker whose connection has gone may come back from another address."""
        with capturedLogs() as events:
            self.register(brokerAddr="h1:1")
            header = {**broker_header(), "brokerAddr": "h1:1"}
            self.ask(UNREGISTER, header)
            self.clock.advance(0)
            self.register(brokerAddr="h2:1")
        self.assertEqual(events, [])

    def test_slave(self) -> None:
        """A slave is told its master."""
        self.register()
        response = self.register(broker_id=1)
        self.assertEqual(response.ext, {"haServerAddr": "h:2", "masterAddr": "b1-0:1"})

    def test_orderedTopics(self) -> None:
        """Every broker is told the ordered topics, if there ever were any."""
        header = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T1", "value": "b1:8"}
        self.ask(RequestCode.PUT_KV_CONFIG, header)
        self.assertEqual(self.register().body, b'{"table":{"T1":"b1:8"}}')
        self.ask(RequestCode.DELETE_KV_CONFIG, header)
        self.assertEqual(self.register().body, b'{"table":{}}')
        body = b"returnOrderTopicConfigToBroker=false"
        self.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
        self.assertEqual(self.register().body, b"")

    def test_refused(self) -> None:
        """A first registration with a single topic fails, as one without sense."""
        response = self.register(topics=("T1",))
        self.assertEqual(
            (response.code, response.remark), (1, "register broker failed")
        )
        self.register(brokerId="x")
        self.assertEqual(self.nameserver.brokers.refused, 2)
        self.assertEqual(self.nameserver.brokers.registered, 0)

    def test_dropMissing(self) -> None:
        """Topics that a broker does not name are gone where that is switched on."""
        self.begin(deleteTopicWithBrokerRegistration="true")
        self.register()
        self.register(topics=("T2", "T3"), counter=2)
        self.assertEqual(set(self.nameserver.routes.topics), {"T2", "T3"})


class LargeTests(NameServerTestCase):
    """Brokers with more topics than one turn should look at."""

    names = tuple(f"T{number}" for number in range(FEW + 1))

    def asked(
        self, code: int, header: dict[str, str], body: bytes = b""
    ) -> Deferred[Command | None]:
        """A request that is answered later."""
        answer = self.nameserver.responders.responders[code](
            self.connection, Command(code, header, body, version=VERSION)
        )
        assert isinstance(answer, Deferred)
        return answer

    def began(self, counter: int = 1) -> Deferred[Command | None]:
        """Begin to register all topics."""
        body = registration_body(self.names, counter).encode()
        return self.asked(RequestCode.REGISTER_BROKER, broker_header(), body)

    def routes(self) -> int:
        """How many topics have a route."""
        return len(self.nameserver.routes.topics)

    def test_largeStaticTopicRegisters(self) -> None:
        """A topic of as many static queues as there may be is read in steps."""
        ids = {number: number for number in range(MAX_QUEUES)}
        info = TopicQueueMappingInfo(topic="T1", bname="b1", curr_id_map=ids)
        for counter, compressed in enumerate((False, True), 1):
            body = registration_body(counter=counter, mappings={"T1": info})
            before = self.nameserver.slices.steps
            header = {**broker_header(), "compressed": str(compressed).lower()}
            response = self.ask(
                RequestCode.REGISTER_BROKER, header, body.encode(compressed)
            )
            self.assertEqual((response.code, response.remark), (0, None))
            self.assertGreater(
                self.nameserver.slices.steps - before, len(body.encode()) // STEP_BYTES
            )
            self.assertEqual(
                self.nameserver.routes.mappings.pop("T1"), {"b1": info}, compressed
            )

    def test_registration(self) -> None:
        """A registration is answered when all its topics are there; they are entered a
        few at a time."""
        answer = self.began()
        self.assertEqual((self.routes(), self.nameserver.brokers.registered), (0, 0))
        self.clock.advance(0)
        self.assertEqual(getattr(self.successResultOf(answer), "code", None), 0)
        self.assertEqual(self.routes(), len(self.names))
        self.assertEqual(self.nameserver.brokers.registered, 1)
        self.assertGreater(self.nameserver.slices.steps, 10)

    def test_dropMissing(self) -> None:
        """Where topics that a broker does not name are deleted, all are looked at for
        the sake of a few."""
        self.begin(deleteTopicWithBrokerRegistration="true")
        self.began()
        self.clock.advance(0)
        one = registration_body(("one",), counter=2).encode()
        self.asked(RequestCode.REGISTER_BROKER, broker_header(), one)
        self.clock.advance(0)
        self.assertEqual(set(self.nameserver.routes.topics), {"one"})

    def test_order(self) -> None:
        """What changes the table is done in the order in which it came."""
        first = self.began()
        one = registration_body(("one",), counter=2).encode()
        second = self.asked(RequestCode.REGISTER_BROKER, broker_header(), one)
        header = {"brokerName": "b1"}
        wiped = self.asked(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
        self.assertEqual(self.ask(UNREGISTER, broker_header()).code, 0)
        self.clock.advance(0)
        self.clock.advance(0)
        for answer in (first, second):
            self.assertEqual(getattr(self.successResultOf(answer), "code", None), 0)
        count = {"wipeTopicCount": str(len(self.names) + 1)}
        self.assertEqual(getattr(self.successResultOf(wiped), "ext", None), count)
        self.assertEqual(self.routes(), 0)

    def test_tooMuchWaits(self) -> None:
        """Bodies that wait for their turn have a limit; then there is room again."""
        long = registration_body(self.names).encode()
        long += b" " * ((16 << 20) - len(long))
        code = RequestCode.REGISTER_BROKER
        count = MAX_WAITING_BYTES // len(long)
        answers = [self.asked(code, broker_header(), long) for _ in range(count)]
        answer, remark = self.refusal(code, broker_header(), long)
        self.assertEqual(answer, 2)
        self.assertIn(f"{MAX_WAITING_BYTES}; register again later.", str(remark))
        self.clock.advance(0)
        for each in answers:
            self.failureResultOf(each, SystemFailure)
        again = self.began()
        self.clock.advance(0)
        self.successResultOf(again)

    def test_lostMeanwhile(self) -> None:
        """A broker whose connection closes while its topics are entered goes, and they
        with it."""
        with capturedLogs():
            self.began()
            self.connection.close()
            self.clock.advance(0)
            self.clock.advance(0)
        self.assertEqual((self.routes(), self.nameserver.routes.live), (0, {}))

    def test_stopped(self) -> None:
        """At the end of the name server nothing goes on; a removal that waits is no
        error."""
        self.assertEqual(self.ask(UNREGISTER, broker_header()).code, 0)
        self.clock.callLater(0, self.nameserver.stop)
        answer = self.began()
        self.clock.advance(0)
        self.failureResultOf(answer, CancelledError)


class DataVersionTests(NameServerTestCase):
    """Request 322."""

    def test_unknown(self) -> None:
        """An unknown broker has changed."""
        response = self.ask(QUERY, broker_header(), dumps(DataVersion()))
        self.assertEqual(response.ext, {"changed": "true"})
        self.assertEqual(response.body, b"")

    def test_known(self) -> None:
        """A known one has changed if any part of its version has."""
        self.register()
        ours = b'{"counter":1,"stateVersion":0,"timestamp":5}'
        for body, changed in (
            (ours, "false"),
            (b'{"counter":2,"stateVersion":0,"timestamp":5}', "true"),
            (b'{"counter":1,"stateVersion":1,"timestamp":5}', "true"),
            (b'{"counter":1,"stateVersion":0,"timestamp":6}', "true"),
            (b"", "true"),
        ):
            response = self.ask(QUERY, broker_header(), body)
            self.assertEqual(response.ext, {"changed": changed})
            self.assertEqual(response.body, ours)

    def test_nonsense(self) -> None:
        """A body that is no version is refused in words."""
        code, remark = self.refusal(QUERY, broker_header(), b"{")
        self.assertEqual(code, 1)
        self.assertTrue(str(remark).startswith("The body cannot be read: "))


class LivenessTests(NameServerTestCase):
    """Who is alive."""

    def known(self) -> set[str]:
        """The names in the table."""
        return set(self.nameserver.routes.groups)

    def test_silence(self) -> None:
        """A broker is gone after two minutes of silence, and its connection closed."""
        self.register()
        self.clock.pump([5.0] * 24)
        self.assertEqual(self.known(), {"b1"})
        self.assertFalse(self.connection.closed)
        self.clock.pump([5.0, 0])
        self.assertEqual(self.known(), set())
        self.assertTrue(self.connection.closed)
        brokers = self.nameserver.brokers
        self.assertEqual((brokers.expired, brokers.lost), (1, 0))

    def test_ownTime(self) -> None:
        """A broker may say after which silence it is gone."""
        self.register(heartbeatTimeoutMillis="10000")
        self.register("b2")
        self.clock.pump([5.0, 5.0, 5.0, 0])
        self.assertEqual(self.known(), {"b2"})

    def test_voices(self) -> None:
        """A heartbeat and a question for the version keep a broker alive."""
        self.register("b1", heartbeatTimeoutMillis="10000")
        self.register("b2", heartbeatTimeoutMillis="10000")
        for _ in range(5):
            self.clock.pump([5.0, 0])
            beat = self.ask(RequestCode.BROKER_HEARTBEAT, broker_header("b1"))
            self.assertEqual((beat.code, beat.remark), (0, None))
            self.ask(QUERY, broker_header("b2"), b"{}")
        self.assertEqual(self.known(), {"b1", "b2"})

    def test_heartbeatOfAStranger(self) -> None:
        """A heartbeat of an unknown broker is a success without effect."""
        beat = self.ask(RequestCode.BROKER_HEARTBEAT, broker_header("b9"))
        self.assertEqual(beat.code, 0)
        self.assertEqual(self.nameserver.routes.live, {})

    def test_connectionLost(self) -> None:
        """A broker whose connection is gone is gone at the end of the turn."""
        self.register()
        self.register()
        self.connection.close()
        self.assertEqual(self.known(), {"b1"})
        self.clock.advance(0)
        self.assertEqual(self.known(), set())
        self.assertEqual(self.nameserver.brokers.lost, 1)

    def test_newConnection(self) -> None:
        """A broker that came back by another connection survives the old one."""
        self.register()
        self.register(connection=RecordedConnection())
        self.connection.close()
        self.clock.advance(0)
        self.assertEqual(self.known(), {"b1"})

    def test_otherConnection(self) -> None:
        """A connection by which nobody registered matters to nobody."""
        self.register()
        other = RecordedConnection()
        self.ask(QUERY, broker_header(), connection=other)
        other.close()
        self.clock.advance(0)
        self.assertEqual(self.known(), {"b1"})


class UnregisterTests(NameServerTestCase):
    """Request 104."""

    def test_goes(self) -> None:
        """Success comes first, the effect at the end of the turn."""
        self.register()
        response = self.ask(UNREGISTER, broker_header())
        self.assertEqual((response.code, response.remark), (0, None))
        self.assertEqual(set(self.nameserver.routes.groups), {"b1"})
        self.clock.advance(0)
        self.assertEqual(self.nameserver.routes.groups, {})

    def test_thenTheConnection(self) -> None:
        """A broker that closes after it went is not counted as lost."""
        self.register()
        self.ask(UNREGISTER, broker_header())
        self.connection.close()
        self.clock.advance(0)
        self.assertEqual(self.nameserver.routes.groups, {})
        self.assertEqual(self.nameserver.brokers.lost, 0)

    def test_withoutId(self) -> None:
        """One who does not say its id goes too."""
        self.register()
        header = broker_header()
        del header["brokerId"]
        self.assertEqual(self.ask(UNREGISTER, header).code, 0)
        self.clock.advance(0)
        self.assertEqual(self.nameserver.routes.groups, {})

    def test_tooMany(self) -> None:
        """More than the setting allows in one turn are refused, then taken again."""
        self.begin(unRegisterBrokerQueueCapacity="2")
        for name in ("b1", "b2"):
            self.assertEqual(self.ask(UNREGISTER, broker_header(name)).code, 0)
        self.assertEqual(
            self.refusal(UNREGISTER, broker_header("b3")),
            (1, "too many brokers are being unregistered"),
        )
        self.clock.advance(0)
        self.assertEqual(self.ask(UNREGISTER, broker_header("b3")).code, 0)

    def test_stopped(self) -> None:
        """Who is about to leave when the server stops is forgotten."""
        self.ask(UNREGISTER, broker_header())
        self.successResultOf(self.nameserver.stop())
        self.assertEqual(self.clock.getDelayedCalls(), [])


class NotificationTests(NameServerTestCase):
    """Request 905, which the name server sends."""

    def setUp(self) -> None:
        """Switch it on, and let two slaves register."""
        super().setUp()
        self.begin(notifyMinBrokerIdChanged="true")
        for number in (2, 1):
            self.register(broker_id=number, enableActingMaster="true")

    def fields(self) -> list[tuple[str, dict[str, str] | None]]:
        """Who was told what."""
        for _, command in self.notified:
            self.assertEqual(command.code, RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE)
            self.assertEqual(command.flag, ONEWAY)
        return [(address, command.ext) for address, command in self.notified]

    def test_came(self) -> None:
        """Whoever comes with a lower id is announced to the others."""
        fields = {
            "minBrokerId": "1",
            "minBrokerAddr": "b1-1:1",
            "haBrokerAddr": "h:2",
        }
        self.assertEqual(self.fields(), [("b1-2:1", fields)])

    def test_left(self) -> None:
        """When the least leaves, those who stay are told."""
        self.notified.clear()
        self.ask(UNREGISTER, broker_header(broker_id=1))
        self.clock.advance(0)
        fields = {
            "minBrokerId": "2",
            "minBrokerAddr": "b1-2:1",
            "offlineBrokerAddr": "b1-1:1",
        }
        self.assertEqual(self.fields(), [("b1-2:1", fields)])

    def test_off(self) -> None:
        """Nobody is told where it is switched off."""
        self.notified.clear()
        body = b"notifyMinBrokerIdChanged=false"
        self.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
        self.register(broker_id=0, enableActingMaster="true")
        self.ask(UNREGISTER, broker_header())
        self.clock.advance(0)
        self.assertEqual(self.notified, [])


class OperatorTests(NameServerTestCase):
    """Requests 205, 216, 217 and 327."""

    def setUp(self) -> None:
        """One broker."""
        super().setUp()
        self.register()

    def topics(self) -> dict[str, set[str]]:
        """The brokers of each topic."""
        table = self.nameserver.routes.topics
        return {topic: set(there) for topic, there in table.items()}

    def test_permissions(self) -> None:
        """The permission to write is taken and given, and topics are counted."""
        for code, field, perm in (
            (RequestCode.WIPE_WRITE_PERM_OF_BROKER, "wipeTopicCount", 4),
            (RequestCode.ADD_WRITE_PERM_OF_BROKER, "addTopicCount", 6),
        ):
            response = self.ask(code, {"brokerName": "b1"})
            self.assertEqual((response.code, response.ext), (0, {field: "2"}))
            self.assertEqual(self.nameserver.routes.topics["T1"]["b1"].perm, perm)

    def test_delete(self) -> None:
        """A topic is deleted, whether it was there or not."""
        code = RequestCode.DELETE_TOPIC_IN_NAMESRV
        for header in (
            {"topic": "T1", "clusterName": "c9"},
            {"topic": "T9"},
        ):
            self.assertEqual(self.ask(code, header).code, 0)
        self.assertEqual(self.topics(), {"T1": {"b1"}, "T2": {"b1"}})
        self.ask(code, {"topic": "T1", "clusterName": "c1"})
        self.ask(code, {"topic": "T2"})
        self.assertEqual(self.topics(), {})

    def test_add(self) -> None:
        """A topic is entered for known brokers; strangers are a silent success."""
        code = RequestCode.REGISTER_TOPIC_IN_NAMESRV
        for topic, name in (("T3", "b1"), ("T4", "b9")):
            route = TopicRouteData(queue_datas=[QueueData(broker_name=name)])
            response = self.ask(code, {"topic": topic}, dumps(route))
            self.assertEqual((response.code, response.remark), (0, None))
        self.assertEqual(self.ask(code, {"topic": "T5"}).code, 0)
        self.assertEqual(set(self.topics()), {"T1", "T2", "T3"})

    def test_logged(self) -> None:
        """Each change is a line that says who made it."""
        peer = self.connection.peer
        route = dumps(TopicRouteData(queue_datas=[QueueData(broker_name="b1")]))
        for code, ext, body, line in (
            (
                RequestCode.WIPE_WRITE_PERM_OF_BROKER,
                {"brokerName": "b1"},
                b"",
                "took the write permission of broker 'b1' for 2 topics.",
            ),
            (
                RequestCode.ADD_WRITE_PERM_OF_BROKER,
                {"brokerName": "b1"},
                b"",
                "gave broker 'b1' the write permission for 2 topics.",
            ),
            (
                RequestCode.REGISTER_TOPIC_IN_NAMESRV,
                {"topic": "T3"},
                route,
                "added routes of topic 'T3' for 1 brokers.",
            ),
            (
                RequestCode.DELETE_TOPIC_IN_NAMESRV,
                {"topic": "T3", "clusterName": "c1"},
                b"",
                "deleted the routes of topic 'T3' in cluster 'c1'.",
            ),
            (
                RequestCode.DELETE_TOPIC_IN_NAMESRV,
                {"topic": "T2"},
                b"",
                "deleted the routes of topic 'T2' in all clusters.",
            ),
        ):
            self.assertEqual(self.logged(code, ext, body), [f"{peer} {line}"])

    def test_addNonsense(self) -> None:
        """A body that is no route is refused in words."""
        code, _ = self.refusal(
            RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "T3"}, b"7"
        )
        self.assertEqual(code, 1)
