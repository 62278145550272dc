"""Tests with the official Java client: one cluster and one process for many."""

from __future__ import annotations

import atexit
import random
import time
from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.javaclient import PATIENCE, JavaClient
from scripts.lab.servers import Cluster


def fresh(prefix: str) -> str:
    """A name that no other test uses."""
    return f"{prefix}_{random.getrandbits(40):010x}"


def until(what: Any, seconds: float = PATIENCE) -> bool:
    """Whether C{what()} becomes true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.1)
    return False


class Shared:
    """One cluster and one Java process for all tests with one version.

    Trial has no fixtures of a class; these end when the next version begins, or with
    the process.
    """

    now: ClassVar[Shared | None] = None

    def __init__(self, version: str) -> None:
        self.version = version
        self.cluster = Cluster(
            transactionTimeOut=1000, transactionCheckInterval=1500
        ).start()
        try:
            self.java = JavaClient(version, self.cluster.names, self.cluster.folder)
        except BaseException:
            self.cluster.stop()
            raise

    @classmethod
    def of(cls, version: str) -> Shared:
        """Those for a version."""
        if cls.now is None or cls.now.version != version:
            cls.end()
            cls.now = cls(version)
        return cls.now

    @classmethod
    def end(cls) -> None:
        """Leave nothing running."""
        if cls.now is not None:
            now, cls.now = cls.now, None
            now.java.stop()
            now.cluster.stop()


atexit.register(Shared.end)


class JavaCase(SynchronousTestCase):
    """Topics, producers and consumers of one version of the client."""

    version = "5.3.3"

    @property
    def part(self) -> str:
        """See scripts/test.py: all tests with one version share a process."""
        return f"tests.integration.java-{self.version}"

    def setUp(self) -> None:
        """Those who share are there."""
        shared = Shared.of(self.version)
        self.cluster, self.java = shared.cluster, shared.java

    def topic(self, queues: int = 4) -> str:
        """A topic of its own, known to the name server."""
        name = fresh("T")
        self.java(
            "createTopic", topic=name, queues=queues, address=self.cluster.address
        )
        return name

    def producer(self, **words: object) -> str:
        """A started producer."""
        name = fresh("P")
        self.java("producer", name=name, group=name, **words)
        self.addCleanup(self.java, "stop", name=name)
        return name

    def consumer(self, topic: str, group: str | None = None, **words: object) -> str:
        """A started push consumer."""
        name = fresh("C")
        self.java("consumer", name=name, group=group or name, topic=topic, **words)
        self.addCleanup(self.java, "stop", name=name)
        return name
