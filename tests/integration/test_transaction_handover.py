"""Transactions that one broker has begun and the other one ends."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from scripts.torture.handover import HandOver
from scripts.torture.harness import stored
from scripts.torture.transactional import TransactionalProducer
from tests.heavy import HEAVY

TOPIC = "Handed"

#: Both ask soon; the Java broker writes marks after half a second.
SETTINGS = {
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1500,
    "transactionOpBatchInterval": 500,
    "flushConsumerOffsetInterval": 1000,
}

#: How many transactions of each kind.
COUNT = 20

#: So long a broker has for the marks of what has ended.
SECONDS = 8.0

#: So long it may take for its questions, and for what it is told of them.
MAX_SECONDS = 120.0

#: So long nobody asks about what is ended at once: longer than the test takes, also
#: where much else is done. A killed broker may not have written the mark of an end.
IMMUNE_SECONDS = 600


class TransactionHandOverTests(SynchronousTestCase):
    """From a Java broker to ours, and back."""

    def hand_over(self, version: str, how: int) -> None:
        """Each ends what the other one has begun, and nothing that it has ended.

        @param how: the signal that ends each broker.
        """
        over = self.over = HandOver(version, **SETTINGS)
        self.addCleanup(over.stop)
        over.start_java()
        over.driver()(
            "createTopic", topic=TOPIC, queues=1, address=over.cluster.address
        )
        self.decided: dict[str, int] = {}
        self.asked: set[str] = set()
        self.open: set[str] = set()
        self.silent = True
        self.producer = TransactionalProducer(
            over.cluster.address, "handed", self.decide
        )
        self.addCleanup(self.producer.close)
        self.begin("java")
        late = self.halves("java-late", TRANSACTION_COMMIT, IMMUNE_SECONDS)
        self.await_question()
        over.java.stop(how)

        over.cluster.broker.start()
        self.producer.connect()
        for half in late:
            self.producer.end(TOPIC, half, TRANSACTION_COMMIT)
        self.answer()
        self.begin("ours")
        late = self.halves("ours-late", TRANSACTION_COMMIT, IMMUNE_SECONDS)
        self.await_question()
        over.cluster.broker.stop(how)

        over.start_java()
        self.producer.connect()
        for half in late:
            self.producer.end(TOPIC, half, TRANSACTION_COMMIT)
        self.answer()
        over.java.stop()
        found = Counter(m.unique_key or "" for m in stored(over.cluster.store, TOPIC))
        wanted = {k for k, end in self.decided.items() if end == TRANSACTION_COMMIT}
        twice = {key.rpartition("-")[0] for key, n in found.items() if n > 1}
        self.assertEqual(twice, set())
        self.assertEqual(set(found), wanted)
        self.assertEqual(len(wanted), 6 * COUNT)

    def decide(self, key: str) -> int | None:
        """How a transaction ends that is asked about; none while nobody answers."""
        self.asked.add(key)
        return None if self.silent else self.decided[key]

    def serve_until(self, what: Callable[[], bool]) -> bool:
        """Deal with questions until something is so; whether it came in time."""
        end = time.monotonic() + MAX_SECONDS
        while not what() and time.monotonic() < end:
            self.producer.serve(0.2)
        return what()

    def all_asked(self) -> bool:
        """Whether the broker that is up has asked about all that is open."""
        return self.asked >= self.open

    def all_visible(self) -> bool:
        """Whether consumers can see as many messages as have been committed."""
        wanted = sum(end == TRANSACTION_COMMIT for end in self.decided.values())
        settings = Settings(self.over.cluster.names, seconds=30.0, attempts=20)
        with Client(settings) as client:
            return sum(map(client.max_offset, client.queues(TOPIC))) >= wanted

    def halves(
        self, kind: str, outcome: int, immune_seconds: int | None = None
    ) -> list[Command]:
        """Begin transactions that are to end so; the answers to their halves.

        @param immune_seconds: how long nobody is to ask about them. What is asked about
            by Java has another half then, of which nobody knows that it is the same.
        """
        answers = []
        for number in range(COUNT):
            key = f"{kind}-{number}"
            self.decided[key] = outcome
            half = self.producer.half(TOPIC, 0, key, key.encode(), immune_seconds)
            answers.append(half)
            self.assertEqual(answers[-1].code, 0, answers[-1].remark)
        return answers

    def begin(self, kind: str) -> None:
        """Begin transactions of all kinds at the broker that is up, end some, and let
        it ask about the others in vain."""
        self.producer.connect()
        self.silent = True
        self.asked.clear()
        self.open.clear()
        for name, outcome in (
            ("committed", TRANSACTION_COMMIT),
            ("rolled", TRANSACTION_ROLLBACK),
        ):
            # A slow machine may ask before it is told, so nobody asks about these.
            for half in self.halves(f"{kind}-{name}", outcome, IMMUNE_SECONDS):
                self.producer.end(TOPIC, half, outcome)
            self.halves(f"{kind}-{name}-open", outcome)
            self.open |= {f"{kind}-{name}-open-{number}" for number in range(COUNT)}
        self.producer.serve(SECONDS)
        self.assertTrue(self.serve_until(self.all_asked), self.open - self.asked)

    def await_question(self) -> None:
        """Wait until the broker that is up asks something: it is in the middle of it
        when it is stopped, or killed."""
        asked = self.producer.asked
        end = time.monotonic() + 20
        while self.producer.asked == asked and time.monotonic() < end:
            self.producer.serve(0.001)

    def answer(self) -> None:
        """Answer what the broker that is up asks."""
        self.silent = False
        self.asked.clear()
        self.assertTrue(self.serve_until(self.all_asked), self.open - self.asked)
        self.assertTrue(self.serve_until(self.all_visible), "not all is visible")
        self.producer.serve(SECONDS)

    def test_killed(self) -> None:
        """Between kills of 5.3.3 and ours."""
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
