"""Pulls by SQL92, from the request to the answer."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from rocketbroker.broker.pull import long_polling
from rocketbroker.broker.pull.long_polling import HeldPull
from rocketbroker.store.interfaces import Arrival
from rocketbroker.store.reads import MessageFilter
from rocketbroker.wire.bodies.heartbeats import SubscriptionData
from rocketbroker.wire.codes import RequestCode, ResponseCode
from tests.broker.pull.pulls import PullCase, bodies
from tests.broker.rig import answered, pull_ext, send_ext

SEND = RequestCode.SEND_MESSAGE_V2
AGAIN = ResponseCode.PULL_RETRY_IMMEDIATELY


class SqlTests(PullCase):
    """Pulls by what properties say."""

    def setUp(self) -> None:
        """They are switched on."""
        self.rig = self.make(enablePropertyFilter="true")
        self.wanted = {"subscription": "a BETWEEN 1 AND 2", "expressionType": "SQL92"}

    def hold(self, offset: int = 0, opaque: int = 1, **more: str) -> None:
        """A pull that waits for what is wanted."""
        super().hold(offset, opaque, **self.wanted, **more)

    def sent(self, *values: int) -> None:
        """A message for each value of the property a."""
        for value in values:
            properties = f"UNIQ_KEY\x01U\x02a\x01{value}\x02"
            self.rig.ask(SEND, send_ext(properties=properties), b"%d" % value)

    def test_found(self) -> None:
        """Only what matches is given."""
        self.sent(0, 1, 2, 3)
        answer = self.pull(0, **self.wanted)
        self.assertEqual(bodies(answer), [b"1", b"2"])
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "4")

    def test_noMatch(self) -> None:
        """If nothing does the client goes on behind it at once."""
        self.sent(0, 3)
        answer = self.pull(0, **self.wanted)
        self.assertEqual((answer.code, answer.remark), (AGAIN, "NO_MATCHED_MESSAGE"))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "2")

    def test_held(self) -> None:
        """One that waits is woken by a message that matches, and by no other."""
        self.hold()
        self.sent(0, 3)
        self.rig.scheduler.dispatch()
        self.assertEqual(self.rig.answers(), [])
        self.sent(2)
        self.rig.scheduler.dispatch()
        (answer,) = self.rig.answers()
        self.assertEqual(bodies(answer), [b"2"])
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "3")

    def test_gone(self) -> None:
        """What cannot be looked at any more wakes nobody, and hurts nobody."""
        self.hold()
        queue = self.rig.store.queue("T", 0)
        self.sent(0)
        self.rig.scheduler.dispatch()
        self.rig.store.delete_topic("T")
        self.rig.long_polling.wake(Arrival(queue, [0]))
        self.assertEqual(self.rig.answers(), [])

    def test_mostLooked(self) -> None:
        """For all who wait in a queue so much is looked at; the others are woken by
        the regular check."""
        queue = self.rig.store.queue("T", 0)
        woken: list[object] = []
        wanted = MessageFilter(
            None, lambda properties: True, cost=long_polling.MAX_SCANNED
        )
        for number in range(2):
            held = HeldPull(
                self.rig.connection,
                queue,
                0,
                wanted,
                60.0,
                lambda held: woken.append(held.request),
                number,
            )
            self.assertTrue(self.rig.long_polling.hold(held))
        self.sent(1)
        self.rig.scheduler.dispatch()
        self.assertEqual(woken, [0])
        self.rig.long_polling.check()
        self.assertEqual(woken, [0, 1])

    def test_retries(self) -> None:
        """With filterSupportRetry what comes again is filtered as before, and tags
        count besides."""
        self.rig = self.make(filterSupportRetry="true")
        self.rig.topic("%RETRY%G", 1)
        data = SubscriptionData(
            topic="T", sub_string="a = '1'", sub_version=1, expression_type="SQL92"
        )
        self.rig.filters.register("G", [data])
        for value, tag in ((1, "x"), (2, "x"), (1, "y")):
            properties = f"RETRY_TOPIC\x01T\x02TAGS\x01{tag}\x02a\x01{value}\x02"
            ext = send_ext(topic="%RETRY%G", properties=properties)
            self.rig.ask(SEND, ext, b"%d" % value + tag.encode())
        answer = self.pull(topic="%RETRY%G", subscription="*")
        self.assertEqual(bodies(answer), [b"1x", b"1y"])
        answer = self.pull(topic="%RETRY%G", subscription="y")
        self.assertEqual(bodies(answer), [b"1y"])

    def long(self, first: int) -> dict[str, str]:
        """A subscription to the same whose expression is not compiled at once."""
        parts = [f"a <> {number}" for number in range(first, first + 200)]
        expression = " AND ".join([self.wanted["subscription"], *parts])
        return {**self.wanted, "subscription": expression}

    def test_longExpressionWaitsForItsCompiler(self) -> None:
        """A pull with a long expression is answered when that is compiled, beside the
        requests of others; the next one finds it."""
        self.sent(0, 1, 2, 3)
        long = self.long(100)
        pull = self.rig.begin(RequestCode.PULL_MESSAGE, pull_ext(0, **long))
        assert isinstance(pull, Deferred)
        self.assertNoResult(pull)
        self.assertEqual(bodies(self.pull(0, **self.wanted)), [b"1", b"2"])
        while self.rig.broker.slices.waiting:
            self.rig.clock.advance(0.01)
        self.assertEqual(bodies(answered(pull)), [b"1", b"2"])
        compiled = self.rig.filters.compiler.compiled
        self.assertEqual(bodies(self.pull(0, **long)), [b"1", b"2"])
        self.assertEqual(self.rig.filters.compiler.compiled, compiled)

    def test_longExpressionIsHeld(self) -> None:
        """A pull that waits for messages does so when its expression is compiled."""
        long = self.long(400)
        self.rig.filters.compiler.prepare(self, long["subscription"])
        while self.rig.broker.slices.waiting:
            self.rig.clock.advance(0.01)
        super().hold(0, 1, **long)
        self.sent(2)
        self.rig.scheduler.dispatch()
        (answer,) = self.rig.answers()
        self.assertEqual(bodies(answer), [b"2"])

    def test_mostCost(self) -> None:
        """Filters of held pulls have a limit together; beyond it none is held."""
        queue = self.rig.store.queue("T", 0)

        def hold(cost: int) -> bool:
            wanted = MessageFilter(None, None, cost=cost)
            return self.rig.long_polling.hold(
                HeldPull(
                    self.rig.connection, queue, 0, wanted, 60.0, lambda held: None, 0
                )
            )

        self.assertTrue(hold(long_polling.MAX_COST - 1))
        self.assertTrue(hold(1))
        self.assertFalse(hold(1))
        self.assertEqual(self.rig.long_polling.refused, 1)
        self.sent(0)
        self.rig.scheduler.dispatch()
        self.assertTrue(hold(1))

    def test_notKept(self) -> None:
        """Routes of expressions that pulls bring are not kept; what they pull is."""
        self.sent(1, 1)
        self.pull(0, **self.wanted)
        self.assertEqual(len(self.rig.pull_checks._routes), 0)
        (counts,) = self.rig.pull_checks.counters()
        self.assertEqual(counts.messages, 4)
