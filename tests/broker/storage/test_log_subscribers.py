"""Plug-ins that see what was stored."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.storage import log_subscribers
from rocketbroker.broker.storage.log_subscribers import LogSubscriber, LogSubscribers
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import Rig
from tests.broker.storage.subscribers import Plugin

FILE = "/store/config/f.json"


class FollowingTests(SynchronousTestCase):
    """One follower, stepped by hand."""

    def setUp(self) -> None:
        """A broker's data path, and a follower that nobody has started."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.begin()

    def begin(self) -> None:
        """A broker that begins."""
        rig = self.rig
        self.plugin = Plugin()
        self.recorder = self.plugin.recorder
        self.threads = Threads()
        self.followers = LogSubscribers(rig.clock, rig.file("f"))
        self.following = LogSubscriber(
            rig.clock, rig.store, self.plugin, self.threads, "/x", {"key": "value"}
        )
        self.followers.add(self.following)
        self.followers.load()

    def put(self, count: int = 1) -> None:
        """Messages that are dispatched and on the disk."""
        for _ in range(count):
            self.rig.append()
        self.rig.scheduler.dispatch()
        self.rig.store.flush()

    def live(self, seconds: float = 1.0) -> None:
        """Let time pass, and threads work."""
        for _ in range(round(seconds / log_subscribers.IDLE_SECONDS)):
            self.threads.run()
            self.rig.clock.advance(log_subscribers.IDLE_SECONDS)

    def stop(self) -> None:
        """Stop all."""
        stopped = self.followers.stop()
        while self.threads.waiting:
            self.threads.run()
        self.successResultOf(stopped)

    def test_follows(self) -> None:
        """It sees what is there already, and then what comes, each once."""
        self.put(3)
        self.begin()
        self.followers.start()
        self.live()
        self.assertEqual(self.recorder.seen, [0, 1, 2])
        self.put()
        self.live()
        self.assertEqual(self.recorder.seen, [0, 1, 2, 3])
        end = self.rig.store.published_position
        self.assertEqual(self.following.position, end)
        self.assertEqual(self.recorder.calls[0], ("start", None, self.ends(3)))
        self.assertEqual(
            self.plugin.given, ["/x", {"key": "value"}, self.rig.store.record_at]
        )

    def ends(self, count: int) -> int:
        """The position behind so many messages."""
        record = self.rig.store.record_at(0)
        assert record is not None
        return len(record) * count

    def test_idle(self) -> None:
        """Its thread has nothing to do while nothing comes."""
        self.followers.start()
        self.live()
        self.rig.clock.pump([log_subscribers.IDLE_SECONDS] * 50)
        self.assertEqual(self.threads.waiting, [])

    def test_bounded(self) -> None:
        """Many records come in several goes."""
        self.put(log_subscribers.MAX_RECORDS + 1)
        self.followers.start()
        self.live()
        self.assertEqual(self.recorder.calls[1:], [log_subscribers.MAX_RECORDS, 1])

    def test_fails(self) -> None:
        """What it fails with is offered again, later each time, and logged."""
        self.put(2)
        self.recorder.failing = 3
        self.followers.start()
        self.threads.run()
        self.assertEqual(self.following.failures, 1)
        self.rig.clock.advance(0.9)
        self.assertEqual(self.threads.waiting, [])
        self.live(20)
        self.assertEqual(self.recorder.seen, [0, 1])
        self.assertEqual(self.following.failures, 3)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 3)

    def test_patience(self) -> None:
        """One that always fails is asked once a minute, for ever."""
        self.put()
        self.recorder.failing = 1000
        self.followers.start()
        self.live(600)
        before = self.following.failures
        self.live(600)
        self.assertEqual(self.following.failures - before, 10)
        self.assertEqual(self.following.behind_bytes(), self.ends(1))
        self.flushLoggedErrors(ValueError)

    def test_goesOn(self) -> None:
        """After a restart it goes on where it was, without seeing anything twice."""
        self.put(2)
        self.followers.start()
        self.live()
        self.stop()
        self.assertEqual(self.recorder.calls[-1], "stop")
        position = self.rig.store.published_position
        saved = loads(self.rig.disk.read(FILE))
        self.assertEqual(saved, {"followers": {"recorder": position}})
        self.begin()
        self.put()
        self.followers.start()
        self.live()
        self.assertEqual(self.recorder.calls[0][1], position)  # type: ignore[index]
        self.assertEqual(self.recorder.seen, [2])

    def test_saved(self) -> None:
        """Positions are written every few seconds, if they moved."""
        self.followers.start()
        self.put()
        self.live(6)
        self.assertTrue(self.rig.disk.exists(FILE))
        writes = self.rig.disk.calls["rename"]
        self.live(20)
        self.assertEqual(self.rig.disk.calls["rename"], writes)

    def test_ownPosition(self) -> None:
        """One that knows better where it was goes on there."""
        self.put(4)
        self.begin()
        self.recorder.begin = self.ends(3)
        self.followers.start()
        self.live()
        self.assertEqual(self.recorder.seen, [3])

    def test_beyond(self) -> None:
        """One that was further than the log was at the start goes on there: what a
        crash has taken away, other messages have taken the place of."""
        self.put(4)
        self.begin()
        self.put(2)
        self.recorder.begin = self.ends(5)
        self.followers.start()
        self.live()
        self.assertEqual(self.recorder.seen, [4, 5])

    def test_others(self) -> None:
        """The position of one that is switched off for a while is kept."""
        self.rig.disk.make_dirs("/store/config")
        text = b'{"followers": {"other": 7, "recorder": "x", "bad": -1}}'
        self.rig.disk.open(FILE, create=True).pwrite(text, 0)
        self.begin()
        self.put()
        self.followers.start()
        self.live(6)
        self.stop()
        saved = loads(self.rig.disk.read(FILE))
        position = self.rig.store.published_position
        self.assertEqual(saved, {"followers": {"other": 7, "recorder": position}})

    def test_hangs(self) -> None:
        """One that does not come to an end does not keep the broker from its."""
        self.put()
        self.followers.start()
        stopped = self.followers.stop()
        self.assertNoResult(stopped)
        self.rig.clock.advance(log_subscribers.STOP_SECONDS)
        self.successResultOf(stopped)
        self.threads.run()
        self.rig.clock.advance(60)

    def test_figures(self) -> None:
        """Operators see how far it is behind."""
        self.put(4)
        key = "dispatchFollowerBehindBytes_recorder"
        self.assertEqual(self.followers.figures(), {key: str(self.ends(4))})
        self.followers.start()
        self.live()
        self.assertEqual(self.followers.figures(), {key: "0"})

    def test_none(self) -> None:
        """Without followers there is nothing to do, to read or to write."""
        none = LogSubscribers(self.rig.clock, self.rig.file("none"))
        none.load()
        none.start()
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
        self.successResultOf(none.stop())
        self.assertFalse(self.rig.disk.exists("/store/config/none.json"))
