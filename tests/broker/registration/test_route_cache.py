"""Routes of topics, as name servers know them."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.route_cache import (
    ANSWER_SECONDS,
    MAX_ASKED,
    MAX_KNOWN,
    RouteCache,
)
from rocketbroker.errors import ConnectionLost, RequestTimeout, TopicNotExist
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData

ROUTE = TopicRouteData(queue_datas=[QueueData(broker_name="b", perm=6)])


class RouteCacheCase(SynchronousTestCase):
    """A cache, and name servers that answer when the test says so."""

    def setUp(self) -> None:
        """Two name servers that have not answered yet."""
        self.clock = Clock()
        self.asked: list[tuple[str, str, Deferred[TopicRouteData]]] = []
        self.route_cache = RouteCache(
            self.clock.seconds, "a", lambda: ["n1", "n2"], self.route
        )

    def route(self, server: str, topic: str) -> Deferred[TopicRouteData]:
        """One question."""
        answer: Deferred[TopicRouteData] = Deferred()
        self.asked.append((server, topic, answer))
        return answer


class HasTests(RouteCacheCase):
    """L{RouteCache.has}."""

    def test_answers(self) -> None:
        """Nothing is known until there is an answer, which holds for a while. A topic
        is not there if no name server has it."""
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
                self.asked.pop()[2].errback(answer)
            self.assertEqual(self.route_cache.has(topic), known)
            self.assertEqual(self.route_cache.may_appear(topic), not known)
            self.assertEqual(len(self.asked), 1)
            self.asked.clear()

    def test_old(self) -> None:
        """The last answer holds until there is a new one."""
        self.route_cache.has("T")
        self.asked.pop()[2].callback(ROUTE)
        self.clock.advance(ANSWER_SECONDS)
        self.assertTrue(self.route_cache.has("T"))
        for _ in ("n1", "n2"):
            self.asked.pop()[2].errback(TopicNotExist("T"))
        self.assertIs(self.route_cache.has("T"), False)

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
        alone = RouteCache(self.clock.seconds, "a", list, self.route)
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


class QueuesTests(RouteCacheCase):
    """L{RouteCache.queues}."""

    def queues(self) -> Deferred[Sequence[QueueData]]:
        """Ask for the queues of topic T."""
        return Deferred.fromCoroutine(self.route_cache.queues("T"))

    def answer(self, answer: TopicRouteData | Exception) -> str:
        """Answer the only question; the name server that was asked."""
        ((server, _, fires),) = self.asked
        self.asked.clear()
        if isinstance(answer, TopicRouteData):
            fires.callback(answer)
        else:
            fires.errback(answer)
        return server

    def test_kept(self) -> None:
        """A route is asked for once in a while, whoever needs it."""
        found = self.queues()
        self.assertEqual(self.answer(ROUTE), "n1")
        self.assertEqual(self.successResultOf(found), ROUTE.queue_datas)
        self.assertEqual(self.successResultOf(self.queues()), ROUTE.queue_datas)
        self.assertIs(self.route_cache.has("T"), True)
        self.assertEqual(self.asked, [])
        self.clock.advance(ANSWER_SECONDS)
        self.queues()
        self.assertEqual(len(self.asked), 1)

    def test_next(self) -> None:
        """After a name server that fails or does not know the topic the next one is
        asked."""
        for error in (RequestTimeout("late"), TopicNotExist("T")):
            self.clock.advance(ANSWER_SECONDS)
            found = self.queues()
            servers = [self.answer(error), self.answer(ROUTE)]
            self.assertEqual(servers, ["n1", "n2"])
            self.assertEqual(self.successResultOf(found), ROUTE.queue_datas)

    def test_last(self) -> None:
        """While no name server has the topic, the last route holds, and is asked for
        each time."""
        self.queues()
        self.answer(ROUTE)
        for error in (RequestTimeout("late"), TopicNotExist("T"), TopicNotExist("T")):
            self.clock.advance(ANSWER_SECONDS)
            found = self.queues()
            self.answer(error)
            self.answer(error)
            self.assertEqual(self.successResultOf(found), ROUTE.queue_datas)
        self.assertIs(self.route_cache.has("T"), False)
        self.queues()
        self.assertEqual(len(self.asked), 1)

    def test_unknown(self) -> None:
        """A topic that nobody has ever had has no queues."""
        found = self.queues()
        self.answer(TopicNotExist("T"))
        self.answer(TopicNotExist("T"))
        self.assertFalse(self.successResultOf(found))
