# -*- test-case-name: tests.proxy.test_brokers -*-
"""Brokers, as the proxy asks them: addresses, types of topics, settings of groups.

What is asked again and again is kept for a while: C{docs/facts/proxy.md} 5 and 10.4.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar, final

from rocketbroker.client.instance import Instance
from rocketbroker.errors import BrokerError, NoBroker, RocketbrokerError
from rocketbroker.proxy.messages_pb2 import Code
from rocketbroker.proxy.routes import KIND_ATTRIBUTE
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.routing.topic_view import READ, MessageQueue, TopicView, writable
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.admin import (
    GetSubscriptionGroupConfigRequestHeader,
    GetTopicConfigRequestHeader,
)

#: How long brokers have for an answer about a topic or a group.
METADATA_SECONDS: Final = 3.0

#: How long they have for all else, but for pops.
CALL_SECONDS: Final = 2.0

#: How many topics and groups are remembered.
MAX_REMEMBERED: Final = 20_000

#: The type of a topic whose attribute cannot be read.
UNKNOWN: Final = "UNSPECIFIED"

T = TypeVar("T")


@final
class _Remembered(Generic[T]):
    """Answers by name, each for a while; the oldest goes where there are too many."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._found: dict[str, tuple[float, T]] = {}

    def get(self, name: str, now: float) -> tuple[T] | None:
        """What is known, in a tuple of its own: it may be None."""
        found = self._found.get(name)
        if found is None or now - found[0] >= self._seconds:
            return None
        return (found[1],)

    def put(self, name: str, value: T, now: float) -> None:
        """Remember it."""
        self._found.pop(name, None)
        self._found[name] = now, value
        if len(self._found) > MAX_REMEMBERED:
            del self._found[next(iter(self._found))]


@final
class Brokers:
    """All brokers that the name servers know."""

    def __init__(self, instance: Instance, cluster: str, seconds: float) -> None:
        """
        @param cluster: whose brokers are asked about groups.
        @param seconds: how long an answer counts.
        """
        self._instance = instance
        self._cluster = cluster
        self._views: _Remembered[TopicView] = _Remembered(seconds)
        self._kinds: _Remembered[str] = _Remembered(seconds)
        self._groups: _Remembered[SubscriptionGroupConfig | None] = _Remembered(seconds)
        self._turn = instance.token

    def _now(self) -> float:
        return self._instance.runtime.monotonic()

    def _next(self) -> int:
        self._turn += 1
        return self._turn

    async def view(self, topic: str) -> TopicView:
        """Where a topic is.

        @raise TopicNotExist: nobody knows it.
        """
        known = self._views.get(topic, self._now())
        if known is not None:
            return known[0]
        view = await self._instance.routes.view(topic, refresh=True)
        self._views.put(topic, view, self._now())
        return view

    async def kind(self, topic: str) -> str:
        """The type of a topic's messages."""
        known = self._kinds.get(topic, self._now())
        if known is not None:
            return known[0]
        view = await self.view(topic)
        addresses = sorted(view.any.values())
        header = GetTopicConfigRequestHeader(topic=topic)
        code = RequestCode.GET_TOPIC_CONFIG
        try:
            address = addresses[self._next() % len(addresses)]
            answer = await self.ask(
                address, Command(code, header.to_ext()), METADATA_SECONDS
            )
            config = TopicConfig.from_json(fastjson.loads(answer.body))
        except (RocketbrokerError, ZeroDivisionError):
            return UNKNOWN
        kind = config.attributes.get(KIND_ATTRIBUTE, "NORMAL")
        self._kinds.put(topic, kind, self._now())
        return kind

    async def group(self, name: str) -> SubscriptionGroupConfig | None:
        """The settings of a group; None if no broker tells them."""
        known = self._groups.get(name, self._now())
        if known is not None:
            return known[0]
        header = GetSubscriptionGroupConfigRequestHeader(group=name)
        code = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG
        found: SubscriptionGroupConfig | None = None
        try:
            command = Command(code, header.to_ext())
            answer = await self.ask(await self.leader(), command, METADATA_SECONDS)
            found = SubscriptionGroupConfig.from_json(fastjson.loads(answer.body))
        except NoBroker:
            return None
        except BrokerError:
            pass
        except RocketbrokerError:
            return None
        self._groups.put(name, found, self._now())
        return found

    async def leader(self) -> str:
        """The address of a master of the cluster, another one with each call.

        @raise NoBroker: there is none.
        """
        masters = sorted((await self.view(self._cluster)).masters.values())
        if not masters:
            raise NoBroker(f"the cluster {self._cluster} has no master now")
        return masters[self._next() % len(masters)]

    async def master(self, broker: str) -> str:
        """The address of a broker's master: brokers register a topic of their name.

        @raise Refusal: no name server knows it.
        """
        try:
            return (await self.view(broker)).masters[broker]
        except (BrokerError, KeyError):
            words = f"cannot find broker {broker}"
            raise Refusal(Code.BAD_REQUEST, words) from None

    async def writable(self, topic: str) -> list[MessageQueue]:
        """The queues to send to.

        @raise Refusal: there is none.
        """
        view = await self.view(topic)
        try:
            return sorted(writable(topic, view))
        except BrokerError:
            raise Refusal(Code.FORBIDDEN, "no writable queue") from None

    async def readable(self, topic: str, broker: str) -> tuple[str, str]:
        """The name and the address of a broker to pop from.

        @param broker: which one, if it has queues to read.
        @raise Refusal: there is none.
        """
        view = await self.view(topic)
        names = sorted(
            one.broker_name
            for one in view.route.queue_datas
            if one.perm & READ and one.read_queue_nums and one.broker_name in view.any
        )
        if not names:
            raise Refusal(Code.FORBIDDEN, "no readable queue")
        if broker not in names:
            broker = names[self._next() % len(names)]
        return broker, view.masters.get(broker) or view.any[broker]

    def turn(self, queues: list[MessageQueue]) -> MessageQueue:
        """The next of them.

        @raise NoBroker: there is none.
        """
        if not queues:
            raise NoBroker("there is no queue")
        return queues[self._next() % len(queues)]

    async def ask(self, address: str, command: Command, seconds: float) -> Command:
        """The successful answer of a broker.

        @raise BrokerError: it refused.
        """
        return await self._instance.connections.ask(address, command, seconds)

    async def invoke(self, address: str, command: Command, seconds: float) -> Command:
        """The answer of a broker, whatever it says."""
        return await self._instance.connections.invoke(address, command, seconds)

    async def tell(self, address: str, command: Command) -> None:
        """Send a request that has no answer."""
        await self._instance.connections.to(address).oneway(command, CALL_SECONDS)
