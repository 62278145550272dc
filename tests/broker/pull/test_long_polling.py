"""Tests of L{rocketbroker.broker.pull.long_polling}."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from rocketbroker.broker.pull import long_polling
from rocketbroker.broker.pull.long_polling import CHECK_SECONDS, HeldPull, LongPolling
from rocketbroker.broker.pull.room import HELD_PULLS
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.interfaces import Arrival, IQueue
from rocketbroker.testing.connections import RecordedConnection
from tests.broker.rig import Rig, services_of


@implementer(IQueue)
class Line:
    """A queue whose end a test sets."""

    def __init__(self, queue_id: int = 0) -> None:
        self.topic = "T"
        self.topic_bytes = b"T"
        self.queue_id = queue_id
        self.min_offset = self.reported_min_offset = 0
        self.max_offset = 0
        self.next_offset = self.from_position = 0

    def arrive(self, *codes: int) -> Arrival:
        """Messages with those tag codes."""
        self.max_offset += len(codes)
        return Arrival(self, list(codes))


class HoldingTests(SynchronousTestCase):
    """Who is woken, when and by what."""

    def setUp(self) -> None:
        """One queue, one connection, nobody waits."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.clock = Clock()
        self.turns = Turns()
        self.queue = Line()
        self.connection = RecordedConnection()
        self.woken: list[object] = []
        self.long_polling = self.make()

    def make(self, **options: object) -> LongPolling:
        """What is tested, with those settings."""
        settings = BrokerOptions(**options)  # type: ignore[arg-type]
        self.services = services_of(self.clock, broker=settings)
        made = LongPolling(self.clock, self.rig.store, settings, self.turns)
        self.services.begin(HELD_PULLS, made.check)
        self.addCleanup(made.stop)
        self.addCleanup(self.services.stop)
        return made

    def held(
        self,
        name: object,
        offset: int = 0,
        seconds: float = 15.0,
        matches: Callable[[int], bool] | None = None,
        queue: Line | None = None,
        connection: RecordedConnection | None = None,
    ) -> HeldPull:
        """A pull that says its name when it is woken."""
        return HeldPull(
            connection or self.connection,
            queue or self.queue,
            offset,
            matches,
            seconds,
            lambda held: self.woken.append(held.request),
            name,
        )

    def test_double(self) -> None:
        """The queue of these tests is one."""
        verifyObject(IQueue, self.queue)

    def test_arrival(self) -> None:
        """A message at the offset that a pull waits for wakes it, once."""
        self.assertTrue(self.long_polling.hold(self.held("a")))
        self.assertEqual(self.long_polling.held, 1)
        self.long_polling.wake(self.queue.arrive(1))
        self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(self.woken, ["a"])
        self.assertEqual((self.long_polling.held, self.long_polling.woken), (0, 1))

    def test_behind(self) -> None:
        """A message before the offset wakes nobody."""
        self.long_polling.hold(self.held("a", offset=1))
        self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(self.woken, [])
        self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(self.woken, ["a"])

    def test_otherQueue(self) -> None:
        """A message in another queue wakes nobody."""
        self.long_polling.hold(self.held("a"))
        self.long_polling.wake(Line(1).arrive(1))
        self.assertEqual(self.woken, [])

    def test_filter(self) -> None:
        """Only who wants one of the tag codes is woken."""
        self.long_polling.hold(self.held("wants 7", matches=lambda code: code == 7))
        self.long_polling.hold(self.held("wants 8", matches=lambda code: code == 8))
        self.long_polling.wake(self.queue.arrive(5, 8))
        self.assertEqual(self.woken, ["wants 8"])

    def test_wantsCodes(self) -> None:
        """Tags are looked at where a pull has a filter, and nowhere else."""
        self.assertFalse(self.long_polling.wants_codes(self.queue))
        self.long_polling.hold(self.held("a"))
        self.assertFalse(self.long_polling.wants_codes(self.queue))
        self.long_polling.hold(self.held("b", matches=lambda code: False))
        self.assertTrue(self.long_polling.wants_codes(self.queue))

    def test_check(self) -> None:
        """Every few seconds who waits in a queue that moved on is woken anyway."""
        self.long_polling.hold(self.held("a", matches=lambda code: False))
        self.long_polling.wake(self.queue.arrive(5))
        self.clock.advance(CHECK_SECONDS - 0.1)
        self.assertEqual(self.woken, [])
        self.clock.advance(0.1)
        self.assertEqual(self.woken, ["a"])

    def test_checkFails(self) -> None:
        """A check that fails is logged and counted, and the next one comes."""
        self.long_polling.hold(self.held("a", matches=lambda code: False))
        del self.queue.max_offset
        self.clock.advance(CHECK_SECONDS)
        self.assertEqual(len(self.flushLoggedErrors(AttributeError)), 1)
        self.assertEqual(self.services.calls[HELD_PULLS].failures, 1)
        self.queue.max_offset = 1
        self.clock.advance(CHECK_SECONDS)
        self.assertEqual(self.woken, ["a"])

    def test_checkNothingNew(self) -> None:
        """In a queue that did not move nobody is woken by the check."""
        self.long_polling.hold(self.held("a"))
        self.clock.advance(CHECK_SECONDS)
        self.assertEqual(self.woken, [])

    def test_expiry(self) -> None:
        """Each is woken when its own time is over, in whatever order they came."""
        self.long_polling.hold(self.held("long", seconds=3.0))
        self.long_polling.hold(self.held("short", seconds=1.0))
        self.clock.advance(0.9)
        self.assertEqual(self.woken, [])
        self.clock.advance(0.1)
        self.assertEqual(self.woken, ["short"])
        self.clock.advance(2.0)
        self.assertEqual(self.woken, ["short", "long"])
        self.assertEqual(self.long_polling.expired, 2)

    def test_expiryAfterWaking(self) -> None:
        """Who was woken by a message is not woken again when the time is over."""
        self.long_polling.hold(self.held("a", seconds=1.0))
        self.long_polling.hold(self.held("b", offset=9, seconds=2.0))
        self.long_polling.wake(self.queue.arrive(1))
        self.clock.advance(4.0)
        self.assertEqual(self.woken, ["a", "b"])

    def test_noTime(self) -> None:
        """A time of zero or less is over at once."""
        self.long_polling.hold(self.held("a", seconds=-5.0))
        self.clock.advance(0)
        self.assertEqual(self.woken, ["a"])

    def test_turn(self) -> None:
        """All whose time is over are answered in one turn."""
        ended: list[int] = []
        self.turns.watch_turn_end(lambda: ended.append(len(self.woken)))
        for name in ("a", "b"):
            self.long_polling.hold(self.held(name, seconds=3.0))
        self.clock.advance(3.0)
        self.assertEqual(ended, [2])

    def test_shortPolling(self) -> None:
        """Without long polling every pull waits shortPollingTimeMills."""
        self.long_polling = self.make(
            long_polling_enable=False, short_polling_time_mills=1000
        )
        self.long_polling.hold(self.held("a", seconds=15.0))
        self.clock.advance(1.0)
        self.assertEqual(self.woken, ["a"])

    def test_closed(self) -> None:
        """A held pull goes with its connection, and nothing wakes it any more."""
        other = RecordedConnection(port=2)
        self.long_polling.hold(self.held("a"))
        self.long_polling.hold(self.held("b", connection=other))
        self.connection.close()
        self.assertEqual((self.long_polling.held, self.long_polling.dropped), (1, 1))
        self.long_polling.wake(self.queue.arrive(1))
        self.clock.advance(20.0)
        self.assertEqual(self.woken, ["b"])

    def test_closedBefore(self) -> None:
        """A pull of a connection that has gone already is held by nobody."""
        self.connection.close()
        self.assertTrue(self.long_polling.hold(self.held("a")))
        self.long_polling.wake(self.queue.arrive(1))
        self.clock.advance(20.0)
        self.assertEqual((self.long_polling.held, self.woken), (0, []))

    def test_closedByAnother(self) -> None:
        """Who goes while others are woken is not woken."""
        gone = RecordedConnection(port=2)
        first = self.held("a")
        first.resume = lambda held: gone.close()
        self.long_polling.hold(first)
        self.long_polling.hold(self.held("b", connection=gone))
        self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(self.woken, [])
        self.assertEqual(self.long_polling.held, 0)

    def test_mostPerConnection(self) -> None:
        """One connection may hold so many pulls; the next is answered at once."""
        most = long_polling.MAX_HELD_PER_CONNECTION
        for number in range(most):
            self.assertTrue(self.long_polling.hold(self.held(number)))
        self.assertFalse(self.long_polling.hold(self.held("one more")))
        self.assertEqual((self.long_polling.held, self.long_polling.refused), (most, 1))
        other = RecordedConnection(port=2)
        self.assertTrue(self.long_polling.hold(self.held("other", connection=other)))

    def test_most(self) -> None:
        """In all there may be pullThreadPoolQueueCapacity."""
        self.long_polling = self.make(pull_thread_pool_queue_capacity=2)
        for number, holds in enumerate([True, True, False]):
            connection = RecordedConnection(port=number)
            held = self.held(number, connection=connection)
            self.assertEqual(self.long_polling.hold(held), holds)

    def test_failure(self) -> None:
        """One that cannot be answered does not keep the others from it."""
        broken = self.held("broken")

        def fail(held: HeldPull) -> None:
            raise ZeroDivisionError

        broken.resume = fail
        self.long_polling.hold(broken)
        self.long_polling.hold(self.held("a"))
        self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(self.woken, ["a"])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_deadlinesStayFew(self) -> None:
        """Pulls that are woken and come again do not pile up in the timer's heap."""
        for number in range(10_000):
            self.long_polling.hold(self.held(number, offset=number))
            self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(len(self.woken), 10_000)
        self.assertLess(len(self.long_polling._deadlines), 2000)

    def test_holdAgain(self) -> None:
        """One that is woken may be held again."""
        self.long_polling.hold(self.held("a"))
        self.long_polling.wake(self.queue.arrive(1))
        self.long_polling.hold(self.held("b", offset=1))
        self.long_polling.wake(self.queue.arrive(1))
        self.assertEqual(self.woken, ["a", "b"])

    def test_stop(self) -> None:
        """After the end nobody is held any more and no timer runs."""
        self.long_polling.hold(self.held("a"))
        self.services.stop()
        self.long_polling.stop()
        self.assertFalse(self.long_polling.hold(self.held("b")))
        self.assertEqual((self.long_polling.held, self.woken), (0, []))
        self.assertEqual(self.clock.getDelayedCalls(), [])
