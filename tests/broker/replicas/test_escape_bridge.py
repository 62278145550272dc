"""What goes to another group."""

from __future__ import annotations

from functools import partial

from twisted.internet.defer import Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.forwarded_message import (
    due_message,
    half_message,
    timer_message,
)
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.broker.replicas.escape_bridge import EscapeBridge
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import (
    ConnectionLost,
    ServiceNotAvailable,
    TopicNotExist,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.bodies.routes import BrokerData, QueueData, TopicRouteData
from rocketbroker.wire.codes import ResponseCode
from tests.broker.callers import Call, Caller
from tests.broker.escaping import stored
from tests.broker.rig import logged
from tests.records.samples import example


def broker(
    name: str, perm: int = 6, number: int = 0, queues: int = 2
) -> tuple[QueueData, BrokerData]:
    """A broker that has the topic."""
    return (
        QueueData(broker_name=name, write_queue_nums=queues, perm=perm),
        BrokerData(cluster="C", broker_name=name, broker_addrs={number: f"{name}:1"}),
    )


class EscapeBridgeTests(SynchronousTestCase):
    """L{EscapeBridge} of slave 1 of group a."""

    def setUp(self) -> None:
        """Groups a and b have the topic."""
        self.caller = Caller()
        self.asked = 0
        self.route(broker("a"), broker("b"))
        self.make(enable_remote_escape=True)

    def make(self, enable_remote_escape: bool) -> None:
        """A bridge with that setting."""
        routes = RouteCache(lambda: 0.0, "a", lambda: ["n:1"], self.answer)
        all_of_them = BrokerOptions(
            broker_name="a",
            broker_id=1,
            enable_slave_acting_master=True,
            enable_remote_escape=enable_remote_escape,
        )
        self.bridge = EscapeBridge(self.caller, routes, all_of_them)

    def route(self, *brokers: tuple[QueueData, BrokerData]) -> None:
        """What name servers answer."""
        self.brokers = brokers

    def answer(self, server: str, topic: str) -> Deferred[TopicRouteData]:
        """A name server's answer."""
        self.asked += 1
        if not self.brokers:
            return fail(TopicNotExist(topic))
        queues, brokers = zip(*self.brokers, strict=True)
        return succeed(
            TopicRouteData(queue_datas=list(queues), broker_datas=list(brokers))
        )

    def put(self, half: bool = False, **properties: str) -> Deferred[bool]:
        """Put a message of queue 3."""
        message = stored(1, **properties)
        escaped = half_message(message) if half else due_message(message)
        return Deferred.fromCoroutine(self.bridge.put(escaped))

    def get(self, name: str = "b") -> Deferred[StoredMessage | None]:
        """Ask for message 7 of queue 3 of a broker."""
        return Deferred.fromCoroutine(self.bridge.get(name, "T", 3, 7))

    def call(self) -> Call:
        """The one request that waits."""
        (call,) = self.caller.take()
        return call

    def test_get(self) -> None:
        """A message of another broker is pulled there, as by a consumer of its own."""
        done = self.get()
        call = self.call()
        self.assertEqual(
            (call.address, call.command.code, call.timeout), ("b:1", 11, 10)
        )
        ext = call.command.ext or {}
        self.assertEqual(ext["consumerGroup"], "InnerConsumerGroup_a_1")
        self.assertEqual((ext["queueId"], ext["queueOffset"]), ("3", "7"))
        record = example(body=b"there", queue_id=3, queue_offset=7)
        call.answer(body=record)
        message = self.successResultOf(done)
        assert message is not None
        self.assertEqual(message.body, b"there")

    def test_getGone(self) -> None:
        """What was removed is gone; what a copy has not got yet may come."""
        bounds = {"nextBeginOffset": "9", "minOffset": "9", "maxOffset": "12"}
        ext = {"suggestWhichBrokerId": "0", **bounds}
        done = self.get()
        self.call().answer(ResponseCode.PULL_OFFSET_MOVED, ext=ext)
        self.assertIsNone(self.successResultOf(done))
        done = self.get()
        self.call().answer(
            ResponseCode.PULL_NOT_FOUND, ext={**ext, "minOffset": "0", "maxOffset": "7"}
        )
        self.failureResultOf(done, ServiceNotAvailable)

    def test_getRefused(self) -> None:
        """A broker that is not known, or does not answer, may do so later."""
        self.failureResultOf(self.get("c"), ServiceNotAvailable)
        done = self.get()
        self.call().fail()
        self.failureResultOf(done, ConnectionLost)

    def test_checkPoints(self) -> None:
        """Check points and what acknowledges them all go to one broker, with the times
        at which they are due."""
        self.route(broker("a"), broker("b"), broker("c"), broker("d"))
        found = set()
        for _ in range(5):
            topic = "rmq_sys_REVIVE_LOG_c"
            message = stored(topic=topic, TIMER_OUT_MS="5000")
            escaped = timer_message(message, False, 1000)
            assert escaped is not None
            done = Deferred.fromCoroutine(self.bridge.put(escaped))
            call = self.call()
            call.answer()
            self.assertTrue(self.successResultOf(done))
            found.add(call.address)
            self.assertIn("TIMER_OUT_MS\x015000", (call.command.ext or {})["i"])
        self.assertEqual(len(found), 1)

    def test_put(self) -> None:
        """A message is sent as a producer would send it, and counts when it is
        stored."""
        done = self.put(UNIQ_KEY="u")
        call = self.call()
        self.assertEqual(
            (call.address, call.command.code, call.timeout), ("b:1", 310, 3)
        )
        self.assertEqual(call.command.body, b"b")
        self.assertEqual(
            call.command.ext,
            {
                "a": "InnerProducerGroup_a_1",
                "b": "T",
                "c": "TBW102",
                "d": "8",
                "e": "1",
                "f": "1",
                "g": "1",
                "h": "5",
                "i": "UNIQ_KEY\x01u\x02REAL_TOPIC\x01T\x02REAL_QID\x013\x02"
                "WAIT\x01false\x02",
                "j": "6",
                "k": "false",
                "m": "false",
                "n": "b",
            },
        )
        self.assertNoResult(done)
        call.answer()
        self.assertTrue(self.successResultOf(done))
        self.assertEqual((self.bridge.sent, self.bridge.failures), (1, 0))

    def test_half(self) -> None:
        """A half message goes under its producer's group, as a prepared one."""
        self.put(half=True, PGROUP="P")
        ext = self.call().command.ext or {}
        self.assertEqual((ext["a"], ext["b"], ext["f"]), ("P", "T", "5"))
        self.assertIn("TRAN_MSG\x01true\x02", ext["i"])

    def test_statuses(self) -> None:
        """Anything but SEND_OK is a failure, and is logged once."""
        for code in (10, 11, 12, 1, 2, 14):
            done = self.put()
            lines = logged(partial(self.call().answer, code))
            self.assertFalse(self.successResultOf(done))
            self.assertLessEqual(len(lines), 1)
        done = self.put()
        self.call().fail()
        self.assertFalse(self.successResultOf(done))
        self.assertEqual((self.bridge.sent, self.bridge.failures), (0, 7))

    def test_routes(self) -> None:
        """A route is asked for once, and anew after a failure."""
        for _ in range(2):
            self.put()
            self.call().answer()
        self.assertEqual(self.asked, 1)
        self.put()
        self.call().fail()
        self.put()
        self.assertEqual(self.asked, 2)

    def test_turns(self) -> None:
        """Brokers take turns; what is in one queue stays in one."""
        self.route(broker("a"), broker("b", queues=3), broker("c", queues=2))
        found = set()
        for _ in range(4):
            self.put()
            call = self.call()
            found.add((call.address, (call.command.ext or {})["e"]))
        self.assertEqual(found, {("b:1", "0"), ("c:1", "1")})

    def test_nowhere(self) -> None:
        """Neither its own group takes it, nor one without a master, without write
        permission or without queues; then it waits."""
        for brokers in (
            (),
            (broker("a"),),
            (broker("b", number=1),),
            (broker("b", perm=4),),
            (broker("b", queues=0),),
        ):
            self.route(*brokers)
            self.assertFalse(self.successResultOf(self.put()))
        self.assertEqual((self.caller.calls, self.bridge.failures), ([], 5))

    def test_closed(self) -> None:
        """Without enableRemoteEscape nothing goes anywhere."""
        self.make(enable_remote_escape=False)
        lines = logged(lambda: self.assertFalse(self.successResultOf(self.put())))
        self.assertIn("enableRemoteEscape is off", lines[0])
        self.assertEqual((self.caller.calls, self.bridge.failures), ([], 1))
