"""A slave has, byte for byte, what its master has: with RocketMQ's broker as either."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.headers.send import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from scripts.lab.pair import (
    OURS,
    Group,
    Member,
    log_differences,
    queue_differences,
)
from scripts.torture import corpus
from scripts.torture.handover import (
    MAX_SECONDS,
    SETTINGS,
    CorpusClient,
    queue_by_queue,
)
from scripts.torture.harness import stored
from scripts.torture.transactional import TransactionalProducer
from tests.heavy import HEAVY

#: How often each side is started again, and how many messages are sent between; a
#: message of the corpus takes about 1.1 KiB of the log.
RESTARTS = 3 if HEAVY else 1
COUNT = 125_000 if HEAVY else 6_000

#: Transactions that are sent with them.
TRANSACTIONS = 1000 if HEAVY else 100

#: Files so small that many begin and end; delays that end soon.
SMALL = {
    **SETTINGS,
    "mappedFileSizeCommitLog": (16 if HEAVY else 4) << 20,
    "messageDelayLevel": "1s 2s 2h",
}

#: The topic of the transactions.
TOPIC = "Transacted"


class Load(CorpusClient):
    """The official client beside a producer of transactions."""

    longest_delay = 2
    max_seconds = 900.0 if HEAVY else MAX_SECONDS

    def __init__(self, group: Group) -> None:
        maker = group.master.maker
        version = maker if maker != OURS else "5.3.3"
        super().__init__(version, group.names, group.folder)
        self.group = group
        self.total = 0
        self.committed: set[str] = set()
        self.producer = TransactionalProducer(
            group.master.address, "transacted", lambda key: TRANSACTION_ROLLBACK
        )

    def open(self) -> None:
        """Make the topics, when the master is up."""
        for topic in (*corpus.TOPICS, TOPIC):
            self.driver()(
                "createTopic",
                topic=topic,
                queues=corpus.QUEUES,
                address=self.group.master.address,
            )

    def start_master(self) -> None:
        """Start the master and let clients find it."""
        self.group.master.start()
        self.driver()("announce", address=self.group.master.address)

    def send(self, kill: bool = False) -> None:
        """A part of all messages: single ones, batches, delayed, with keys, and
        transactions of all kinds.

        @param kill: the master is killed in the middle of it.
        """
        self.producer.connect()
        for number in range(TRANSACTIONS):
            self.transaction(f"{self.total}-{number}", number % 4)
        end = partial(self.group.master.stop, signal.SIGKILL) if kill else None
        self.write(self.total, COUNT, end)
        self.total += COUNT

    def transaction(self, key: str, kind: int) -> None:
        """A transaction; every fourth is never ended."""
        half = self.producer.half(TOPIC, 0, key, key.encode() * 50)
        assert half.code == 0, half.remark
        if kind < 2:
            self.committed.add(key)
            self.producer.end(TOPIC, half, TRANSACTION_COMMIT)
        elif kind == 2:
            self.producer.end(TOPIC, half, TRANSACTION_ROLLBACK)

    def stop(self) -> None:
        """End the clients."""
        self.producer.close()
        if self.client is not None:
            self.client.stop()


class ReplicationTests(SynchronousTestCase):
    """A master under load, and slaves; both sides are started again on the way."""

    timeout = 5400 if HEAVY else 300

    def setUp(self) -> None:
        """Times are told in the log."""
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """Something for the log, with the time."""
        print(f"{time.monotonic() - self._begun:6.1f} s  {text}")

    def group_of(self, master: str, *slaves: str) -> Load:
        """A master that is up, and slaves that are not."""
        self.group = Group(master, *slaves, **SMALL)
        self.addCleanup(self.group.stop)
        self.group.namesrv.start()
        load = Load(self.group)
        self.addCleanup(load.stop)
        load.start_master()
        load.open()
        self.say(f"{self.group.master} is up")
        return load

    def replicate(self, master: str, *slaves: str) -> None:
        """Load, kills and stops of each side, and then all is as it must be."""
        load, group = self.group_of(master, *slaves), self.group
        # A slave without a log begins with its master's last file.
        load.producer.connect()
        load.transaction("first", 0)
        for slave in group.slaves:
            group.tell_topics(slave)
            slave.start()
        self.say("the slaves are up")
        self.caught_up()
        load.send()
        for number in range(RESTARTS):
            self.caught_up()
            group.master.stop(signal.SIGKILL if number % 2 == 0 else signal.SIGTERM)
            load.start_master()
            self.say("the master is up again")
            load.send()
            for slave in group.slaves:
                slave.stop(signal.SIGTERM if number % 2 == 0 else signal.SIGKILL)
            self.say("the slaves are stopped")
            load.send(kill=True)
            load.start_master()
            for slave in group.slaves:
                group.tell_topics(slave)
                slave.start()
            self.say("all are up again")
            load.send()
        load.wait_until_delivered()
        self.check(load)

    def join_late(self, master: str, *slaves: str) -> None:
        """Slaves that come when there is much already begin with the last file."""
        load, group = self.group_of(master, *slaves), self.group
        load.send()
        for slave in group.slaves:
            slave.start()
        self.caught_up()
        load.send()
        self.caught_up()
        group.master.stop()
        for slave in group.slaves:
            end = self.end(slave)
            slave.stop()
            self.assertNotIn("0" * 20, os.listdir(slave.store / "commitlog"))
            self.compare(slave, end)

    def end(self, slave: Member) -> int:
        """Where the log of a slave ends, as it says."""
        end = self.group.end(slave)
        for _ in range(120):
            if end >= 0:
                break
            time.sleep(0.5)
            end = self.group.end(slave)
        self.assertGreaterEqual(end, 0)
        return end

    def caught_up(self) -> None:
        """Wait until the slaves have all."""
        for slave in self.group.slaves:
            at = self.group.wait_for(slave)
            self.say(f"{slave} has all up to {at}")

    def check(self, load: Load) -> None:
        """The slaves have what the master has; consumers get it from there."""
        group = self.group
        self.caught_up()
        group.master.stop()
        for slave in group.slaves:
            end = self.end(slave)
            self.consume(load)
            self.say(f"{slave} has served all")
            slave.stop()
            self.compare(slave, end)
            keys = {message.unique_key for message in stored(slave.store, TOPIC)}
            self.assertEqual(keys, load.committed)

    def consume(self, load: Load) -> None:
        """Consumers get all from the slave with the lowest id that is up."""
        found = list(queue_by_queue(load.names, corpus.TOPICS))
        problems = load.notes.problems(found, delivered=True, twice=True)
        self.assertEqual(problems[:20], [])
        # Without a master, the official client has to be told where queues end.
        topic = corpus.TOPICS[0]
        mine = [seen for seen in found if seen.line.split("\t")[1] == topic]
        ends = [sum(seen.queue == q for seen in mine) for q in range(corpus.QUEUES)]
        by_java = load.read_by_java(topic, corpus.QUEUES, ends)
        self.assertEqual(list(by_java), mine)

    def compare(self, slave: Member, end: int) -> None:
        """A slave that is stopped has what its master has, up to its end."""
        master = self.group.master
        stores = master.store, slave.store
        self.assertEqual([*log_differences(*stores, end)][:20], [])
        is_old = "4.9.7" in (master.maker, slave.maker)
        self.assertEqual([*queue_differences(*stores, end, is_old)][:20], [])
        self.say(f"{slave} has the same {end} bytes, and the same queues")

    def test_ours(self) -> None:
        """Ours on ours, and both of RocketMQ's versions on it."""
        self.replicate(OURS, OURS, "5.3.3", "4.9.7")

    def test_533(self) -> None:
        """Ours on 5.3.3."""
        self.replicate("5.3.3", OURS)

    def test_late(self) -> None:
        """Ours that follows ours late."""
        self.join_late(OURS, OURS)

    if HEAVY:

        def test_javaOnly(self) -> None:
            """What is asserted here holds between Java brokers."""
            self.replicate("5.3.3", "5.3.3", "4.9.7")

        def test_497(self) -> None:
            """Ours on 4.9.7."""
            self.replicate("4.9.7", OURS)

        def test_late533(self) -> None:
            """Ours that follows 5.3.3 late."""
            self.join_late("5.3.3", OURS)

        def test_lateJava(self) -> None:
            """RocketMQ's that follow ours late."""
            self.join_late(OURS, "5.3.3", "4.9.7")
