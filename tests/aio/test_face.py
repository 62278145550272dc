"""The asyncio face: what it loads, and what it takes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

import rocketbroker.aio
from rocketbroker.aio import connect
from rocketbroker.errors import ConfigurationError
from tests.integration.servers import ROOT, environment

#: Loads all that a program with a producer and a consumer loads; prints what it should
#: not have.
PROGRAM = """
import sys
from rocketbroker.aio import *
from rocketbroker.aio import connect
mq = connect("127.0.0.1:1")
mq.consumer("T", "G")
mq.producer_group = None
""".replace("mq.producer_group = None\n", "")

SHOW = "print(sorted({name.split('.')[0] for name in sys.modules} & {%r}))"


class FaceTests(SynchronousTestCase):
    """C{from rocketbroker.aio import connect}."""

    def test_asyncioAlone(self) -> None:
        """No Twisted is loaded, which might set up a reactor that nobody wants."""
        found = subprocess.run(
            [sys.executable, "-c", PROGRAM + SHOW % "twisted"],
            capture_output=True,
            cwd=ROOT,
            env=environment(),
            check=False,
        )
        self.assertEqual(found.stdout.decode(), "[]\n", found.stderr.decode())

    def test_namesAreThere(self) -> None:
        """All that the package names can be imported from it, and nothing else."""
        for name in rocketbroker.aio.__all__:
            self.assertTrue(hasattr(rocketbroker.aio, name), name)
        self.assertFalse(hasattr(rocketbroker.aio, "Connection"))

    def test_wrongArgumentsAreOneSentence(self) -> None:
        """At once, not with the first message."""
        wrong: list[tuple[Any, dict[str, Any]]] = [
            ("nowhere", {}),
            ([], {}),
            ("a:1", {"second": 5}),
            ("a:1", {"seconds": -5}),
            ("a:1", {"compress": "rar"}),
        ]
        for servers, options in wrong:
            with self.assertRaises(ConfigurationError):
                connect(servers, **options)
        consumers: list[tuple[Any, Any, dict[str, Any]]] = [
            ("T", "", {}),
            ("T", None, {}),
            ("a b", "G", {}),
            ("T", "G", {"tags": "a > 5"}),
            ("T", "G", {"start": "first"}),
            ("T", "G", {"wait": None}),
        ]
        mq = connect("a:1")
        for topic, group, options in consumers:
            with self.assertRaises(ConfigurationError):
                mq.consumer(topic, group, **options)
            with self.assertRaises(ConfigurationError):
                mq.on(topic, group=group, **options)
        with self.assertRaises(ConfigurationError):
            mq.on("T", group="G", concurrency=0)
