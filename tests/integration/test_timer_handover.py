"""Messages for a certain time that one broker has taken and the other one delivers."""

from __future__ import annotations

import signal
import time

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.files.disk import Disk
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from scripts.lab.javaclient import JavaError
from scripts.torture.handover import HandOver
from tests.heavy import HEAVY
from tests.integration.javacase import until

TOPIC = "Timers"
QUEUES = 2

#: How many messages wait when a broker stops.
COUNT = 10_000 if HEAVY else 300

#: They are due from then on, in seconds: the brokers change meanwhile.
FIRST = 40 if HEAVY else 20

#: Over so many seconds.
SPREAD = 20

#: How late they may be of a broker that was up in time; generous, because the machine
#: may be busy.
LATE_MS = 60_000

#: So long an answer may take, in seconds: before that nothing is sent again.
ANSWER_SECONDS = 30.0


class TimerHandOverTests(SynchronousTestCase):
    """From a Java broker to ours, and back."""

    def hand_over(self, how: int, twice: bool, version: str = "5.3.3") -> None:
        """Each takes messages that the other one delivers, when they are due.

        @param how: the signal that ends each broker.
        @param twice: whether some of those may come twice that were due when a broker
            was ended.
        @param version: of the Java broker.
        """
        over = HandOver(version, mappedFileSizeTimerLog=5200 * 4 + 30)
        self.addCleanup(over.stop)
        self.start_java(over)
        over.driver()(
            "createTopic", topic=TOPIC, queues=QUEUES, address=over.cluster.address
        )
        self.send(over, "java", FIRST)
        self.send(over, "java early", 1, 50)
        self.wait_for(over, "java early", 50)
        over.java.stop(how)
        if not twice:
            self.look(over)
        over.cluster.broker.start()
        up_ms = time.time_ns() // 1_000_000
        self.send(over, "ours", FIRST + SPREAD + FIRST)
        self.wait_for(over, "java ", COUNT + 50)
        time.sleep(3)
        over.cluster.broker.stop(how)
        self.start_java(over)
        up_again_ms = time.time_ns() // 1_000_000
        self.wait_for(over, "ours ", COUNT)
        time.sleep(3)
        found = self.stored(over)
        bodies = [message.body for message in found]
        self.assertEqual(len(set(bodies)), 2 * COUNT + 50)
        if not twice:
            self.assertEqual(len(bodies), len(set(bodies)))
        # Of what came twice the first copy was on time.
        first = {m.body: m for m in sorted(found, key=lambda m: -m.store_ms)}
        for message in first.values():
            due_ms = int(message.properties["TIMER_DELIVER_MS"])
            self.assertGreaterEqual(message.store_ms, due_ms)
            start_ms = up_again_ms if message.body.startswith(b"ours") else up_ms
            late_ms = message.store_ms - max(due_ms, start_ms)
            self.assertLess(late_ms, LATE_MS, f"{message}")
            self.assertEqual(message.properties["REAL_TOPIC"], TOPIC)
        print(
            f"{len(bodies) - len(set(bodies))} came twice; late at most",
            max(m.store_ms - int(m.properties["TIMER_DELIVER_MS"]) for m in found),
            "ms",
        )

    def look(self, over: HandOver) -> None:
        """The tools see in the directory what waits: all that is not delivered yet."""
        waiting = over.total("timers", "pending", "not_entered")
        reader = StoreReader(Disk(), str(over.cluster.store))
        delivered = sum(reader.max_offset(TOPIC, queue) for queue in range(QUEUES))
        reader.close()
        self.assertEqual((waiting + delivered, over.faults()), (COUNT + 50, ""))

    def start_java(self, over: HandOver) -> None:
        """Start the Java broker; one that recovers may be slow to answer at first."""
        over.java.start()

        def is_announced() -> bool:
            try:
                over.driver()("announce", address=over.cluster.address)
            except JavaError:
                return False
            return True

        self.assertTrue(until(is_announced, 120), over.java.output()[-2000:])

    def client(self, over: HandOver) -> Client:
        """A client of the broker that is up."""
        names = over.cluster.names
        return Client(Settings(names, seconds=ANSWER_SECONDS, attempts=20))

    def send(
        self, over: HandOver, prefix: str, first: float, count: int = COUNT
    ) -> None:
        """Send messages that are due from C{first} seconds on."""
        now_ms = time.time_ns() // 1_000_000
        begin = now_ms + first * 1000
        with self.client(over) as client:
            producer = Producer(client)
            sent = producer.send_all(
                Message(
                    TOPIC,
                    f"{prefix} {number}".encode(),
                    deliver_at_ms=int(begin + number * SPREAD * 1000 / count),
                )
                for number in range(count)
            )
            self.assertEqual(len(list(sent)), count)

    def stored(self, over: HandOver) -> list[StoredMessage]:
        """All that has been delivered so far."""
        found: list[StoredMessage] = []
        with self.client(over) as client:
            for queue in client.queues(TOPIC):
                end = client.max_offset(queue)
                for chunk in Puller(client).read(queue, 0, end):
                    found.extend(messages(chunk.data))
        return found

    def wait_for(self, over: HandOver, prefix: str, count: int) -> None:
        """Wait until so many messages have been delivered."""
        end = time.monotonic() + 2 * FIRST + SPREAD + 180
        found: set[bytes] = set()
        while time.monotonic() < end:
            found = {message.body for message in self.stored(over)}
            if sum(body.startswith(prefix.encode()) for body in found) >= count:
                return
            time.sleep(1)
        self.fail(f"only {len(found)}\n{over.cluster.logs()[-2000:]}")

    def test_stopped(self) -> None:
        """Between clean stops: all come, once, none early."""
        self.hand_over(signal.SIGTERM, twice=False)

    if HEAVY:

        def test_killed(self) -> None:
            """Between kills: all come, none early."""
            self.hand_over(signal.SIGKILL, twice=True)

        def test_stoppedNew(self) -> None:
            """Between clean stops of 5.5.0 and ours."""
            self.hand_over(signal.SIGTERM, twice=False, version="5.5.0")

        def test_killedNew(self) -> None:
            """Between kills of 5.5.0 and ours."""
            self.hand_over(signal.SIGKILL, twice=True, version="5.5.0")
