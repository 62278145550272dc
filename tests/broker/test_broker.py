"""A whole broker, with a real name server and real clients, in memory."""

from __future__ import annotations

import errno
from typing import Any

from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.broker import Broker, vip_port
from rocketbroker.broker.durability import InThread
from rocketbroker.broker.outside import Outside
from rocketbroker.broker.rates import SAMPLE_SECONDS, WINDOWS
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.records.record import decode_all
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.plugins import IFollowerPlugin
from rocketbroker.store.store import Store
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.threads import Threads, at_once
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import HOST, SMALL, pull_ext, send_ext
from tests.broker.test_heartbeats import body as heartbeat

WALL_MS = 1_700_000_000_000


class BrokerTests(SynchronousTestCase):
    """Start, answer, stop, start again."""

    def setUp(self) -> None:
        """A disk, a network, a name server."""
        self.disk = MemoryDisk()
        self.network = MemoryNetwork()
        self.names = self.name_server()
        self.client = RemotingClient(self.network, RemotingClientOptions())
        self.in_thread: InThread = at_once
        self.followers: list[tuple[IFollowerPlugin, InThread]] = []

    def name_server(self) -> RemotingServer:
        """A name server that listens."""
        settings = NamesrvSettings.from_properties({"kvConfigPath": "/kv.json"})
        server = NameServer(
            self.network,
            settings,
            MemoryDisk(),
            lambda: int(self.network.seconds() * 1000),
            at_once,
            lambda address, command: None,
        )
        server.load()
        port = RemotingServer(self.network, settings.server, server.responders)
        port.listen(9876)
        return port

    def wall_ms(self) -> int:
        """The time of day."""
        return WALL_MS + int(self.network.seconds() * 1000)

    def broker(self, **settings: str) -> Broker:
        """A broker that listens but does not work yet."""
        said = {
            **SMALL,
            "brokerName": "b",
            "brokerClusterName": "C",
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": "127.0.0.1:9876",
            **settings,
        }
        parsed = BrokerSettings.from_properties(said)
        turns = Turns()
        outside = Outside(
            self.network,
            self.wall_ms,
            self.disk,
            Store(self.disk, parsed.store, self.wall_ms, HOST),
            self.in_thread,
            RemotingClient(self.network, parsed.client),
            turns,
            UniqueKeys(b"\x0a\0\0\1", 1, 2, self.wall_ms),
            self.followers,
        )
        broker = Broker(outside, parsed, 10911)
        broker.open()
        servers = [
            RemotingServer(self.network, parsed.server, table, turns)
            for table in (broker.main, broker.vip)
        ]
        broker.listen(*servers)
        return broker

    def running(self, **settings: str) -> Broker:
        """A broker that name servers know."""
        broker = self.broker(**settings)
        ready = broker.start()
        self.network.settle()
        self.successResultOf(ready)
        return broker

    def ask(
        self, code: int, ext: dict[str, str], body: bytes = b"", port: int = 10911
    ) -> Command:
        """One request to the broker, or to the name server."""
        answer = self.client.invoke(f"127.0.0.1:{port}", Command(code, ext, body), 3.0)
        self.network.settle()
        return self.successResultOf(answer)

    def stop(self, broker: Broker) -> None:
        """Stop the broker."""
        stopped = broker.stop()
        for _ in range(200):
            self.network.advance(0.05)
        self.successResultOf(stopped)

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

    def test_alone(self) -> None:
        """A broker without name servers is ready at once."""
        with capturedLogs() as events:
            self.running(namesrvAddr="")
        (line,) = [event["log_format"].format(**event) for event in events]
        self.assertTrue(line.endswith("serializeType=JSON"), line)

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
        said = loads(self.ask(28, {}).body)
        assert isinstance(said, dict)
        self.assertEqual(said["table"]["putTps"], "0.20  ")
        self.assertEqual(said["table"]["getTransferredTps"], "0.20  ")

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

    def test_vip(self) -> None:
        """The VIP port answers all but pulls."""
        self.running()
        self.assertEqual(self.ask(310, send_ext("T", d="1"), b"a", 10909).code, 0)
        self.assertEqual(self.ask(11, pull_ext(), port=10909).code, 3)
        self.assertEqual(self.ask(11, pull_ext()).code, 0)
        self.assertEqual(vip_port(10911), 10909)
        self.assertEqual([vip_port(port) for port in (0, 1, 2)], [0, 0, 0])

    def test_notSupported(self) -> None:
        """What is not there yet says so, on both ports."""
        self.running()
        for port in (10911, 10909):
            answer = self.ask(50, {}, port=port)
            self.assertEqual(answer.code, 3)
            self.assertEqual(answer.remark, " request type 50 not supported")

    def test_offsetsSaved(self) -> None:
        """Offsets reach the disk some seconds after they were committed."""
        broker = self.running()
        broker.offsets.commit("G", "T", 0, 7)
        self.network.advance(9)
        self.assertFalse(self.disk.exists("/store/config/consumerOffset.json"))
        self.network.advance(1)
        self.assertIn(b"T@G", self.disk.read("/store/config/consumerOffset.json"))
        broker.offsets.commit("G", "T", 0, 8)
        self.network.advance(5)
        self.assertIn(b"{0:8}", self.disk.read("/store/config/consumerOffset.json"))

    def test_silentClients(self) -> None:
        """A client that is silent for two minutes is taken from its groups."""
        broker = self.running()
        self.ask(34, {}, heartbeat())
        self.assertIsNotNone(broker.consumers.group("G"))
        self.network.advance(110)
        self.ask(14, {"consumerGroup": "G", "topic": "T", "queueId": "0"})
        self.assertIsNotNone(broker.consumers.group("G"))
        self.network.advance(21)
        self.assertIsNone(broker.consumers.group("G"))
        self.assertEqual(broker.producers.names(), [])

    def test_closedClient(self) -> None:
        """A client whose connection ends is taken from its groups at once."""
        broker = self.running()
        self.ask(34, {}, heartbeat())
        self.client.close("127.0.0.1:10911")
        self.network.settle()
        self.assertIsNone(broker.consumers.group("G"))

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
        self.assertIsNotNone(broker.groups.config("G"))
        self.assertIsNotNone(broker.topics.config("%RETRY%G"))
        self.assertEqual(broker.offsets.query("G", "T", 0), 1)

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
        self.assertEqual(broker.delaying.delivered, 0)
        broker = self.running()
        for _ in range(60):
            self.network.advance(0.1)
        self.assertEqual(self.bodies(), [b"later"])
        said = loads(self.ask(28, {}).body)
        assert isinstance(said, dict)
        self.assertEqual(said["table"]["scheduleMessageOffset_2"], "1,1")
        self.stop(broker)
        file = self.disk.read("/store/config/delayOffset.json")
        self.assertIn(b'"offsetTable":{2:1}', file)
