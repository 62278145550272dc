"""Groups that read far behind."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pull.room import SLOW_GROUPS
from tests.broker.rig import Rig, logged, pull_ext, send_ext

BEHIND = 1000


class SlowGroupsTests(SynchronousTestCase):
    """With disableConsumeIfConsumerReadSlowly."""

    def setUp(self) -> None:
        """A broker with ten messages, each of some 200 bytes."""
        self.make({})

    def make(self, settings: dict[str, str]) -> None:
        """A broker with ten messages, each of some 200 bytes."""
        self.rig = Rig(
            {
                "disableConsumeIfConsumerReadSlowly": "true",
                "consumerFallbehindThreshold": str(BEHIND),
                **settings,
            }
        )
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.send(10)

    def send(self, count: int) -> None:
        """Send messages."""
        for _ in range(count):
            self.rig.ask(310, send_ext(), b"body")

    def pull(self, most: int) -> None:
        """Let group G have so many messages from the beginning."""
        self.rig.ask(11, pull_ext(maxMsgNums=str(most)))

    def look(self) -> Deferred[None]:
        """Look at all groups."""
        done = self.rig.broker.pull.slow_groups.look()
        self.rig.clock.advance(1)
        return done

    def may_consume(self) -> bool:
        """Whether group G may."""
        config = self.rig.groups.config("G")
        assert config is not None
        return config.consume_enable

    def test_slow(self) -> None:
        """A group that pulls too far behind is switched off, with a line in the log;
        its next pull is refused."""
        self.pull(1)
        (line,) = logged(self.look)
        size = self.rig.store.published_position
        self.assertIn(f"Group G reads topic T {size // 10 * 9} bytes behind", line)
        self.assertFalse(self.may_consume())
        self.assertEqual(self.rig.broker.pull.slow_groups.disabled, 1)
        answer = self.rig.ask(11, pull_ext(1))
        self.assertEqual(answer.code, 16)
        self.assertIn("subscription group no permission, G", answer.remark or "")

    def test_near(self) -> None:
        """One that is near the end, or has all messages, goes on."""
        for most in (9, 10):
            self.pull(most)
            self.assertEqual(logged(self.look), [])
            self.assertTrue(self.may_consume())

    def test_edge(self) -> None:
        """At the threshold it goes on; one byte more is too much."""
        size = self.rig.store.published_position
        self.pull(5)
        for threshold, outcome in ((size // 2, True), (size // 2 - 1, False)):
            self.rig.change(consumerFallbehindThreshold=threshold)
            self.rig.broker.pull.slow_groups._seen.clear()
            self.look()
            self.assertEqual(self.may_consume(), outcome)

    def test_quiet(self) -> None:
        """A group that has not pulled since the last look is not slow: it is away."""
        self.pull(9)
        self.look()
        self.send(50)
        self.look()
        self.assertTrue(self.may_consume())
        self.pull(10)
        self.look()
        self.assertFalse(self.may_consume())

    def test_off(self) -> None:
        """Without the setting, or with diskFallRecorded=false, nobody is too slow; both
        can be changed while the broker runs."""
        for settings in (
            {"disableConsumeIfConsumerReadSlowly": "false"},
            {"diskFallRecorded": "false"},
        ):
            self.make(settings)
            self.pull(1)
            self.look()
            self.assertTrue(self.may_consume())
            (key,) = settings
            self.rig.change(**{key: "true"})
            self.look()
            self.assertFalse(self.may_consume())

    def test_again(self) -> None:
        """An administrator lets it consume again; it is not in the file before another
        group changes."""
        self.pull(1)
        self.look()
        value: Any = self.rig.file("subscriptionGroup").load()
        self.assertTrue(value["subscriptionGroupTable"]["G"]["consumeEnable"])
        self.rig.ask(200, {}, b'{"groupName":"G","consumeEnable":true}')
        self.assertEqual(self.rig.ask(11, pull_ext(1)).code, 0)

    def test_gone(self) -> None:
        """A group or a topic that is gone is passed over."""
        self.pull(1)
        self.rig.groups.delete("G")
        self.assertEqual(logged(self.look), [])
        self.assertIsNone(self.rig.groups.config("G"))

    def test_expired(self) -> None:
        """A place whose messages are gone counts from the oldest that is there."""
        self.pull(1)
        queue = self.rig.store.queue("T", 0)
        self.rig.offsets.commit_pull("G", "T", 0, queue.min_offset - 5)
        self.look()
        self.assertFalse(self.may_consume())

    def test_stopped(self) -> None:
        """A stop ends a look quietly."""
        self.pull(1)
        done = self.rig.broker.pull.slow_groups.look()
        self.rig.broker.slices.stop()
        self.successResultOf(done)
        self.assertTrue(self.may_consume())

    def test_service(self) -> None:
        """A broker looks every three minutes."""
        self.rig.broker.start()
        self.pull(1)
        self.rig.clock.advance(179)
        self.assertTrue(self.may_consume())
        self.rig.clock.advance(1)
        self.assertFalse(self.may_consume())
        self.assertEqual(self.rig.broker.services.calls[SLOW_GROUPS].failures, 0)
