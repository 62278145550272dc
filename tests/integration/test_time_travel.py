"""`rocketbroker standalone --testing`: days in a second, and faults on real sockets."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from datetime import timedelta

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    ConnectionLost,
    RequestCodeNotSupported,
    RequestTimeout,
    SystemBusy,
)
from rocketbroker.testing.control import add_fault, advance, broker_time, faults
from rocketbroker.threads import connect
from rocketbroker.wire.codes import RequestCode
from scripts.lab.servers import environment

#: How long something may take that comes by itself.
SECONDS = 60


class TestingCase(SynchronousTestCase):
    """A standalone of its own."""

    flags = "--testing"

    def setUp(self) -> None:
        """It is ready, and has a client."""
        words = (
            f"standalone {self.flags} --temporary --namesrv-port 0 --port 0 "
            "--metrics-port 0 --exit-with-parent --output json"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "rocketbroker.cli.command", *words.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.terminate)
        assert process.stdout is not None
        self.ready = json.loads(process.stdout.readline())
        self.names: str = self.ready["namesrv"]
        self.broker: str = self.ready["brokers"][0]["address"]
        self.client = Client(Settings(self.names, attempts=1, patience=0))
        self.addCleanup(self.client.close)

    def until(self, what: Callable[[], bool], words: str) -> None:
        """Wait until something is so."""
        end = time.monotonic() + SECONDS
        while not what():
            self.assertLess(time.monotonic(), end, words)
            time.sleep(0.01)

    def offsets(self, topic: str) -> tuple[int, int]:
        """The first and the next offset of a topic's queue."""
        (queue,) = self.client.queues(topic)
        return self.client.min_offset(queue), self.client.max_offset(queue)


class TimeTests(TestingCase):
    """Time is moved."""

    def test_transactionTimerAndRetention(self) -> None:
        """A check after 6 seconds, a timer of 3 days, and a message that is removed
        after 72 hours, in about a second."""
        for topic in ("Paid", "Later", "Old"):
            self.client.create_topic(topic, queues=1)
        with connect(self.names, group="payments") as mq:
            asked: list[list[str]] = []

            @mq.check("Paid")
            def decide(message: object) -> bool:
                asked.append(list(getattr(message, "keys", [])))
                return True

            mq.transaction("Paid", "paid", keys=["17"])
            advance(self.client, self.broker, "5s")
            self.assertEqual((asked, self.offsets("Paid")), ([], (0, 0)))
            advance(self.client, self.broker, "1s")
            self.until(lambda: self.offsets("Paid") == (0, 1), "it was not asked")
            self.assertEqual(asked, [["17"]])

            mq.send("Later", "in three days", delay=timedelta(days=3).total_seconds())
        producer, dice = Producer(self.client), random.Random(1)
        for _ in range(3):  # The first does not share its segment with the last.
            producer.send(Message("Old", dice.randbytes(600_000)))
        advance(self.client, self.broker, "71h")
        self.assertEqual((self.offsets("Later"), self.offsets("Old")), ((0, 0), (0, 3)))
        advance(self.client, self.broker, "1h")
        self.assertGreater(self.offsets("Old")[0], 0)
        self.until(lambda: self.offsets("Later") == (0, 1), "the timer did not fire")
        self.assertEqual(
            broker_time(self.client, self.broker).ahead_ms,
            round(timedelta(hours=72, seconds=6).total_seconds() * 1000),
        )

    def test_itShowsItself(self) -> None:
        """In the ready line, and for those who look at its health."""
        self.assertIs(self.ready["testing"], True)
        advance(self.client, self.broker, "3d")
        with urllib.request.urlopen(f"http://{self.ready['metrics']}/healthz") as page:
            lines = page.read().decode().splitlines()
        self.assertEqual(lines[0], "ok")
        self.assertIn("testing: any program on this machine", lines[1])


class FaultTests(TestingCase):
    """Requests fail."""

    def test_eachFaultAsItsClientSeesIt(self) -> None:
        """On real sockets; the connection that is cut is made anew."""
        self.client.create_topic("T", queues=1)
        producer = Producer(self.client)
        message = Message("T", b"body")
        for action, error in (("busy", SystemBusy), ("cut", ConnectionLost)):
            add_fault(
                self.client, self.broker, action, topic="T", request="send", times=1
            )
            self.assertRaises(error, producer.send, message)
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        add_fault(self.client, self.broker, "drop", request=code)
        with self.assertRaises(RequestTimeout):
            self.client.ask_server(self.broker, code, seconds=0.1)
        add_fault(self.client, self.broker, "duplicate", topic="T", times=1)
        self.assertEqual(producer.send(message).queue_offset, 0)
        self.assertEqual(self.offsets("T"), (0, 2))
        hits = [fault.hits for fault in faults(self.client, self.broker)]
        self.assertEqual(hits, [1, 1, 1, 1])


class OtherModeTests(TestingCase):
    """Without --testing."""

    flags = ""

    def test_requestsAreUnknown(self) -> None:
        """They are answered as one that nobody knows."""
        self.assertNotIn("testing", self.ready)
        words = []
        for code in (31010, 31011, 31999):
            with self.assertRaises(RequestCodeNotSupported) as caught:
                self.client.ask_server(self.broker, code)
            words.append(str(caught.exception).replace(str(code), "N"))
        self.assertEqual(
            words,
            [
                " request type N (TESTING_FAULTS) not supported",
                " request type N (TESTING_TIME) not supported",
                " request type N not supported",
            ],
        )
