"""What brokers ask members of a group."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.session import MessageStream
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.fields import Fields
from tests.client.cluster import ClientCluster

QUEUE = MessageQueue("T", "b1", 0)


class ServedTests(SynchronousTestCase):
    """One member that reads topic T."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.stream = self.here.session().consumer("T", "G", start="earliest")
        self.here.put("1", "2", "3")
        self.runtime.finish(self.stream.__aenter__())

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """Ask the client; its answer."""
        (link,) = self.runtime.links_to("b1:10911")
        link.send(Command(code, ext, body, opaque=99))
        self.runtime.settle()
        return link.requests[-1]

    def take(self, stream: MessageStream) -> list[str]:
        """What is there now, each acknowledged."""
        found = []
        self.runtime.settle()
        while (message := self.runtime.finish(stream.next(0.0))) is not None:
            found.append(message.text)
            self.runtime.finish(message.ack())
        return found

    def test_offsetsAreReset(self) -> None:
        """What was acknowledged before comes again, and the new offset is committed."""
        self.assertEqual(self.take(self.stream), ["1", "2", "3"])
        body = fastjson.dumps({"offsetTable": {QUEUE: 1}})
        ext = {"topic": "T", "group": "G", "timestamp": "1", "isForce": "false"}
        code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        (link,) = self.runtime.links_to("b1:10911")
        link.send(Command(code, ext, body, flag=ONEWAY))
        self.runtime.settle()
        self.assertEqual(self.here.broker().offsets["G", "T", 0], 1)
        self.assertEqual(self.take(self.stream), ["2", "3"])

    def test_statusTellsOffsets(self) -> None:
        """Of one topic."""
        code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
        answer = self.ask(code, {"topic": "T", "group": "G"})
        table = Fields(fastjson.loads(answer.body), "a status")
        found = {
            MessageQueue.from_json(key): offset
            for key, offset in table.members("messageQueueTable").items()
        }
        self.assertEqual(found[QUEUE], 0)
        self.assertEqual(len(found), 2)

    def test_runningInfoTellsQueues(self) -> None:
        """And what it consumes, in which way; another group is not here."""
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = self.ask(code, {"consumerGroup": "G", "clientId": "x"})
        info = Fields(fastjson.loads(answer.body), "running info")
        tables = {
            MessageQueue.from_json(key): value
            for key, value in info.members("mqTable").items()
        }
        queue = Fields(tables[QUEUE], "a queue")
        self.assertEqual(queue.integer("cachedMsgCount"), 3)
        self.assertEqual(queue.integer("commitOffset"), 0)
        properties = info.texts("properties")
        self.assertEqual(properties["PROP_CONSUME_TYPE"], "CONSUME_PASSIVELY")
        self.assertEqual(properties["PROP_CLIENT_VERSION"], "V5_3_3")
        self.assertEqual(properties["PROP_NAMESERVER_ADDR"], "ns:9876;")
        self.assertEqual(len(info.items("subscriptionSet")), 2)
        other = self.ask(code, {"consumerGroup": "H", "clientId": "x"})
        self.assertEqual(other.code, 1)

    def test_otherRequestsAreRefused(self) -> None:
        """In RocketMQ's words."""
        answer = self.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, {})
        self.assertEqual((answer.code, answer.opaque), (3, 99))
