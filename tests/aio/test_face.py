"""The asyncio face: what it loads, and what it takes."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

import rocketbroker.aio
from rocketbroker.aio import connect
from rocketbroker.errors import ConfigurationError
from tests.faces import ERRORS, NO_CONNECTIONS, NO_CONSUMERS, OTHERS, loaded, missing

#: Loads all that a program with a producer and a consumer loads.
PROGRAM = """
from rocketbroker.aio import *
mq = connect("127.0.0.1:1")
mq.consumer("T", "G", broadcast=True)
"""


class FaceTests(SynchronousTestCase):
    """C{from rocketbroker.aio import connect}."""

    def test_asyncioAlone(self) -> None:
        """No Twisted is loaded, which might set up a reactor that nobody wants."""
        self.assertEqual(loaded(PROGRAM, "twisted"), "")
        self.assertEqual(loaded(PROGRAM, "asyncio"), "asyncio")

    def test_neitherServersNorCommandLine(self) -> None:
        """An import takes no longer than the client itself."""
        self.assertEqual(loaded(PROGRAM, *OTHERS), "")

    def test_namesAreThere(self) -> None:
        """All that the package names can be imported from it, and nothing else."""
        self.assertEqual(missing(rocketbroker.aio), [])
        self.assertEqual(set(ERRORS) - {*rocketbroker.aio.__all__}, set())
        self.assertFalse(hasattr(rocketbroker.aio, "Connection"))

    def test_wrongArgumentsAreOneSentence(self) -> None:
        """At once, not with the first message."""
        for servers, options in NO_CONNECTIONS:
            with self.assertRaises(ConfigurationError):
                connect(servers, **options)
        mq = connect("a:1")
        for topic, group, options in NO_CONSUMERS:
            with self.assertRaises(ConfigurationError):
                mq.consumer(topic, group, **options)
            with self.assertRaises(ConfigurationError):
                mq.on(topic, group=group, **options)
        wrong: list[Any] = [0, "5"]
        for concurrency in wrong:
            with self.assertRaises(ConfigurationError):
                mq.on("T", group="G", concurrency=concurrency)
