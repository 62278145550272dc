"""Delayed messages that one broker has taken and the other one delivers."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.fastjson import loads
from scripts.torture.handover import HandOver
from tests.heavy import HEAVY

#: A broker stops and the other one starts while messages of level 2 wait: some 15 s
#: after they were sent, and later on a busy machine.
LEVELS = "1s 45s"
WAIT_MS = 45_000

#: How much later they may be delivered by a broker that was up in time; generous,
#: because the machine may be busy.
LATE_MS = 20_000

#: How long it is waited for what must come, in seconds.
MAX_SECONDS = 180.0

TOPIC = "Delays"
QUEUES = 2

#: How many messages of each level each broker takes.
COUNT = 40


class DelayHandOverTests(SynchronousTestCase):
    """From a Java broker to ours, and back."""

    def hand_over(self, version: str, how: int) -> None:
        """Each takes messages that the other one delivers, when they are due, once.

        @param how: the signal that ends each broker.
        """
        over = HandOver(
            version, messageDelayLevel=LEVELS, flushDelayOffsetInterval=1000
        )
        self.addCleanup(over.stop)
        over.start_java()
        over.driver()(
            "createTopic", topic=TOPIC, queues=QUEUES, address=over.cluster.address
        )
        self.send(over, "java")
        self.wait_for(over, "java 1 ", COUNT)
        self.wait_until_noted(over, {1: COUNT})
        over.java.stop(how)
        over.cluster.broker.start()
        up_ms = time.time_ns() // 1_000_000
        # So much later than Java's that none of these is due before ours is stopped.
        time.sleep(10)
        self.send(over, "ours")
        self.wait_for(over, "java 2 ", COUNT)
        self.wait_for(over, "ours 1 ", COUNT)
        self.wait_until_noted(over, {1: 2 * COUNT, 2: COUNT})
        over.cluster.broker.stop(how)
        over.start_java()
        self.wait_for(over, "ours 2 ", COUNT)
        found = self.stored(over)
        bodies = [message.body for message in found]
        self.assertEqual(len(bodies), 4 * COUNT)
        self.assertEqual(len(set(bodies)), 4 * COUNT)
        for message in found:
            waited = message.store_ms - message.born_ms
            if message.body.startswith(b"java 2 "):
                late = message.store_ms - max(message.born_ms + WAIT_MS, up_ms)
                self.assertTrue(late <= LATE_MS, f"{message}: {late}")
                self.assertGreaterEqual(waited, WAIT_MS)
            elif message.body.startswith(b"ours 1 "):
                self.assertTrue(1000 <= waited <= 1000 + LATE_MS, f"{message} {waited}")
            elif message.body.startswith(b"ours 2 "):
                self.assertGreaterEqual(waited, WAIT_MS)
            self.assertEqual(message.properties["REAL_TOPIC"], TOPIC)

    def send(self, over: HandOver, prefix: str) -> None:
        """Send messages of both levels to the broker that is up."""
        driver = over.driver()
        for number in range(COUNT):
            for level in (1, 2):
                body = f"{prefix} {level} {number}".encode()
                place = {"broker": "broker-a", "queue": number % QUEUES}
                driver.send("p", TOPIC, body, delayLevel=level, **place)

    def stored(self, over: HandOver) -> list[StoredMessage]:
        """All that has been delivered so far."""
        found: list[StoredMessage] = []
        with Client(Settings(over.cluster.names, attempts=20)) as client:
            for queue in client.queues(TOPIC):
                until = client.max_offset(queue)
                for chunk in Puller(client).read(queue, 0, until):
                    found.extend(messages(chunk.data))
        return found

    def wait_until_noted(self, over: HandOver, wanted: dict[int, int]) -> None:
        """Wait until the broker has noted how many messages of each level it has
        delivered; it does so every second."""
        path = over.cluster.store / "config" / "delayOffset.json"
        found: Any = None
        end = time.monotonic() + MAX_SECONDS
        while time.monotonic() < end:
            # It may be written just now.
            with contextlib.suppress(FileNotFoundError, RemoteProtocolError):
                found = loads(path.read_bytes())
                table = {int(each): at for each, at in found["offsetTable"].items()}
                if wanted.items() <= table.items():
                    return
            time.sleep(0.1)
        self.fail(f"{found}, not {wanted}")

    def wait_for(self, over: HandOver, prefix: str, count: int) -> None:
        """Wait until so many messages have been delivered."""
        end = time.monotonic() + MAX_SECONDS
        while time.monotonic() < end:
            found = [m.body.decode() for m in self.stored(over)]
            if sum(body.startswith(prefix) for body in found) >= count:
                return
            time.sleep(0.2)
        self.fail(f"only {found}\n{over.cluster.logs()[-2000:]}")

    def test_killed(self) -> None:
        """Between kills of 5.3.3 and ours, after both have noted what they did."""
        self.hand_over("5.3.3", signal.SIGKILL)

    if HEAVY:

        def test_stoppedOld(self) -> None:
            """Between clean stops of 4.9.7 and ours."""
            self.hand_over("4.9.7", signal.SIGTERM)

        def test_stopped(self) -> None:
            """Between clean stops of 5.3.3 and ours."""
            self.hand_over("5.3.3", signal.SIGTERM)

        def test_stoppedNew(self) -> None:
            """Between clean stops of 5.5.0 and ours."""
            self.hand_over("5.5.0", signal.SIGTERM)

        def test_killedNew(self) -> None:
            """Between kills of 5.5.0 and ours."""
            self.hand_over("5.5.0", signal.SIGKILL)
