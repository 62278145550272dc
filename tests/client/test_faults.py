"""Faults that users have met in clients: servers that stop, hang or are set back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.received import ReceivedMessage
from rocketbroker.errors import ConfigurationError, ConnectionLost, RequestTimeout
from rocketbroker.testing.puppet_cluster import refuse, silent
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

#: What a member of a group asks a broker.
ASKED = (
    RequestCode.PULL_MESSAGE,
    RequestCode.HEART_BEAT,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.UPDATE_CONSUMER_OFFSET,
)


class RestartTests(SynchronousTestCase):
    """The only broker, and perhaps the name server, is restarted."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime

    @contextmanager
    def away(self) -> Iterator[None]:
        """A hundred seconds without the broker, of a name server that was restarted,
        too, and so knows no topic. All is as it was for five seconds behind that."""
        cluster = self.here.cluster
        cluster.stop("b1")
        self.runtime.cut("ns:9876")
        topics = {**cluster.topics}
        cluster.topics.clear()
        with self.assertLogs("rocketbroker.client", "WARNING") as logs:
            yield
            self.runtime.advance(100.0)
            cluster.topics.update(topics)
            cluster.start("b1")
            self.runtime.advance(5.0)
        self.assertEqual(len(logs.output), 1, logs.output)

    @contextmanager
    def nobody(self) -> Iterator[None]:
        """A hundred seconds without any server, from the beginning."""
        name_server = self.runtime.servers.pop("ns:9876")
        self.here.cluster.stop("b1")
        with self.assertLogs("rocketbroker.client", "WARNING") as logs:
            yield
            self.runtime.advance(100.0)
            self.runtime.servers["ns:9876"] = name_server
            self.here.cluster.start("b1")
            self.runtime.advance(5.0)
        self.assertEqual(len(logs.output), 1, logs.output)

    def test_consumerRidesOverIt(self) -> None:
        """The outage is said once."""
        consumer = self.here.started()
        self.here.put("before")
        self.assertEqual(self.here.texts(consumer), ["before"])
        with self.away():
            self.here.put("after")
        self.assertEqual(self.here.texts(consumer), ["after"])

    def test_sendRidesOverIt(self) -> None:
        """It ends when the broker is back."""
        mq = self.here.session()
        self.runtime.finish(mq.send("T", "before"))
        with self.away():
            sending = self.runtime.start(mq.send("T", "after"))
        self.assertEqual(sending.value().status, 0)

    def test_firstSendWaits(self) -> None:
        """Nothing is known when it begins."""
        mq = self.here.session()
        with self.nobody():
            sending = self.runtime.start(mq.send("T", "x"))
        self.assertEqual(sending.value().status, 0)

    def test_newMemberWaits(self) -> None:
        """It reads when there is something to read from."""
        self.here.put("x")
        consumer = self.here.consumer()
        with self.nobody():
            self.runtime.start(consumer.start())
        self.assertEqual(self.here.texts(consumer), ["x"])


class HangTests(SynchronousTestCase):
    """One of two brokers answers nothing."""

    def test_othersAreReadAlsoWhatComesLater(self) -> None:
        """All queues of the other broker, and those that it gets while it is so."""
        here = ClientCluster()
        consumer = here.started()
        here.broker("b1").faults.update({code: [silent] * 9999 for code in ASKED})
        here.runtime.advance(20.0)
        here.put("old queue", queue=1, broker="b2")
        self.assertEqual(here.texts(consumer), ["old queue"])
        here.cluster.topics["T"] = {"b1": 2, "b2": 3}
        here.put("new queue", queue=2, broker="b2")
        # As soon as the route is known, which is asked for every thirty seconds.
        here.runtime.advance(32.0)
        self.assertEqual(here.texts(consumer), ["new queue"])

    def test_nameServerThatHangsHasNoMoreTimeThanTheSend(self) -> None:
        """Neither for a topic that is not known yet, nor between two tries."""
        here = ClientCluster("b1")
        mq = here.session()

        def send() -> None:
            sending = here.runtime.start(mq.send("T", "x", timeout=1.0))
            self.assertLess(here.wait(lambda: sending.ended), 1.1)
            self.assertRaises((ConnectionLost, RequestTimeout), sending.value)

        name_server = here.runtime.servers["ns:9876"]
        here.runtime.servers["ns:9876"] = lambda link, command: None
        send()
        here.runtime.servers["ns:9876"] = name_server
        here.runtime.finish(mq.send("T", "x"))
        here.runtime.servers["ns:9876"] = lambda link, command: None
        here.cluster.stop("b1")
        send()


class SetBackTests(SynchronousTestCase):
    """Offsets that come again."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.consumer = self.here.started()

    def test_oldAcknowledgementIsNotForTheMessageThatCameAgain(self) -> None:
        """After a reset, whoever still has the first one says nothing of the second."""
        self.here.put("x")
        (first,) = self.here.all_of(self.consumer)
        queue = self.consumer.queues[first.queue]
        self.runtime.finish(self.consumer.seek(queue, 0))
        (second,) = self.here.all_of(self.consumer)
        self.runtime.finish(first.ack())
        self.runtime.finish(first.retry())
        self.assertEqual(queue.commit_offset, 0)
        self.runtime.finish(second.ack())
        self.assertEqual(queue.commit_offset, 1)

    def test_topicThatWasMadeAgainIsReadFromItsBeginning(self) -> None:
        """Although more had been acknowledged before."""
        self.here.put("1", "2")
        for message in self.here.all_of(self.consumer):
            self.runtime.finish(message.ack())
        self.runtime.advance(6.0)
        broker = self.here.broker()
        broker.queues.clear()
        broker.offsets.clear()
        broker.faults[RequestCode.PULL_MESSAGE] = [refuse(17)] * 4
        self.runtime.cut("b1:10911")
        self.runtime.advance(30.0)
        self.here.put("new")
        self.runtime.advance(10.0)
        self.assertEqual(self.here.texts(self.consumer), ["new"])


class ForkTests(SynchronousTestCase):
    """The child of a fork has all that its parent had."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.mq = self.here.session()

    def test_childSendsOverConnectionsOfItsOwn(self) -> None:
        """The parent's are neither used nor closed; nor are its ids used again."""
        first = self.runtime.finish(self.mq.send("T", "parent"))
        parents = [*self.runtime.links]
        sent = [len(link.requests) for link in parents]
        self.runtime.fork()
        second = self.runtime.finish(self.mq.send("T", "child"))
        self.assertEqual([len(link.requests) for link in parents], sent)
        self.runtime.finish(self.mq.close())
        self.assertEqual(self.runtime.links, parents)
        self.assertNotEqual(first.message_id[:24], second.message_id[:24])

    def test_childAsksAsAClientOfItsOwn(self) -> None:
        """So replies to its requests come to it, and not to its parent."""
        runtime = self.runtime
        self.here.cluster.topics["c_REPLY_TOPIC"] = {"b1": 1}
        runtime.start(self.mq.request("T", "parent"))
        runtime.settle()
        runtime.fork()
        asking = runtime.start(self.mq.request("T", "child"))
        stream = self.here.session().consumer("T", "G", start="earliest")
        runtime.finish(stream.__aenter__())
        for _ in range(2):
            message = runtime.finish(stream.next())
            assert message is not None
            runtime.finish(message.reply(f"to the {message.text}"))
        self.assertEqual(asking.value().text, "to the child")

    def test_childSaysThatItsParentReads(self) -> None:
        """Iteration, an acknowledgement; leaving the context does nothing."""
        for mode in ("classic", "pop"):
            self.here.put("1", "2")
            stream = self.mq.consumer("T", f"G{mode}", start="earliest", mode=mode)
            self.runtime.finish(stream.__aenter__())
            message = self.runtime.finish(stream.next())
            assert message is not None
            links = [*self.runtime.links]
            self.runtime.fork()
            for action in (stream.next(), stream.__anext__(), message.ack()):
                with self.assertRaises(ConfigurationError):
                    self.runtime.finish(action)
            self.runtime.finish(stream.close())
            self.assertEqual(self.runtime.links, links)

    def test_childListensAsAMemberOfItsOwn(self) -> None:
        """With what was registered before, as servers do that fork their workers."""
        seen: list[str] = []

        def handle(message: ReceivedMessage) -> None:
            seen.append(message.text)

        self.mq.on("T", group="G", start="earliest")(handle)
        self.here.put("x")
        self.runtime.fork()
        running = self.runtime.start(self.mq.run())
        self.here.wait(lambda: seen == ["x"])
        self.mq.stop()
        self.runtime.settle()
        running.value()
