"""A cluster, RocketMQ's Proxy before it and the official gRPC clients, for many tests.

In the large form of heavy tests the cluster is RocketMQ's own: it shows that what the
tests expect is what RocketMQ does.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, cast

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from scripts.lab.grpcjava import java_client
from scripts.lab.javabroker import JavaBroker, JavaNameServer
from scripts.lab.javaclient import Program, body_of
from scripts.lab.servers import PATIENT, Cluster, ask, free_base
from tests.heavy import HEAVY
from tests.integration.asker import Asker
from tests.integration.javacase import fresh, until
from tests.integration.javaproxy import PROXY_VERSION, JavaProxy
from tests.integration.official import Maker, node_client
from tests.integration.questions import group_body, topic_fields

#: Settings of the broker: transactions are checked soon, and what waits for a time may
#: be recalled.
SETTINGS: Final[dict[str, object]] = {
    "transactionTimeOut": 1000,
    "transactionCheckInterval": 1500,
    "timerPrecisionMs": 100,
    "recallMessageEnable": "true",
}

#: Settings of the Proxy: messages may come back soon, which wake no poll, and
#: brokers learn soon which producers can be asked about a transaction.
PROXY_SETTINGS: Final[dict[str, object]] = {
    "grpcClientConsumerMinLongPollingTimeoutMillis": 1000,
    "grpcClientConsumerMaxLongPollingTimeoutMillis": 2000,
    "minInvisibleTimeMillsForRecv": 1000,
    "transactionHeartbeatPeriodSecond": 1,
}

#: The least invisible time with these settings.
SHORTEST_MS: Final = 4000

#: The clients that all tests of a process share.
CLIENTS: Final[dict[str, Maker]] = {"java": java_client, "node": node_client}

#: How long something may take that comes by itself, in seconds.
PATIENCE: Final = 90.0

#: The names of a broker, of all that are here.
NAMED: Final[dict[str, object]] = {
    "brokerClusterName": "DefaultCluster",
    "brokerName": "broker-a",
    "brokerId": 0,
    "brokerIP1": "127.0.0.1",
}


class Addresses(Protocol):
    """Where a cluster is: its name server and its broker, host and port of each."""

    names: str
    address: str


class JavaCluster:
    """RocketMQ's name server and broker, with what a L{Cluster} has."""

    def __init__(self, version: str = PROXY_VERSION, /, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        base = free_base()
        self.names = f"127.0.0.1:{base}"
        self.address = f"127.0.0.1:{base + 10}"
        self._namesrv = JavaNameServer(
            version, self.folder / "namesrv", {"listenPort": base}
        )
        own = {
            **NAMED,
            "listenPort": base + 10,
            "haListenPort": base + 12,
            "namesrvAddr": self.names,
            "storePathRootDir": self.folder / "store",
            "storePathCommitLog": self.folder / "store" / "commitlog",
            "enablePropertyFilter": "true",
            **PATIENT,
            **settings,
        }
        self._broker = JavaBroker(version, self.folder / "broker", own)

    def start(self) -> JavaCluster:
        """Start both, and wait until the name server knows the broker: on a machine
        that is busy elsewhere that comes after the broker says that it is ready."""
        self._namesrv.start()
        self._broker.start()
        port = int(self.names.rpartition(":")[2])
        fields = {"topic": str(NAMED["brokerClusterName"])}
        route = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, fields)
        if not until(lambda: ask(port, route).code == ResponseCode.SUCCESS, PATIENCE):
            raise RuntimeError("the name server does not know the broker")
        return self

    def stop(self) -> None:
        """Stop both and remove everything."""
        self._broker.stop()
        self._namesrv.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Proxied:
    """What all tests of a process share; it ends with the process."""

    now: ClassVar[Proxied | None] = None

    def __init__(self) -> None:
        make = JavaCluster if HEAVY else Cluster
        self.cluster = make(**SETTINGS).start()
        self.clients: dict[str, Program] = {}
        folder = self.cluster.folder / "proxy"
        folder.mkdir()
        try:
            self.proxy = JavaProxy(self.cluster.names, folder, **PROXY_SETTINGS)
            self.proxy.start()
            for language, client in CLIENTS.items():
                self.clients[language] = client(self.proxy.address, folder)
        except BaseException:
            self.stop()
            raise

    @classmethod
    def of(cls) -> Proxied:
        """The one of this process."""
        if cls.now is None:
            cls.now = cls()
            atexit.register(cls.now.stop)
        return cls.now

    def stop(self) -> None:
        """Leave nothing running."""
        for client in self.clients.values():
            client.stop()
        proxy = getattr(self, "proxy", None)
        if proxy is not None:
            proxy.stop()
        self.cluster.stop()


class User:
    """Somebody with a client, and with topics and groups of his own.

    @ivar client: its program.
    @ivar shortest_ms: the least invisible time that the proxy permits.
    """

    def __init__(self, client: Program, cluster: Addresses, shortest_ms: int) -> None:
        self.client = client
        self.shortest_ms = shortest_ms
        # All that it wants to know are the two addresses.
        self._ask = Asker(cast("Cluster", cluster))
        self.close = self._ask.close

    def topic(self, kind: str, queues: int = 2) -> str:
        """A new topic for messages of one type, known to the name server."""
        name = fresh(kind)
        fields = topic_fields(name, queues, attributes=f"+message.type={kind}")
        ext = {key: plain(value) for key, value in fields.items()}
        self._ask.done(RequestCode.UPDATE_AND_CREATE_TOPIC, ext)
        return name

    def group(self, **settings: object) -> str:
        """A new consumer group."""
        name = fresh("G")
        body = json.dumps(group_body(name, **settings)).encode()
        self._ask.done(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
        return name

    def producer(self, topic: str, **words: object) -> str:
        """A started producer."""
        name = fresh("P")
        self.client("producer", name=name, topic=topic, **words)
        return name

    def send(self, name: str, topic: str, body: str, **words: object) -> Any:
        """Send one message; its id and, if it has one, its handle."""
        return self.client.send(name, topic, body.encode(), **words)

    def push(self, topic: str, group: str | None = None, **words: object) -> str:
        """A started push consumer; a group that is not there is made by its arrival."""
        name = fresh("C")
        self.client(
            "push", name=name, group=group or fresh("AUTO"), topic=topic, **words
        )
        return name

    def simple(self, topic: str, group: str | None = None, **words: object) -> str:
        """A started simple consumer."""
        name = fresh("S")
        self.client(
            "simple", name=name, group=group or fresh("AUTO"), topic=topic, **words
        )
        return name

    def received(self, name: str, count: int) -> list[Any]:
        """What a consumer, or the checker of a producer, has been given, once it is so
        much or the time is over."""
        return self.client.received(name, count, PATIENCE)

    def receive(self, name: str, count: int, **words: object) -> dict[str, Any]:
        """Messages by their bodies, received until they are so many."""
        found: dict[str, Any] = {}
        end = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < end:
            for message in self.client("receive", name=name, **words):
                found[text(message)] = message
        return found

    def take(self, name: str, count: int) -> list[Any]:
        """Messages, received and acknowledged until they are so many, in order."""
        found: list[Any] = []
        end = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < end:
            for message in self.client("receive", name=name):
                self.client("ack", name=name, id=message["id"])
                found.append(message)
        return found

    def found(self, topic: str, key: str) -> list[bytes]:
        """The bodies of a topic's messages with a key, as soon as there is one."""
        end = time.monotonic() + PATIENCE
        while not (found := self._ask.found(topic, key)) and time.monotonic() < end:
            time.sleep(0.2)
        return found


def plain(value: object) -> str:
    """A value as a field of a request has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def text(message: dict[str, Any]) -> str:
    """The body of a message."""
    return body_of(message).decode()


def texts(messages: list[Any]) -> list[str]:
    """The bodies of messages."""
    return [text(message) for message in messages]


class ProxyCase(SynchronousTestCase):
    """What users of all clients do, each in a thread of its own."""

    part = "tests.integration.proxy"

    def each(self, scenario: Callable[[User], None]) -> None:
        """Carry out a scenario with each client at the same time."""
        proxied = Proxied.of()
        users = [
            User(client, proxied.cluster, SHORTEST_MS)
            for client in proxied.clients.values()
        ]
        for user in users:
            self.addCleanup(user.close)
        with ThreadPoolExecutor(len(users)) as pool:
            done = [pool.submit(scenario, user) for user in users]
            problems = [each for each in done if each.exception() is not None]
        if problems:
            logs = Path(self.mktemp())
            shutil.copytree(proxied.proxy.home, logs)
            print(f"what the Proxy and its clients have said: {logs.absolute()}")
        for each in problems:
            each.result()
