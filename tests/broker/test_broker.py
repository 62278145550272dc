"""A whole broker, with a real name server and real clients, in memory."""

from __future__ import annotations

import errno
from typing import Any

from twisted.logger import capturedLogs

from rocketbroker.broker.broker import Broker, vip_port
from rocketbroker.broker.metadata.offsets import FEW
from rocketbroker.broker.stats.rates import SAMPLE_SECONDS, WINDOWS
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.errors import ConnectionLost
from rocketbroker.files.blocks import BLOCK
from rocketbroker.records.record import decode_all
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.store.corruption_log import MAX_TRIES
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import heartbeat, pull_ext, send_ext
from tests.broker.week import WeekCase

WALL_MS = 1_700_000_000_000


class BrokerTests(WeekCase):
    """Start, answer, stop, start again."""

    def send(self) -> Command:
        """Send a message to a topic that is made for it."""
        return self.ask(310, send_ext("T", d="1"), b"hello")

    def bodies(self) -> list[bytes]:
        """What queue 0 of the topic gives."""
        answer = self.ask(11, pull_ext())
        return [stored.body for stored in decode_all(answer.body)]

    def test_ready(self) -> None:
        """Name servers know the broker when it says, once, that it is ready."""
        with capturedLogs() as events:
            self.running()
            self.assertEqual(self.ask(105, {"topic": "b"}, port=9876).code, 0)
            self.network.advance(60)
        (line,) = [event["log_format"].format(**event) for event in events]
        self.assertEqual(
            line,
            "The broker[b, 127.0.0.1:10911] boot success. serializeType=JSON and name "
            "server is 127.0.0.1:9876",
        )

    def test_advertisedPortIsToldInsteadOfListenPort(self) -> None:
        """Name servers have it; the broker listens to the other one."""
        self.running(rocketbrokerAdvertisedPort="30911")
        route = loads(self.ask(105, {"topic": "b"}, port=9876).body)
        assert isinstance(route, dict)
        (data,) = route["brokerDatas"]
        self.assertEqual(data["brokerAddrs"], {"0": "127.0.0.1:30911"})
        self.assertIn(10911, self.network.ports)

    def test_alone(self) -> None:
        """A broker without name servers serves at once, but no client finds it."""
        with capturedLogs() as events:
            broker = self.running(namesrvAddr="")
        (line,) = [event["log_format"].format(**event) for event in events]
        self.assertTrue(line.endswith("serializeType=JSON"), line)
        self.assertEqual(
            broker.not_ready(), "No name server is configured (namesrvAddr)."
        )
        self.assertIsNone(broker.unhealthy())

    def test_unreachable(self) -> None:
        """Name servers that are not there do not keep it from working."""
        self.names.stop()
        self.network.advance(1)
        with capturedLogs() as events:
            self.running()
        self.assertIn("cannot register", events[0]["log_format"])
        self.assertIn("boot success", events[1]["log_format"])
        self.names = self.name_server()
        self.network.advance(3)
        self.network.settle()
        self.assertEqual(self.ask(105, {"topic": "b"}, port=9876).code, 0)

    def test_message(self) -> None:
        """A message that is sent makes its topic, is routed, and can be pulled."""
        self.running()
        self.assertEqual(self.send().code, 0)
        self.assertEqual(self.bodies(), [b"hello"])
        self.network.advance(1)
        self.network.settle()
        self.assertEqual(self.ask(105, {"topic": "T"}, port=9876).code, 0)

    def test_rates(self) -> None:
        """The broker says how many messages a second come in and go out."""
        self.running()
        self.send()
        self.send()
        self.assertEqual(len(self.bodies()), 2)
        for _ in range(WINDOWS[0]):
            self.network.advance(SAMPLE_SECONDS)
        figures = loads(self.ask(28, {}).body)
        assert isinstance(figures, dict)
        self.assertEqual(figures["table"]["putTps"], "0.20  ")
        self.assertEqual(figures["table"]["getTransferredTps"], "0.20  ")

    def test_newTopic(self) -> None:
        """A send that makes its topic is answered once the topic is on the disk, and
        so are those that come meanwhile."""
        threads = self.in_thread = Threads()
        self.running()
        answers = []
        for _ in range(2):
            request = Command(310, send_ext("T", d="1"), b"hello")
            answers.append(self.client.invoke("127.0.0.1:10911", request, 3.0))
            self.network.settle()
        for answer in answers:
            self.assertNoResult(answer)
        threads.run()
        self.network.settle()
        for answer in answers:
            self.assertEqual(self.successResultOf(answer).code, 0)
        self.assertIn(b'"T"', self.disk.read("/store/config/topics.json"))
        self.assertEqual(self.send().code, 0)

    def test_stopWaitsForThreads(self) -> None:
        """The store is not closed while a thread still reads in it, whoever asked."""
        self.stop(self.running_with_topic())
        threads = self.in_thread = Threads()
        broker = self.running()
        asked = {
            "topic": "T",
            "key": "k",
            "maxNum": "1",
            "beginTimestamp": "0",
            "endTimestamp": "9",
        }
        answer = self.client.invoke("127.0.0.1:10911", Command(12, asked), 30.0)
        self.network.settle()
        slow = threads.waiting.pop()
        stopped = broker.stop()
        for _ in range(300):
            threads.run()
            self.network.advance(0.05)
        self.assertNoResult(stopped)
        self.assertIsNone(broker.store.refusal())
        self.failureResultOf(answer, ConnectionLost)
        slow()
        for _ in range(5):
            threads.run()
            self.network.advance(0.05)
        self.successResultOf(stopped)

    def test_vip(self) -> None:
        """The VIP port answers all but pulls."""
        self.running()
        self.assertEqual(self.ask(310, send_ext("T", d="1"), b"a", 10909).code, 0)
        self.assertEqual(self.ask(11, pull_ext(), port=10909).code, 3)
        self.assertEqual(self.ask(11, pull_ext()).code, 0)
        self.assertEqual(vip_port(10911), 10909)
        self.assertEqual([vip_port(port) for port in (0, 1, 2)], [0, 0, 0])

    def test_clientRequests(self) -> None:
        """What applications ask is answered, and by the VIP port all but pulls."""
        broker = self.running()
        both = {10, 310, 320, 324, 325, 36, 37, 34, 35, 46, 38, 14, 15, 41, 42, 12, 33}
        self.assertEqual(both - broker.main.responders.keys(), set())
        self.assertEqual(both - broker.vip.responders.keys(), set())
        pulls = {11, 361}
        self.assertEqual(pulls - broker.main.responders.keys(), set())
        self.assertEqual(pulls & broker.vip.responders.keys(), set())

    def test_notSupported(self) -> None:
        """What is not there yet says so, on both ports."""
        self.running()
        for port in (10911, 10909):
            answer = self.ask(50, {}, port=port)
            self.assertEqual(answer.code, 3)
            name = "UPDATE_AND_CREATE_ACL_CONFIG"
            self.assertEqual(answer.remark, f" request type 50 ({name}) not supported")

    def test_offsetsSaved(self) -> None:
        """Offsets reach the disk some seconds after they were committed."""
        broker = self.running()
        broker.metadata.offsets.commit("G", "T", 0, 7)
        self.network.advance(9)
        self.assertFalse(self.disk.exists("/store/config/consumerOffset.json"))
        self.network.advance(1)
        self.assertIn(b"T@G", self.disk.read("/store/config/consumerOffset.json"))
        broker.metadata.offsets.commit("G", "T", 0, 8)
        self.network.advance(5)
        self.assertIn(b"{0:8}", self.disk.read("/store/config/consumerOffset.json"))

    def test_silentClients(self) -> None:
        """A client that is silent for two minutes is taken from its groups."""
        broker = self.running()
        self.ask(34, {}, heartbeat())
        self.assertIsNotNone(broker.clients.consumers.group("G"))
        self.network.advance(110)
        self.ask(14, {"consumerGroup": "G", "topic": "T", "queueId": "0"})
        self.assertIsNotNone(broker.clients.consumers.group("G"))
        self.network.advance(21)
        self.assertIsNone(broker.clients.consumers.group("G"))
        self.assertEqual(broker.clients.producers.names(), [])

    def test_closedClient(self) -> None:
        """A client whose connection ends is taken from its groups at once."""
        broker = self.running()
        self.ask(34, {}, heartbeat())
        self.client.close("127.0.0.1:10911")
        self.network.settle()
        self.assertIsNone(broker.clients.consumers.group("G"))

    def test_stop(self) -> None:
        """Name servers forget a broker that stops; nothing is left to be done."""
        broker = self.running()
        self.stop(broker)
        answer = self.ask(105, {"topic": "b"}, port=9876)
        self.assertEqual(answer.code, 17)
        self.assertFalse(self.disk.exists("/store/abort"))

    def test_stopWhileSendsWait(self) -> None:
        """Who waits for the disk when the broker stops gets an answer."""
        self.stop(self.running_with_topic())
        threads = self.in_thread = Threads()
        broker = self.running(flushDiskType="SYNC_FLUSH")
        first = self.client.invoke(
            "127.0.0.1:10911", Command(310, send_ext("T"), b"first"), 30.0
        )
        self.network.settle()
        threads.run()
        self.network.settle()
        self.successResultOf(first)
        waiting = [
            self.client.invoke(
                "127.0.0.1:10911", Command(310, send_ext("T"), b"late"), 30.0
            )
            for _ in range(3)
        ]
        self.network.settle()
        stopped = broker.stop()
        for _ in range(80):
            self.network.advance(0.05)
        self.assertNoResult(waiting[0])
        for _ in range(200):
            threads.run()
            self.network.advance(0.05)
        self.successResultOf(stopped)
        self.assertEqual([self.successResultOf(each).code for each in waiting], [0] * 3)

    def test_stopWhileSlaveIsGone(self) -> None:
        """Who waits for a slave gets an answer, too, and the broker stops no later than
        slaveTimeout makes it."""
        broker = self.running(brokerRole="SYNC_MASTER", inSyncReplicas="2")
        waiting = self.client.invoke(
            "127.0.0.1:10911", Command(310, send_ext("T"), b"late"), 30.0
        )
        self.network.settle()
        stopped = broker.stop()
        for _ in range(50):
            self.network.advance(0.05)
        self.assertNoResult(waiting)
        for _ in range(50):
            self.network.advance(0.05)
        self.assertEqual(self.successResultOf(waiting).code, 12)
        self.successResultOf(stopped)

    def test_stopWhileTopicsWait(self) -> None:
        """Changes of a large table are written together some time later, but at once
        when the broker stops, and who waits for them gets an answer."""
        broker = self.running()
        broker.metadata.topics.put(
            [TopicConfig(topic_name=f"t{n}") for n in range(5000)]
        )
        request = Command(310, send_ext("T", d="1"), b"hello")
        answer = self.client.invoke("127.0.0.1:10911", request, 3.0)
        self.network.settle()
        self.assertNoResult(answer)
        stopped = broker.stop()
        self.network.settle()
        self.assertEqual(self.successResultOf(answer).code, 0)
        self.network.advance(1)
        self.successResultOf(stopped)
        self.assertIn(b'"T"', self.disk.read("/store/config/topics.json"))

    def test_stopWithManyOffsets(self) -> None:
        """Offsets of many groups, which are written in slices else, are in the file
        when the broker has stopped, whether a write of them is under way or not."""
        path = "/store/config/consumerOffset.json"
        for is_writing in (False, True):
            broker = self.running(namesrvAddr="")
            for number in range(2 * FEW):
                broker.metadata.offsets.commit(f"{is_writing}{number}", "T", 0, number)
            if is_writing:
                broker.metadata.offsets.save()
            stopped = broker.stop().addCallback(lambda _: self.disk.read(path))
            self.network.settle()
            content = self.successResultOf(stopped)
            self.assertEqual(
                content.count(b'"T@%s' % f"{is_writing}".encode()), 2 * FEW
            )

    def running_with_topic(self) -> Broker:
        """A broker with a topic and a message."""
        broker = self.running()
        self.send()
        return broker

    def test_startAgain(self) -> None:
        """The next start finds messages, topics, groups and offsets."""
        broker = self.running()
        self.send()
        self.ask(34, {}, heartbeat())
        commit = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "commitOffset": "1",
        }
        self.assertEqual(self.ask(15, commit).code, 0)
        self.stop(broker)
        self.client = RemotingClient(self.network, RemotingClientOptions())
        broker = self.running(autoCreateTopicEnable="false")
        self.assertEqual(self.bodies(), [b"hello"])
        self.assertIsNotNone(broker.metadata.groups.config("G"))
        self.assertIsNotNone(broker.metadata.topics.config("%RETRY%G"))
        self.assertEqual(broker.metadata.offsets.query("G", "T", 0), 1)

    def test_lmqTurnedOn(self) -> None:
        """All groups go on where they were when enableLmq is turned on, and off."""
        broker = self.running()
        broker.metadata.offsets.commit("G", "T", 0, 5)
        for at, lmq in enumerate(("true", "false"), 5):
            self.stop(broker)
            broker = self.running(enableLmq=lmq)
            self.assertEqual(broker.metadata.offsets.query("G", "T", 0), at)
            broker.metadata.offsets.commit("G", "T", 0, at + 1)

    def test_problems(self) -> None:
        """A table that cannot be read, and a limit that is reached, are listed for the
        operator; the broker works."""
        broker = self.running()
        self.assertEqual(broker.problems(), [])
        self.stop(broker)
        self.disk.make_dirs("/store/config")
        file = self.disk.open("/store/config/consumerFilter.json", create=True)
        file.pwrite(b"no json", 0)
        file.close()
        with capturedLogs():
            broker = self.running()
        (problem,) = broker.problems()
        self.assertIn("/store/config/consumerFilter.json could not be read", problem)
        broker.metadata.topics.limit.most = 0
        problem = broker.problems()[1]
        self.assertIn("Topics that clients use are not created any more", problem)
        self.assertIn("raise rocketbrokerMaxAutoTopics.", problem)

    def test_stopWhileDiskFails(self) -> None:
        """A stop on a disk that refuses ends all the same, and says what went wrong."""
        broker = self.running()
        self.send()
        self.disk.fail("datasync", errno.EIO, times=1000)
        with capturedLogs() as events:
            self.stop(broker)
        self.assertTrue(events)
        self.flushLoggedErrors()
        self.assertEqual(broker.store.refusal(), "the store is closed")

    def test_unreadableDisk(self) -> None:
        """While a disk cannot be read, who asks for what is on it is told so, and
        messages are stored; when it is back all can be read."""
        broker = self.running_with_topic()
        self.disk.fail("pread", errno.EIO, times=1 << 30)
        offset = {"topic": "T", "queueId": "0", "timestamp": "1"}
        for code, ext in ((11, pull_ext()), (29, offset), (33, {"offset": "0"})):
            answer = self.ask(code, ext)
            self.assertEqual(answer.code, 1, code)
            self.assertIn("Input/output error", str(answer.remark))
        self.assertEqual(self.send().code, 0)
        self.disk.heal()
        self.network.advance(1)
        self.assertEqual(self.bodies(), [b"hello", b"hello"])
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 3)
        self.stop(broker)

    def test_badBlock(self) -> None:
        """Where one block of the log cannot be read, who asks for what is in it is told
        so, some times, and then passed over it; all else is served."""
        broker = self.running_with_topic()
        bodies = [b"%d" % number * 3000 for number in range(6)]
        for body in bodies:
            properties = f"KEYS\x01k{body[:1].decode()}\x02"
            ext = send_ext("T", d="1", i=properties)
            self.assertEqual(self.ask(310, ext, body).code, 0)
        self.stop(broker)
        broker = self.running()
        block = 2 * BLOCK
        self.disk.spoil(f"/store/commitlog/{0:020d}", block, block + BLOCK)
        found, refused = [], 0
        offset = 0
        while offset < 7:
            answer = self.ask(11, pull_ext(offset))
            if answer.code == 1:
                self.assertIn("Input/output error", str(answer.remark))
                refused += 1
                continue
            assert answer.ext is not None
            offset = int(answer.ext["nextBeginOffset"])
            if answer.code == 0:
                found += [stored.body for stored in decode_all(answer.body)]
        self.assertEqual(found, [b"hello", *bodies[:2], *bodies[4:]])
        self.assertEqual(refused, MAX_TRIES - 2)
        self.assertEqual(broker.store.corrupt_records, 2)
        asked = {"topic": "T", "maxNum": "9", "beginTimestamp": "0"}
        for number, body in enumerate(bodies):
            end = str(1 << 62)
            answer = self.ask(12, {**asked, "key": f"k{number}", "endTimestamp": end})
            self.assertEqual(answer.code == 0, body in found)
        answer = self.ask(29, {"topic": "T", "queueId": "0", "timestamp": "1"})
        self.assertEqual(answer.code, 0)
        self.assertEqual(self.send().code, 0)
        self.flushLoggedErrors(OSError)
        self.stop(broker)

    def test_readOnlyDisk(self) -> None:
        """While a disk cannot be written to, sends are refused and what is there is
        read; when it can again they are taken."""
        self.running_with_topic()
        self.network.advance(1)
        self.disk.fail("pwrite", errno.EROFS, times=1 << 30)
        self.assertEqual(self.send().code, 14)
        self.assertEqual(self.bodies(), [b"hello"])
        self.network.advance(5)
        self.assertEqual(self.send().code, 14)
        self.disk.heal()
        self.network.advance(1)
        self.assertEqual(self.send().code, 0)
        self.network.advance(1)
        self.assertEqual(self.bodies(), [b"hello", b"hello"])

    def test_heldPull(self) -> None:
        """A pull that waits is answered by the message that comes."""
        self.running()
        self.send()
        waiting: dict[str, Any] = pull_ext(1, sysFlag="6")
        held = self.client.invoke("127.0.0.1:10911", Command(11, waiting), 30.0)
        self.network.settle()
        self.assertNoResult(held)
        self.send()
        self.network.advance(0.1)
        self.network.settle()
        answer = self.successResultOf(held)
        self.assertEqual([one.body for one in decode_all(answer.body)], [b"hello"])

    def test_delays(self) -> None:
        """A delayed message outlives a stop, is delivered once, and request 28 says how
        far its level is."""
        broker = self.running()
        ext = send_ext("T", d="1", properties="DELAY\x012\x02")
        self.assertEqual(self.ask(310, ext, b"later").code, 0)
        self.network.advance(1)
        self.stop(broker)
        self.assertEqual(broker.schedule.service.delivered, 0)
        broker = self.running()
        for _ in range(60):
            self.network.advance(0.1)
        self.assertEqual(self.bodies(), [b"later"])
        figures = loads(self.ask(28, {}).body)
        assert isinstance(figures, dict)
        self.assertEqual(figures["table"]["scheduleMessageOffset_2"], "1,1")
        self.stop(broker)
        file = self.disk.read("/store/config/delayOffset.json")
        self.assertIn(b'"offsetTable":{2:1}', file)
