"""A whole broker in memory, with a name server and real clients, whose time is a clock.

Nothing happens but when the test lets time pass, so that a week is over in seconds::

    class RetryTests(WeekCase):

        def test_something(self) -> None:
            broker = self.running()
            self.ask(310, send_ext("T", d="1"), b"hello")
            self.pass_by(7 * DAY, step=5 * MINUTE)

Time passes in steps. In each, whatever is due is done once, as on a machine that was
busy for so long: the smaller the steps, the closer to the time that was meant things
happen, and the longer it takes: two thousand steps are a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.context import BrokerContext
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.message_store import Store
from rocketbroker.store.plugins import IFollowerPlugin
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST, SMALL, NoLookup, heartbeat, pull_ext, send_ext

WALL_MS: Final = 1_700_000_000_000

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


class WeekCase(SynchronousTestCase):
    """A disk, a network, a name server; brokers as the test wants them."""

    def setUp(self) -> None:
        """A disk, a network, a name server."""
        self.disk = MemoryDisk()
        self.network = MemoryNetwork()
        self.port = 10911
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
        given = {
            **SMALL,
            "brokerName": "b",
            "brokerClusterName": "C",
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": "127.0.0.1:9876",
            "listenPort": str(self.port),
            **settings,
        }
        parsed = BrokerSettings.from_properties(given)
        turns = Turns()
        self.replicas, self.link = ScriptedReplicas(), ScriptedLink()
        context = BrokerContext(
            settings=parsed,
            port=self.port,
            clock=self.network,
            wall_ms=self.wall_ms,
            files=self.disk,
            store=Store(self.disk, parsed.store, self.wall_ms, HOST),
            in_thread=self.in_thread,
            client=RemotingClient(self.network, parsed.client),
            lookup=NoLookup(),
            turns=turns,
            unique_keys=UniqueKeys(b"\x0a\0\0\1", 1, 2, self.wall_ms),
            followers=self.followers,
            replica_server=lambda store, in_thread, membership: self.replicas,
            master_link=lambda store, in_thread: self.link,
        )
        broker = Broker(context)
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

    def pass_by(self, seconds: float, step: float = 1.0) -> None:
        """Let time pass.

        @param step: how much of it at once.
        """
        self.until(lambda: False, seconds, step)

    def until(
        self, is_over: Callable[[], bool], most: float, step: float = 1.0
    ) -> float:
        """Let time pass until something has happened.

        @param most: after so many seconds it is over anyway.
        @param step: how much of it at once.
        @return: how many seconds have passed.
        """
        begin = self.network.seconds()
        while (left := begin + most - self.network.seconds()) > 1e-6:
            if is_over():
                break
            self.network.advance(min(left, step))
            self.network.settle()
            # Files are as old as their last change.
            self.disk.now_ms = max(self.disk.now_ms, self.wall_ms())
        return self.network.seconds() - begin

    def messages(
        self, topic: str = "T", queue_id: int = 0, offset: int = 0
    ) -> list[StoredMessage]:
        """The messages that a pull finds."""
        answer = self.ask(11, pull_ext(offset, queue_id, topic=topic))
        return list(decode_all(answer.body)) if answer.code == 0 else []

    # What applications do.

    def heartbeat(self, topics: list[str]) -> None:
        """A consumer of group G is there; as long as it says no more, it is silent."""
        self.assertEqual(self.ask(34, {}, heartbeat(topics)).code, 0)

    def produce(self, body: bytes, properties: str = "", flag: int = 0) -> None:
        """A message for queue 0 of topic T."""
        ext = send_ext("T", d="1", properties=properties, f=str(flag))
        ext["g"] = str(self.wall_ms())
        self.assertEqual(self.ask(310, ext, body).code, 0)

    def give_back(self, message: StoredMessage) -> None:
        """Give a message back, as a client does whose listener failed."""
        fields = {
            "offset": str(message.position),
            "group": "G",
            "delayLevel": "0",
            "originMsgId": message.message_id,
            "originTopic": message.topic,
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        }
        self.assertEqual(self.ask(36, fields).code, 0)
