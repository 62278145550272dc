"""Plug-ins of the store."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import current_thread

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.plugins import OwnThread, followers_of, wrapped
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk


class Reactor:
    """Takes what threads have for the reactor's."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[tuple[Callable[[object], None], object]] = SimpleQueue()

    def callFromThread(self, function: Callable[[object], None], value: object) -> None:
        """A thread has something."""
        self.calls.put((function, value))

    def step(self) -> None:
        """Wait for that and do it."""
        function, value = self.calls.get()
        function(value)


class ChosenTests(SynchronousTestCase):
    """What settings name; the finding of what is there has an integration test."""

    def store(self) -> Store:
        """A store that nobody opens."""
        settings = BrokerSettings.from_properties({})
        return Store(MemoryDisk(), settings.store, lambda: 0, bytes(8))

    def test_none(self) -> None:
        """Without a name the store is what it is, and nobody follows."""
        settings = BrokerSettings.from_properties({"messageStorePlugIn": " , "})
        store = self.store()
        self.assertIs(wrapped(store, settings), store)
        self.assertEqual(followers_of(settings, Reactor()), [])

    def test_unknown(self) -> None:
        """A name that nothing has is refused in one sentence, classes of Java's too."""
        for key in ("messageStorePlugIn", "dispatchFollowers"):
            given = {key: "org.apache.rocketmq.tieredstore.TieredMessageStore"}
            settings = BrokerSettings.from_properties(given)
            with self.assertRaises(ConfigurationError) as caught:
                wrapped(self.store(), settings)
                followers_of(settings, Reactor())
            self.assertEqual(
                str(caught.exception),
                f"{key} names the plug-in "
                "'org.apache.rocketmq.tieredstore.TieredMessageStore', which cannot be "
                "found; there are: none.",
            )


class OwnThreadTests(SynchronousTestCase):
    """A thread that nobody else uses."""

    def test_runs(self) -> None:
        """Functions run one after the other in one other thread."""
        reactor = Reactor()
        thread = OwnThread(reactor, "mine")
        done = [thread(current_thread) for _ in range(2)]
        for one in done:
            self.assertNoResult(one)
            reactor.step()
        first, second = (self.successResultOf(one) for one in done)
        self.assertIs(first, second)
        self.assertEqual(first.name, "mine")
        self.assertTrue(first.daemon)

    def test_fails(self) -> None:
        """What a function raises comes back, and the thread goes on."""
        reactor = Reactor()
        thread = OwnThread(reactor, "mine")
        failed = thread(lambda: 1 // 0)
        reactor.step()
        self.failureResultOf(failed, ZeroDivisionError)
        good = thread(lambda: 7)
        reactor.step()
        self.assertEqual(self.successResultOf(good), 7)

    def test_tooLate(self) -> None:
        """What comes after nobody waits for it any more harms nobody."""
        reactor = Reactor()
        thread = OwnThread(reactor, "mine")
        done = thread(lambda: 7)
        done.addErrback(lambda _: None)
        done.cancel()
        reactor.step()
