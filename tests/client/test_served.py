"""What brokers ask members of a group."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.received import ReceivedMessage
from rocketbroker.client.session import MessageStream
from rocketbroker.records import hosts
from rocketbroker.records.record import encode
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.fields import Fields
from tests.client.cluster import ClientCluster

QUEUE = MessageQueue("T", "b1", 0)
HOST = hosts.encode("10.0.0.9", 10911)


def record_of(text: str) -> bytes:
    """A record of topic T with that body."""
    return encode(b"T", text.encode(), b"", 0, 7, 700, 1, HOST, 2, HOST)


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

    def test_runningInfoTellsTimes(self) -> None:
        """Of the last pull, and of the last message that was given out."""
        ext = {"consumerGroup": "G", "clientId": "x"}

        def times() -> tuple[int, int]:
            answer = self.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, ext)
            info = Fields(fastjson.loads(answer.body), "running info")
            tables = info.members("mqTable")
            (row,) = (
                v for k, v in tables.items() if MessageQueue.from_json(k) == QUEUE
            )
            queue = Fields(row, "a queue")
            pulled = queue.integer("lastPullTimestamp", bits=64)
            return pulled, queue.integer("lastConsumeTimestamp", bits=64)

        start = self.runtime.wall_ms()
        self.assertEqual(times(), (start, 0))
        self.runtime.advance(2.0)
        self.take(self.stream)
        self.runtime.advance(1.0)
        self.assertEqual(times(), (start, start + 2000))

    def test_memberThatIteratesRunsNoListener(self) -> None:
        """It says that it has none."""
        answer = self.ask(
            RequestCode.CONSUME_MESSAGE_DIRECTLY,
            {"consumerGroup": "G", "clientId": "x"},
            self.here.broker().queues["T", 0][0],
        )
        self.assertEqual(answer.code, 1)
        self.assertIn("no listener", answer.remark or "")

    def test_otherRequestsAreRefused(self) -> None:
        """In RocketMQ's words."""
        answer = self.ask(9999, {})
        self.assertEqual((answer.code, answer.opaque), (3, 99))


class PoppingTests(SynchronousTestCase):
    """One member that pops."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.stream = self.here.session().consumer("T", "G", mode="pop")
        self.here.put("1", "2")
        self.runtime.finish(self.stream.__aenter__())

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """Ask the client; its answer."""
        (link,) = self.runtime.links_to("b1:10911")
        link.send(Command(code, ext, body, opaque=99))
        self.runtime.settle()
        return link.requests[-1]

    def test_runningInfoTellsBrokers(self) -> None:
        """No queue is its own; how many messages it holds, and since when."""
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = self.ask(code, {"consumerGroup": "G", "clientId": "x"})
        info = Fields(fastjson.loads(answer.body), "running info")
        self.assertEqual(info.members("mqTable"), {})
        ((key, row),) = info.members("mqPopTable").items()
        self.assertEqual(MessageQueue.from_json(key), MessageQueue("T", "b1", -1))
        queue = Fields(row, "a queue")
        self.assertEqual(queue.integer("waitAckCount"), 2)
        now = self.runtime.wall_ms()
        self.assertEqual(queue.integer("lastPopTimestamp", bits=64), now)

    def test_memberThatBrokersLetPopTellsItToo(self) -> None:
        """Beside the queues that it pulls, which are those of its retry topic."""
        self.runtime.finish(self.stream.close())
        self.here.cluster.modes = {"T": "POP"}
        stream = self.here.session().consumer("T", "G", assignment="broker")
        self.runtime.finish(stream.__aenter__())
        code = RequestCode.GET_CONSUMER_RUNNING_INFO
        answer = self.ask(code, {"consumerGroup": "G", "clientId": "x"})
        info = Fields(fastjson.loads(answer.body), "running info")
        (key,) = info.members("mqPopTable")
        self.assertEqual(MessageQueue.from_json(key), MessageQueue("T", "b1", -1))
        (key,) = info.members("mqTable")
        self.assertEqual(MessageQueue.from_json(key).topic, "%RETRY%G")

    def test_noOffsetsAreTold(self) -> None:
        """The broker has them; a reset changes nothing here."""
        body = fastjson.dumps({"offsetTable": {QUEUE: 1}})
        ext = {"topic": "T", "group": "G", "timestamp": "1", "isForce": "false"}
        code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        (link,) = self.runtime.links_to("b1:10911")
        link.send(Command(code, ext, body, flag=ONEWAY))
        code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
        answer = self.ask(code, {"topic": "T", "group": "G"})
        table = Fields(fastjson.loads(answer.body), "a status")
        self.assertEqual(table.members("messageQueueTable"), {})
        message = self.runtime.finish(self.stream.next(0.0))
        assert message is not None
        self.runtime.finish(message.ack())
        self.assertEqual(self.here.broker().acks, {("T", 0, 0)})


class DirectTests(SynchronousTestCase):
    """A listener that is run on a message, as an operator asks."""

    mode = "classic"

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.mq = self.here.session()
        self.handled: list[ReceivedMessage] = []
        listen = self.mq.on("T", group="G", mode=self.mode)
        listen(self.handle)
        running = self.runtime.start(self.mq.run())
        self.addCleanup(self.here.until, running)
        self.addCleanup(self.mq.stop)
        self.runtime.settle()

    async def handle(self, message: ReceivedMessage) -> None:
        """Do what a message says."""
        self.handled.append(message)
        if message.text == "fail":
            raise ValueError("no")
        if message.text == "slow":
            await self.runtime.sleep(1.5)
        if message.text == "later":
            await message.retry()

    def ask(self, text: str, group: str = "G") -> Command:
        """Let the listener handle a message; the answer."""
        ext = {"consumerGroup": group, "clientId": "x", "brokerName": "b1"}
        (link,) = self.runtime.links_to("b1:10911")
        code = RequestCode.CONSUME_MESSAGE_DIRECTLY
        data = record_of(text) if text else b"no message"
        link.send(Command(code, ext, data, opaque=99))
        self.runtime.settle()
        self.runtime.advance(2.0)
        (answer,) = (one for one in link.requests if one.opaque == 99)
        return answer

    def result(self, text: str) -> Fields:
        """What came of it."""
        return Fields(fastjson.loads(self.ask(text).body), "a result")

    def test_listenerIsRun(self) -> None:
        """On the message as a reader has it; nothing is acknowledged or committed."""
        result = self.result("slow")
        self.assertEqual(result.text("consumeResult"), "CR_SUCCESS")
        self.assertEqual(result.integer("spentTimeMills"), 1500)
        self.assertEqual(result.value("order"), False)
        self.assertEqual(result.value("autoCommit"), True)
        (message,) = self.handled
        self.assertEqual((message.text, message.queue.broker), ("slow", "b1"))
        self.assertEqual(self.here.broker().acks, set())

    def test_listenerThatFails(self) -> None:
        """Its error is told, and the message does not come again."""
        with self.assertLogs("rocketbroker.client", "ERROR"):
            result = self.result("fail")
        self.assertEqual(result.text("consumeResult"), "CR_THROW_EXCEPTION")
        self.assertEqual(result.text("remark"), "ValueError: no")
        self.assertEqual(len(self.handled), 1)

    def test_listenerThatSendsBack(self) -> None:
        """It is told, and nothing is sent back."""
        result = self.result("later")
        self.assertEqual(result.text("consumeResult"), "CR_LATER")
        self.assertNotIn(RequestCode.CONSUMER_SEND_MSG_BACK, self.runtime.codes())

    def test_strangersAreRefused(self) -> None:
        """Another group's message, and what is no message."""
        words = "The Consumer Group <H> not exist in this consumer"
        self.assertEqual(self.ask("x", "H").remark, words)

    def test_nonsenseIsRefused(self) -> None:
        """Nothing is run."""
        self.assertEqual(self.ask("").code, 1)
        self.assertEqual(self.handled, [])


class DirectPopTests(DirectTests):
    """The same of a member that pops."""

    mode = "pop"
