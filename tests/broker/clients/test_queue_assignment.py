"""Which queues a member of a group consumes, decided by the broker."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.message_request_mode import RequestMode
from rocketbroker.errors import (
    BrokerError,
    NoPermission,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.rig import Rig, logged


class AssignmentCase(SynchronousTestCase):
    """Topic T with two queues at each of two brokers; group G has two members."""

    servers = "n1:9876"

    def setUp(self) -> None:
        """A broker that name servers answer."""
        self.make()

    def make(self, **settings: str) -> None:
        """A broker with these settings."""
        self.rig = rig = Rig({"namesrvAddr": self.servers, **settings}, client=self)
        self.addCleanup(rig.close)
        rig.topic("T", queues=3)
        rig.groups.find("G")
        self.modes = rig.broker.metadata.request_modes
        for name in ("one", "two"):
            self.join(name)

    def join(self, client_id: str) -> None:
        """A member of G."""
        data = ConsumerData(group_name="G")
        self.rig.consumers.register(
            RecordedConnection(), client_id, "JAVA", 479, data, False
        )

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """A name server's answer to the question for a route."""
        assert command.ext is not None
        if command.ext["topic"] != "T":
            return succeed(response_to(command, TopicNotExist.code))
        two = {"read_queue_nums": 2, "write_queue_nums": 9}
        queues = [
            QueueData(broker_name="b", perm=6, **two),
            QueueData(broker_name="a", perm=4, **two),
            QueueData(broker_name="c", perm=2, **two),
        ]
        route = TopicRouteData(queue_datas=queues)
        return succeed(response_to(command, body=dumps(route.to_json())))

    def oneway(self, address: str, command: Command) -> None:
        """No name server hears it."""

    def send(self, code: int, value: dict[str, object]) -> Command:
        """A request with a body."""
        return self.rig.ask(code, {}, dumps(value))

    def assign(self, client_id: str = "one", **changes: object) -> object:
        """The queues of a member, each with how it gets their messages."""
        question = {
            "clientId": client_id,
            "consumerGroup": "G",
            "messageModel": "CLUSTERING",
            "strategyName": "AVG",
            "topic": "T",
            **changes,
        }
        content: Any = loads(self.send(400, question).body)
        if "messageQueueAssignments" not in content:
            return None
        return [
            (
                entry["messageQueue"]["brokerName"],
                entry["messageQueue"]["queueId"],
                entry["mode"],
            )
            for entry in content["messageQueueAssignments"]
        ]

    def set_mode(self, share: int = 0, **changes: object) -> Command:
        """Request 401."""
        mode = {"consumerGroup": "G", "mode": "POP", "topic": "T", **changes}
        return self.send(401, {**mode, "popShareQueueNum": share})


class PullTests(AssignmentCase):
    """Members that pull."""

    def test_shares(self) -> None:
        """Each member gets its share of all brokers' queues that can be read."""
        a = [("a", 0, "PULL"), ("a", 1, "PULL")]
        b = [("b", 0, "PULL"), ("b", 1, "PULL")]
        self.assertEqual((self.assign("one"), self.assign("two")), (a, b))
        circle = self.assign("one", strategyName="AVG_BY_CIRCLE")
        self.assertEqual(circle, [a[0], b[0]])
        self.assertEqual(self.assign("stranger"), [])

    def test_undecided(self) -> None:
        """Without a route, a member or a known strategy nothing is decided."""
        self.assertIsNone(self.assign(topic="X"))
        self.assertIsNone(self.assign(consumerGroup="X"))
        self.assertIsNone(self.assign(strategyName="X"))

    def test_all(self) -> None:
        """Broadcasting members get all queues, and all if nothing is balanced here."""
        found = self.assign("stranger", messageModel="BROADCASTING")
        assert isinstance(found, list)
        self.assertEqual(len(found), 4)
        self.make(serverLoadBalancerEnable="false")
        self.assertEqual(self.assign("one"), found)

    def test_light(self) -> None:
        """An LMQ is one queue of this broker."""
        found = self.assign(topic="%LMQ%t", messageModel="BROADCASTING")
        self.assertEqual(found, [("broker-a", 0, "PULL")])

    def test_nonsense(self) -> None:
        """A body that is no question is refused in words."""
        for body in (b"", b"[]", b'{"topic":{}}'):
            with self.assertRaises(SystemFailure):
                self.rig.ask(400, {}, body)


class AloneTests(AssignmentCase):
    """A broker without name servers."""

    servers = ""

    def test_own(self) -> None:
        """It assigns its own queues."""
        found = self.assign(messageModel="BROADCASTING")
        self.assertEqual(found, [("broker-a", n, "PULL") for n in range(3)])
        self.assertIsNone(self.assign(topic="X"))


class ModeTests(AssignmentCase):
    """Groups that are told how to consume."""

    def test_pull(self) -> None:
        """That they are to pull is taken, and kept."""
        (line,) = logged(lambda: self.set_mode(mode="PULL"))
        wanted = "10.0.0.2:4711 set the request mode of group 'G' in topic 'T' to PULL"
        self.assertEqual(line, wanted)
        table: Any = self.modes.to_json()["messageRequestModeMap"]
        self.assertEqual(table["T"]["G"]["mode"], "PULL")

    def test_allModes(self) -> None:
        """Request 402 is answered with all modes, in the form of the file."""
        self.assertEqual(
            loads(self.rig.ask(402, {}).body), {"messageRequestModeMap": {}}
        )
        self.set_mode(mode="PULL")
        self.assertEqual(loads(self.rig.ask(402, {}).body), self.modes.to_json())

    def test_pop(self) -> None:
        """Members that are to pop share each broker as a whole, or some queues each."""
        self.assertEqual(self.set_mode().code, 0)
        whole = [("a", -1, "POP"), ("b", -1, "POP")]
        self.assertEqual((self.assign("one"), self.assign("two")), (whole, whole))
        for name in ("three", "four"):
            self.join(name)
        self.set_mode(share=1)
        shares = {name: self.assign(name) for name in ("four", "one", "three", "two")}
        a, b = [("a", n, "POP") for n in (0, 1)], [("b", n, "POP") for n in (0, 1)]
        self.assertEqual(shares["four"], a)
        self.assertEqual(shares["one"], [a[1], b[0]])
        self.assertEqual(shares["three"], b)
        self.assertEqual(shares["two"], [b[1], a[0]])
        self.join("five")
        self.assertEqual(self.assign("two"), [a[0]])
        self.assertEqual(self.assign("five"), [a[0]])
        self.assertEqual(self.assign("stranger"), [])
        self.assertIsNone(self.assign("one", strategyName="X"))

    def test_default(self) -> None:
        """defaultMessageRequestMode holds for groups without a mode; retry topics are
        pulled."""
        self.make(defaultMessageRequestMode="POP")
        self.assertEqual(self.assign(), [("a", -1, "POP"), ("b", -1, "POP")])
        self.set_mode(mode="PULL")
        self.assertEqual(self.assign(), [("a", 0, "PULL"), ("a", 1, "PULL")])
        self.assertEqual(self.modes.mode("%RETRY%G", "G").mode, "PULL")

    def test_keyValueStore(self) -> None:
        """Nobody pops where check points are to be in the key-value store."""
        self.make(popConsumerKVServiceEnable="true")
        with self.assertRaises(SystemFailure) as caught:
            self.set_mode()
        why = "group[G] goes on consuming topic[T] by pull"
        self.assertIn(why, str(caught.exception))
        mode = RequestMode(topic="T", consumer_group="G", mode="POP")
        self.successResultOf(self.modes.put(mode))
        self.assertEqual(self.assign("one"), [("a", 0, "PULL"), ("a", 1, "PULL")])

    def test_refused(self) -> None:
        """Unknown topics and groups, and retry topics, have no mode."""
        refusals: list[tuple[type[BrokerError], dict[str, object]]] = [
            (NoPermission, {"topic": "%RETRY%G"}),
            (TopicNotExist, {"topic": "X"}),
            (SubscriptionGroupNotExist, {"consumerGroup": "no.such"}),
        ]
        for error, changes in refusals:
            with self.assertRaises(error):
                self.set_mode(**changes)  # type: ignore[arg-type]

    def test_newGroup(self) -> None:
        """A group that may be made on first use is made by its mode, too."""
        self.assertIsNone(self.rig.groups.config("New"))
        self.assertEqual(self.set_mode(consumerGroup="New", mode="PULL").code, 0)
        self.assertIsNotNone(self.rig.groups.config("New"))
