"""The face for Twisted."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

import rocketbroker.deferred
from rocketbroker.deferred import Message, connect
from rocketbroker.errors import ClientClosed, ConfigurationError, ConnectionLost
from rocketbroker.testing.network import MemoryNetwork
from tests.faces import ERRORS, NO_CONNECTIONS, NO_CONSUMERS, OTHERS, loaded, missing

#: Loads all that a program with a producer and a consumer loads.
PROGRAM = """
from rocketbroker.deferred import *
from twisted.internet.task import Clock
mq = connect(Clock(), "127.0.0.1:1")
mq.consumer("T", "G", broadcast=True)
"""


class FaceTests(SynchronousTestCase):
    """C{from rocketbroker.deferred import connect}."""

    def setUp(self) -> None:
        self.network = MemoryNetwork()

    def connect(self, servers: Any = "127.0.0.1:1", **options: Any) -> Any:
        """A session on the memory network."""
        return connect(cast(Any, self.network), servers, **options)

    def test_noAsyncio(self) -> None:
        """But what Twisted itself loads for its Deferreds; nor is a reactor installed:
        the program chooses it."""
        ours = "rocketbroker.client.runtimes.on_asyncio"
        self.assertEqual(loaded(PROGRAM, ours, "twisted.internet.reactor"), "")
        twisteds = loaded("import twisted.internet.defer", "asyncio.runners")
        self.assertEqual(loaded(PROGRAM, "asyncio.runners"), twisteds)

    def test_neitherServersNorCommandLine(self) -> None:
        """An import takes no longer than the client itself."""
        self.assertEqual(loaded(PROGRAM, *OTHERS), "")

    def test_namesAreThere(self) -> None:
        """All that the package names can be imported from it, and nothing else."""
        self.assertEqual(missing(rocketbroker.deferred), [])
        self.assertEqual(set(ERRORS) - {*rocketbroker.deferred.__all__}, set())
        self.assertFalse(hasattr(rocketbroker.deferred, "Connection"))

    def test_wrongArgumentsAreOneSentence(self) -> None:
        """At once, not with the first message."""
        no_reactor: Any = "127.0.0.1:9876"
        with self.assertRaises(ConfigurationError):
            connect(no_reactor)
        for servers, options in NO_CONNECTIONS:
            with self.assertRaises(ConfigurationError):
                self.connect(servers, **options)
        mq = self.connect()
        for topic, group, options in NO_CONSUMERS:
            with self.assertRaises(ConfigurationError):
                mq.consumer(topic, group, **options)
            with self.assertRaises(ConfigurationError):
                mq.on(topic, group=group, **options)

    def test_streamOfSendsIsIteratedOver(self) -> None:
        """In a coroutine, which a failure ends."""
        mq = self.connect()

        async def send() -> None:
            async for _ in mq.send_all([Message("T", "x")], patience=0):
                raise AssertionError("nobody is there")

        sending = Deferred.fromCoroutine(send())
        self.network.advance(0.01)
        self.failureResultOf(sending, ConnectionLost)
        closing = mq.close()
        self.network.settle()
        self.successResultOf(closing)

    def test_failuresComeByDeferred(self) -> None:
        """When the patience is over, and at once when it is closed."""
        mq = self.connect(patience=2.0)
        sending = mq.send("T", "x")
        self.network.advance(0.01)
        self.assertNoResult(sending)
        for _ in range(30):
            self.network.advance(0.1)
        self.failureResultOf(sending, ConnectionLost)
        closing = mq.close()
        self.network.settle()
        self.successResultOf(closing)
        self.failureResultOf(mq.send("T", "x"), ClientClosed)
        self.assertEqual(self.network.getDelayedCalls(), [])
