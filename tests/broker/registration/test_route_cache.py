"""What name servers say of topics that are not here."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.route_cache import (
    ANSWER_SECONDS,
    MAX_ASKED,
    MAX_KNOWN,
    RouteCache,
)
from rocketbroker.errors import ConnectionLost, TopicNotExist
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData

ROUTE = TopicRouteData(queue_datas=[QueueData(broker_name="b", perm=6)])


class ElsewhereTests(SynchronousTestCase):
    """L{RouteCache}."""

    def setUp(self) -> None:
        """Two name servers that have not answered yet."""
        self.clock = Clock()
        self.asked: list[tuple[str, str, Deferred[TopicRouteData]]] = []
        self.route_cache = RouteCache(self.clock.seconds, "a", ["n1", "n2"], self.route)

    def route(self, server: str, topic: str) -> Deferred[TopicRouteData]:
        """One question."""
        answer: Deferred[TopicRouteData] = Deferred()
        self.asked.append((server, topic, answer))
        return answer

    def test_answers(self) -> None:
        """Nothing is known until there is an answer; then that is, for a minute."""
        for topic, answer, known in (
            ("T", ROUTE, True),
            ("U", TopicNotExist("U"), False),
            ("V", TopicRouteData(), False),
            ("W", TopicRouteData(queue_datas=[QueueData(broker_name="a")]), False),
        ):
            for _ in range(2):
                self.assertIsNone(self.route_cache.has(topic))
            self.assertTrue(self.route_cache.may_appear(topic))
            ((server, about, fires),) = self.asked
            self.assertEqual((server, about), ("n1", topic))
            if isinstance(answer, TopicRouteData):
                fires.callback(answer)
            else:
                fires.errback(answer)
            self.assertEqual(self.route_cache.has(topic), known)
            self.assertEqual(self.route_cache.may_appear(topic), not known)
            self.assertEqual(len(self.asked), 1)
            self.asked.clear()

    def test_old(self) -> None:
        """What was known before is so until there is a new answer."""
        self.route_cache.has("T")
        self.asked.pop()[2].callback(ROUTE)
        self.clock.advance(ANSWER_SECONDS)
        self.assertTrue(self.route_cache.has("T"))
        self.asked.pop()[2].errback(TopicNotExist("T"))
        self.assertFalse(self.route_cache.has("T"))

    def test_silent(self) -> None:
        """A name server that does not answer is followed by the next one; if none does,
        nothing is known, and they are asked again."""
        for server in ("n1", "n2", "n1"):
            self.assertIsNone(self.route_cache.has("T"))
            ((asked, _, fires),) = self.asked
            self.assertEqual(asked, server)
            self.asked.clear()
            fires.errback(ConnectionLost("gone"))

    def test_none(self) -> None:
        """Without name servers there are no other brokers."""
        alone = RouteCache(self.clock.seconds, "a", [], self.route)
        self.assertIs(alone.has("T"), False)
        self.assertFalse(alone.may_appear("T"))
        self.assertEqual(self.asked, [])

    def test_limits(self) -> None:
        """Only so many questions are under way, and so many answers are kept."""
        for number in range(MAX_ASKED + 1):
            self.assertIsNone(self.route_cache.has(f"T{number}"))
        self.assertEqual(len(self.asked), MAX_ASKED)
        for number in range(MAX_KNOWN + MAX_ASKED):
            self.route_cache.has(f"U{number}")
            self.asked.pop(0)[2].callback(ROUTE)
        known = [self.route_cache.has(f"U{n}") for n in range(MAX_KNOWN + MAX_ASKED)]
        self.assertLess(known.count(True), MAX_KNOWN)
