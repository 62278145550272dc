"""Requests to the brokers with the other physical queues."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.broker.statictopics.other_brokers import OtherBrokers
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.wire.bodies.routes import BrokerData, TopicRouteData
from rocketbroker.wire.command import Command
from tests.broker.callers import Caller
from tests.broker.rig import settings_of


class OtherBrokersTests(SynchronousTestCase):
    """A broker that asks a name server and others."""

    def setUp(self) -> None:
        """The name server knows broker b."""
        self.addresses = {"b": {0: "b:1", 1: "b:2"}}
        self.questions = 0
        self.caller = Caller()
        routes = RouteCache(lambda: 0.0, "a", lambda: ["n:1"], self.route)
        self.others = OtherBrokers(self.caller, routes, BrokerOptions())

    def route(self, server: str, topic: str) -> Deferred[TopicRouteData]:
        """What the name server answers."""
        self.questions += 1
        datas: list[Any] = [
            BrokerData(cluster="C", broker_name=name, broker_addrs=addresses)
            for name, addresses in self.addresses.items()
        ]
        return succeed(TopicRouteData(broker_datas=datas))

    def ask(self, name: str = "b") -> Deferred[Command]:
        """A request about a physical queue."""
        asked = self.others.ask("T", name, 30, {"topic": "T", "queueId": "3"})
        return Deferred.fromCoroutine(asked)

    def test_ask(self) -> None:
        """The master of the name is asked about a physical queue."""
        answer = self.ask()
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.timeout), ("b:1", 3.0))
        ext = {"topic": "T", "queueId": "3", "lo": "false", "bname": "b"}
        self.assertEqual((call.command.code, call.command.ext), (30, ext))
        call.answer(ext={"offset": "7"})
        self.assertEqual(self.successResultOf(answer).ext, {"offset": "7"})
        self.assertEqual((self.others.asked, self.questions), (1, 1))

    def test_unknown(self) -> None:
        """A name that no name server knows, or whose master is away."""
        self.failureResultOf(self.ask("c"), SystemFailure)
        self.assertEqual(self.questions, 2)
        del self.addresses["b"][0]
        self.failureResultOf(self.ask(), SystemFailure)

    def test_lost(self) -> None:
        """One that does not answer is looked for anew the next time."""
        answer = self.ask()
        self.caller.take()[0].fail()
        self.failureResultOf(answer, SystemFailure)
        self.assertEqual(self.others.failures, 1)
        self.addresses["b"][0] = "b:9"
        self.ask()
        self.assertEqual(self.caller.take()[0].address, "b:9")

    def test_timeout(self) -> None:
        """forwardTimeout says how long it waits."""
        self.others.configure(settings_of(broker=BrokerOptions(forward_timeout=500)))
        self.ask()
        self.assertEqual(self.caller.take()[0].timeout, 0.5)
