"""What a slave does beside copying the log, with RocketMQ's clients and brokers."""

from __future__ import annotations

import signal
import time
from functools import partial
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from scripts.lab.javaclient import JavaClient, body_of
from scripts.lab.pair import MAX_SECONDS, OURS, Group, Member, until

TOPIC = "Followed"

#: How many messages are sent at once.
COUNT = 40


class LifeCase(SynchronousTestCase):
    """A master, a slave, and the official client."""

    timeout = 300

    def begin(self, master: str, *slaves: str, **settings: object) -> None:
        """The master runs, and the topic is there, with a message."""
        self.group = Group(master, *slaves, **settings)
        self.addCleanup(self.group.stop)
        self.group.namesrv.start()
        self.group.master.start()
        version = master if master != OURS else "5.3.3"
        self.java = JavaClient(version, self.group.names, self.group.folder)
        self.addCleanup(self.java.stop)
        self.java(
            "createTopic", topic=TOPIC, queues=4, address=self.group.master.address
        )
        self.client = Client(Settings(self.group.names, seconds=30.0))
        self.addCleanup(self.client.close)
        # RocketMQ's broker tells name servers after it has answered.
        self.assertTrue(until(self.is_known))
        self.send(0, 1)

    def is_known(self) -> bool:
        """Whether the name server knows the topic."""
        try:
            return bool(self.client.queues(TOPIC))
        except RocketbrokerError:
            return False

    def send(self, first: int, count: int) -> None:
        """Messages with these numbers."""
        producer = Producer(self.client)
        for number in range(first, first + count):
            sent = producer.send(Message(TOPIC, b"%d" % number))
            self.assertEqual(sent.status, 0)

    def ask(self, member: Member, code: int, **ext: str) -> dict[str, Any]:
        """The table that a broker answers."""
        answer = self.client.ask_server(member.address, code, ext, seconds=20)
        self.assertEqual(answer.code, 0, answer.remark)
        value = loads(answer.body)
        assert isinstance(value, dict)
        return value

    def offset(self, member: Member, group: str) -> int:
        """How far a group is at a broker, in all queues; -1 without an answer."""
        try:
            answer = self.ask(member, RequestCode.GET_ALL_CONSUMER_OFFSET)
        except RocketbrokerError:
            return -1
        table = answer["offsetTable"]
        return sum(table.get(f"{TOPIC}@{group}", {}).values())

    def received(self, name: str, count: int) -> set[int]:
        """The numbers that a consumer has got, as soon as there are so many."""
        found = self.java.received(name, count, MAX_SECONDS)
        return {int(body_of(each)) for each in found}


class FailoverTests(LifeCase):
    """Consumers go on when the master is gone, and offsets survive both ways."""

    def is_beyond(self, member: Member, group: str) -> bool:
        """Whether a group has committed both parts at a broker."""
        return self.offset(member, group) > 2 * COUNT

    def test_killed(self) -> None:
        """A push consumer gets from the slave what it has not got from the master; a
        new group reads all there; what they commit reaches the master that comes
        back."""
        self.begin(OURS, OURS, flushConsumerOffsetInterval=500)
        group = self.group
        (slave,) = group.slaves
        slave.start()
        self.java("consumer", name="first", group="First", topic=TOPIC)
        self.send(1, COUNT)
        self.assertEqual(self.received("first", COUNT + 1), set(range(COUNT + 1)))
        self.assertTrue(until(lambda: self.offset(group.master, "First") > COUNT))
        self.java.send_signal(signal.SIGSTOP)
        self.send(COUNT + 1, COUNT)
        group.wait_for(slave)
        group.master.stop(signal.SIGKILL)
        self.java.send_signal(signal.SIGCONT)
        everything = set(range(2 * COUNT + 1))
        self.assertEqual(self.received("first", 2 * COUNT + 1), everything)
        self.assertTrue(until(partial(self.is_beyond, slave, "First")))
        self.java("consumer", name="second", group="Second", topic=TOPIC)
        self.assertEqual(self.received("second", 2 * COUNT + 1), everything)
        self.assertTrue(until(partial(self.is_beyond, slave, "Second")))
        group.master.start()
        for name in ("First", "Second"):
            self.assertTrue(until(partial(self.is_beyond, group.master, name)), name)
        self.send(2 * COUNT + 1, COUNT)
        everything = set(range(3 * COUNT + 1))
        for name in ("first", "second"):
            self.assertEqual(self.received(name, 3 * COUNT + 1), everything)


class TablesCase(LifeCase):
    """Slaves have their master's tables."""

    def has(self, slave: Member, code: int, key: str, name: str) -> bool:
        """Whether a slave has an entry of a table as its master has it, as far as
        brokers of both versions know of its members."""
        found: object = self.ask(slave, code)[key].get(name)
        wanted: object = self.ask(self.group.master, code)[key].get(name)
        if not isinstance(found, dict) or not isinstance(wanted, dict):
            return False
        if key == "offsetTable":
            return found == wanted
        return all(found[each] == wanted[each] for each in found.keys() & wanted.keys())

    def compare(self, master: str, *slaves: str) -> None:
        """Slaves of some makers get all from the master of another.

        They are started when all is there: RocketMQ's ask once a minute, ours also at
        their start.
        """
        self.begin(master, *slaves)
        group = self.group
        self.java("consumer", name="first", group="First", topic=TOPIC)
        self.received("first", 1)
        self.assertTrue(until(lambda: self.offset(group.master, "First") == 1))
        for slave in group.slaves:
            slave.start()
        begun = time.monotonic()
        for slave in group.slaves:
            for code, key, name in (
                (RequestCode.GET_ALL_TOPIC_CONFIG, "topicConfigTable", TOPIC),
                (
                    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
                    "subscriptionGroupTable",
                    "First",
                ),
                (
                    RequestCode.GET_ALL_CONSUMER_OFFSET,
                    "offsetTable",
                    f"{TOPIC}@First",
                ),
            ):
                same = partial(self.has, slave, code, key, name)
                self.assertTrue(until(same, 300), f"{slave}: {name}")
            print(f"{slave}: all tables after {time.monotonic() - begun:.1f} s")


class TablesTests(TablesCase):
    """Slaves of ours."""

    def test_ours(self) -> None:
        """Of ours."""
        self.compare(OURS, OURS)

    def test_master533(self) -> None:
        """Of RocketMQ 5.3.3's master."""
        self.compare("5.3.3", OURS)

    def test_master497(self) -> None:
        """Of RocketMQ 4.9.7's master."""
        self.compare("4.9.7", OURS)


class JavaTablesTests(TablesCase):
    """Slaves of RocketMQ, which take a minute."""

    def test_java(self) -> None:
        """Those of both versions, of our master."""
        self.compare(OURS, "5.3.3", "4.9.7")
