"""Sending and receiving for scripts."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker import blocking
from rocketbroker.blocking.consumer import LATEST
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.session import COMMIT_SECONDS, Session, connect
from rocketbroker.errors import ConfigurationError, ConnectionLost, TopicNotExist
from tests.blocking.cluster import MemoryCluster, hang_up

QUEUE = MessageQueue("T", "b1", 0)


class ImportTests(SynchronousTestCase):
    """What the package hands on."""

    def test_names(self) -> None:
        """Every name that the package lists can be imported from it."""
        for name in blocking.__all__:
            self.assertIsNotNone(getattr(blocking, name))
        self.assertIs(blocking.connect, connect)
        self.flushWarnings()
        with self.assertRaises(AttributeError):
            blocking.nothing  # noqa: B018

    def test_goingNamesSayWhatToUseInstead(self) -> None:
        """The simple face, and nothing else."""
        for name in blocking.__all__:
            getattr(blocking, name)
        texts = [str(warning["message"]) for warning in self.flushWarnings()]
        self.assertEqual(len(texts), 4)
        self.assertIn("use rocketbroker.threads.connect", texts[0])


class SessionTests(SynchronousTestCase):
    """With a cluster in memory."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        self.session = Session(self.cluster.client)

    def restarted(self) -> Session:
        """Another session of the same cluster."""
        return Session(self.cluster.client)

    def put(self, count: int) -> None:
        """Messages named by their offsets, in one queue."""
        for number in range(count):
            self.cluster.brokers["b1"].put("T", 0, b"%d" % number)

    def bodies(self, session: Session, ack: bool = True, **settings: Any) -> list[str]:
        """What a group receives now."""
        found = []
        for message in session.receive("T", group="g", wait=1.0, **settings):
            found.append(message.text)
            if ack:
                message.ack()
        return found

    def committed(self) -> int | None:
        """Where the group goes on in the queue."""
        return self.cluster.client.committed_offset(QUEUE, "g")

    def test_address(self) -> None:
        """What is no address is told before anything is sent."""
        self.assertRaises(ConfigurationError, connect, "nowhere")
        with connect("a:1", seconds=5.0) as session:
            self.assertEqual(session.client.settings.seconds, 5.0)

    def test_sendAndReceive(self) -> None:
        """A message arrives as it was sent."""
        sent = self.session.send(
            "T", "grün", tag="paid", keys=["k1"], properties={"u": "v"}, delay_level=3
        )
        (message,) = self.session.receive("T", group="g", wait=0.0)
        self.assertEqual((message.text, message.tag), ("grün", "paid"))
        self.assertEqual((message.keys, message.properties["u"]), (["k1"], "v"))
        self.assertEqual(message.properties["DELAY"], "3")
        self.assertEqual(message.message_id, sent.message_id)
        self.assertEqual((message.queue, message.offset), (sent.queue, 0))
        self.assertIn("5 bytes", repr(message))

    def test_goesOn(self) -> None:
        """What was acknowledged does not come again, in no session."""
        self.put(3)
        with self.session as session:
            self.assertEqual(self.bodies(session), ["0", "1", "2"])
        self.put(1)
        self.assertEqual(self.bodies(self.restarted()), ["0"])

    def test_sameSession(self) -> None:
        """In a session only what was not acknowledged comes again."""
        self.put(4)
        for message in self.session.receive("T", group="g", wait=0.0):
            if message.offset != 1:
                message.ack()
        self.assertEqual(self.bodies(self.session), ["1"])
        self.assertEqual(self.bodies(self.session), [])
        self.assertEqual(self.committed(), 4)

    def test_restart(self) -> None:
        """A group goes on at the first message that was not acknowledged."""
        self.put(4)
        with self.session as session:
            for message in session.receive("T", group="g", wait=0.0):
                if message.offset != 1:
                    message.ack()
        self.assertEqual(self.committed(), 1)
        self.assertEqual(self.bodies(self.restarted()), ["1", "2", "3"])

    def test_broken(self) -> None:
        """What a loop that ended early has not come to comes again."""
        self.put(4)
        for message in self.session.receive("T", group="g"):
            message.ack()
            if message.offset == 1:
                break
        self.assertEqual(self.bodies(self.session), ["2", "3"])

    def test_restartedBrokerIsWaitedFor(self) -> None:
        """A receive goes on when a broker that left the name server is back."""
        self.put(1)
        machine, topics = self.cluster.machine, self.cluster.topics.copy()
        back = machine.now + 30

        def restart() -> None:
            if machine.now >= back and not self.cluster.topics:
                self.cluster.topics |= topics
                self.put(1)

        receiver = self.session.receive("T", group="g", wait=60.0)
        next(receiver).ack()
        self.cluster.topics.clear()
        for broker in self.cluster.brokers.values():
            broker.faults = [hang_up] * 3
        machine.meanwhile = restart
        self.assertEqual(next(receiver).offset, 1)
        self.assertLess(machine.now, back + 5)

    def test_absentBrokerIsAnErrorAtTheEnd(self) -> None:
        """A broker that is not back when the time is over is told as such."""
        self.put(1)
        receiver = self.session.receive("T", group="g", wait=10.0)
        next(receiver)
        begun = self.cluster.machine.now
        self.cluster.machine.servers["b1:10911"] = hang_up
        self.assertRaises(ConnectionLost, next, receiver)
        self.assertLess(self.cluster.machine.now, begun + 15)

    def test_late(self) -> None:
        """A message can be acknowledged after its receive has ended."""
        self.put(2)
        messages = list(self.session.receive("T", group="g", wait=0.0))
        for message in messages:
            message.ack()
        self.assertEqual(self.bodies(self.session), [])

    def test_oneAtATime(self) -> None:
        """A new receive of the same topic and group ends the last."""
        self.put(4)
        first = self.session.receive("T", group="g")
        message = next(first)
        second = self.session.receive("T", group="g", wait=0.0)
        self.assertEqual(list(first), [])
        message.ack()
        self.assertEqual([one.text for one in second], ["1", "2", "3"])

    def test_commits(self) -> None:
        """Acknowledgements are committed after a while, not each by itself."""
        self.put(3)
        receiver = self.session.receive("T", group="g")
        next(receiver).ack()
        self.assertIsNone(self.committed())
        self.cluster.machine.now += COMMIT_SECONDS
        next(receiver).ack()
        self.assertEqual(self.committed(), 2)

    def test_latest(self) -> None:
        """A new group that begins at the end misses nothing from then on."""
        self.put(2)
        self.assertEqual(self.bodies(self.session, begin=LATEST), [])
        self.put(1)
        self.assertEqual(self.bodies(self.session, begin=LATEST), ["0"])

    def test_tags(self) -> None:
        """Messages with other tags are not given, and hold nothing up."""
        self.cluster.brokers["b1"].put("T", 0, b"x", properties=b"TAGS\x01a\x02")
        self.cluster.brokers["b1"].put("T", 0, b"y", properties=b"TAGS\x01b\x02")
        self.assertEqual(self.bodies(self.session, tags="a"), ["x"])
        self.session.close()
        self.assertEqual(self.committed(), 2)

    def test_queues(self) -> None:
        """Sessions of one group that have queues of their own share the work."""
        self.put(2)
        other = MessageQueue("T", "b2", 1)
        self.cluster.brokers["b2"].put("T", 1, b"x")
        for queue, expected in ((QUEUE, 2), (other, 1)):
            found = self.restarted().receive("T", "g", wait=0.0, queues=[queue])
            self.assertEqual(len(list(found)), expected)

    def test_wrong(self) -> None:
        """A group that is none, and a topic that is not there, are told at once."""
        for group in ("", "a b", "g" * 300):
            self.assertRaises(ConfigurationError, self.session.receive, "T", group)
        self.assertRaises(TopicNotExist, self.session.receive, "U", "g")

    def test_closeFails(self) -> None:
        """Connections are closed though the last commit fails, which is told."""
        self.put(1)
        next(self.session.receive("T", group="g")).ack()
        self.cluster.brokers["b1"].faults = [hang_up] * 9
        self.assertRaises(ConnectionLost, self.session.close)
        self.assertTrue(all(stream.closed for stream in self.cluster.machine.streams))
