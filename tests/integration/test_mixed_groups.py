"""Groups with a member of the official Java client and one of ours: in a namespace,
over the queues of a static topic, and where the broker assigns."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from typing import Any

from rocketbroker.blocking import Client, Settings
from rocketbroker.wire.fastjson import dumps
from scripts.lab.javaclient import PATIENCE, body_of
from tests.integration.asker import Asker
from tests.integration.javacase import JavaCase, fresh, until
from tests.integration.ours import Ours

QUEUES = 4

#: How many messages are shared.
COUNT = 40


class MixedGroups(JavaCase):
    """A member of each client, which share the queues of a topic."""

    def ours(self, topic: str, group: str, **options: Any) -> Ours:
        """A started member of ours."""
        member = Ours(self.cluster.names, topic, group, **options)
        self.addCleanup(member.stop)
        return member

    def bodies(self, member: Ours, java: str) -> Counter[bytes]:
        """What both have."""
        theirs = map(body_of, self.java.received(java, 0))
        return Counter([*(one.body for one in member.found), *theirs])

    def assertAllOnce(self, member: Ours, java: str, sent: set[bytes]) -> None:
        """Each has some; together they have all, each once."""
        until(lambda: self.bodies(member, java).keys() == sent)
        self.assertEqual(self.bodies(member, java), Counter(sent))
        self.assertNotEqual(member.found, [])
        self.assertNotEqual(self.java.received(java, 0), [])

    def committed(self, topic: str, group: str) -> int:
        """How many messages of a topic a group has done with, as the broker knows."""
        client = Client(Settings(self.cluster.names))
        with closing(client):
            return sum(
                client.committed_offset(queue, group) or 0
                for queue in client.queues(topic)
            )

    def share(self, member: Ours, java: str, topic: str) -> None:
        """Wait until each has half of the queues."""

        def shared() -> bool:
            theirs = [one for one in self.java("queues", name=java) if topic in one]
            return len(theirs) == len(member.queues_of(topic)) == QUEUES // 2

        self.assertTrue(until(shared), (member.stream.queues, topic))

    def test_namespaceIsTheSameForBoth(self) -> None:
        """One group and one topic, whoever sends and whoever reads; neither sees the
        namespace, and both find it in the property."""
        name, group = fresh("T"), fresh("G")
        self.java(
            "createTopic",
            topic=f"INST%{name}",
            queues=QUEUES,
            address=self.cluster.address,
        )
        words = {"namespace": "INST"}
        java = self.consumer(name, group, **words)
        member = self.ours(name, group, heartbeat_v2=True, **words)
        self.share(member, java, name)
        producer = self.producer(**words)
        sent = {b"%d" % n for n in range(COUNT)}
        for number, body in enumerate(sorted(sent)):
            if number % 2:
                self.java.send(producer, name, body)
            else:
                member.session.send(name, body)
        self.assertAllOnce(member, java, sent)
        self.assertEqual({one.topic for one in member.found}, {name})
        found = self.java.received(java, 0)
        self.assertEqual({one["topic"] for one in found}, {name})
        theirs = [one["properties"]["INSTANCE_ID"] for one in found]
        ours = [one.properties["INSTANCE_ID"] for one in member.found]
        self.assertEqual({*theirs, *ours}, {"INST"})

    def test_logicalQueuesOfAStaticTopicAreShared(self) -> None:
        """By the same names, so that each has half of them; offsets are the same."""
        topic, group = fresh("S"), fresh("G")
        line = ["updateStaticTopic", "-t", topic, "-qn", str(QUEUES)]
        line += ["-c", "DefaultCluster", "-n", self.cluster.names]
        answer = self.java("mqadmin", words=line, timeoutMs=120_000)
        self.assertTrue(answer["ended"], answer)
        java = self.consumer(topic, group)
        member = self.ours(topic, group)
        self.share(member, java, topic)
        mock = {one.broker for one in member.queues_of(topic)}
        self.assertEqual(mock, {"__syslo__global__"})
        places = {}
        for number in range(COUNT):
            result = member.session.send(topic, f"{number}")
            places[b"%d" % number] = result.queue.queue_id, result.queue_offset
        self.assertAllOnce(member, java, set(places))
        for one in member.found:
            self.assertEqual(places[one.body], (one.queue.queue_id, one.offset))
        for each in self.java.received(java, 0):
            self.assertEqual(places[body_of(each)], (each["queue"], each["offset"]))

    def test_brokerAssignsToBoth(self) -> None:
        """First it lets them pull, and then, told by an operator, pop."""
        topic, group = self.topic(QUEUES), fresh("G")
        java = self.consumer(topic, group, pop=True, invisibleMs=30_000)
        member = self.ours(topic, group, assignment="broker")
        self.share(member, java, topic)
        sent = {b"%d" % n for n in range(COUNT)}
        for body in sent:
            member.session.send(topic, body)
        self.assertAllOnce(member, java, sent)
        # What one has not committed yet, the other would pop.
        self.assertTrue(until(lambda: self.committed(topic, group) == COUNT))
        mode = {"consumerGroup": group, "mode": "POP", "popShareQueueNum": 0}
        ask = Asker(self.cluster)
        self.addCleanup(ask.close)
        ask.done(401, {}, dumps({**mode, "topic": topic}))

        def pops() -> bool:
            theirs = [one for one in self.java("queues", name=java) if topic in one]
            return not theirs and not member.queues_of(topic)

        self.assertTrue(until(pops))
        more = {b"pop %d" % n for n in range(COUNT)}
        for body in more:
            member.session.send(topic, body)
            time.sleep(0.01)
        both = sent | more
        until(lambda: self.bodies(member, java).keys() == both, PATIENCE)
        self.assertEqual(self.bodies(member, java), Counter(both))
