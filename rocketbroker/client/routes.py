# -*- test-case-name: tests.client.test_routes -*-
"""Routes of topics: from the name servers, and kept while these are away.

One name server answers at a time; when it does not, the next one is asked, and stays. A
route that is known is kept until another is learned: brokers go on serving while no
name server does. C{docs/facts/client.md} 3.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, final

from rocketbroker.client.connections import Connections
from rocketbroker.client.outages import NAME_SERVER, Outages
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.settings import ClientSettings
from rocketbroker.client.waits import Signal
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    NoBroker,
    RemoteProtocolError,
    RequestTimeout,
    RocketbrokerError,
    TopicNotExist,
    error_of_response,
)
from rocketbroker.records.names import AUTO_CREATE_TOPIC
from rocketbroker.routing.static_topics import MOCK_PREFIX, NO_BROKER
from rocketbroker.routing.topic_view import (
    MASTER,
    MessageQueue,
    TopicView,
    first_queues,
    writable,
)
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Routes:
    """The routes of one client.

    @ivar asked: how many requests have been sent to name servers.
    """

    def __init__(
        self,
        runtime: Runtime,
        connections: Connections,
        settings: ClientSettings,
        outages: Outages | None = None,
    ) -> None:
        self._runtime = runtime
        self._connections = connections
        self._settings = settings
        self._current = 0
        self._known: dict[str, TopicView] = {}
        self._asking: dict[str, Signal] = {}
        self._outages = outages or Outages()
        self.asked = 0

    async def ask(self, code: int, ext: dict[str, str] | None = None) -> Command:
        """Ask a name server; those that do not answer are passed over.

        @return: its successful answer.
        @raise BrokerError: it refused the request.
        @raise ConfigurationError: the address is not a name server's.
        @raise RequestTimeout: none answered in time.
        @raise ConnectionLost: none could be reached.
        """
        servers = self._settings.name_servers
        failure: RocketbrokerError | None = None
        for _ in servers:
            at = self._current
            address = servers[at]
            self.asked += 1
            try:
                answer = await self._connections.invoke(
                    address, Command(code, ext), self._settings.seconds
                )
            except (ConnectionLost, RequestTimeout, RemoteProtocolError) as problem:
                failure = problem
                if self._current == at:
                    self._current = (at + 1) % len(servers)
                continue
            self._outages.worked(NAME_SERVER)
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise ConfigurationError(
                    f"{address} is no name server; it may be a broker: give the name "
                    "server's address, which ends in :9876 unless it was changed"
                )
            if answer.code != ResponseCode.SUCCESS:
                raise error_of_response(answer.code, answer.remark)
            return answer
        assert failure is not None
        if self._known:
            words = "%s is away; known routes are kept, and it is tried again: %s"
            self._outages.failed(NAME_SERVER, failure, words)
        else:
            self._outages.failed(NAME_SERVER, failure)
        raise failure

    def known(self, topic: str) -> TopicView | None:
        """What is known of a topic, without asking."""
        return self._known.get(topic)

    async def view(self, topic: str, refresh: bool = False) -> TopicView:
        """Where a topic is.

        @param refresh: ask, and go by what is known only if that fails.
        @raise TopicNotExist: no name server knows it, and it was never known.
        @raise ConnectionLost: no name server answers, and it was never known; so for
            RequestTimeout.
        """
        known = self._known.get(topic)
        if known is not None and not refresh:
            return known
        under_way = self._asking.get(topic)
        if under_way is not None:
            await under_way.wait()
            known = self._known.get(topic)
            if known is not None:
                return known
        try:
            return await self._learn(topic)
        except (ConnectionLost, RequestTimeout, RemoteProtocolError, TopicNotExist):
            # A name server that has just begun knows no topics.
            known = self._known.get(topic)
            if known is None:
                raise
            return known

    async def _learn(self, topic: str) -> TopicView:
        signal = self._asking[topic] = Signal(self._runtime)
        try:
            ext = {"topic": topic}
            answer = await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext)
            route = TopicRouteData.from_json(fastjson.loads(answer.body))
            view = self._known[topic] = TopicView(topic, route, 0.0, is_logical=True)
            return view
        finally:
            if self._asking.get(topic) is signal:
                del self._asking[topic]
            # Whoever has asked goes on first: sends keep their order.
            self._runtime.call_later(0, signal.fire)

    async def refresh(self) -> bool:
        """Ask for all known topics again; what cannot be learned stays.

        @return: whether a topic has other queues to read now.
        """
        is_changed = False
        for topic, known in [*self._known.items()]:
            try:
                view = await self.view(topic, refresh=True)
                is_changed = is_changed or view.read != known.read
            except RocketbrokerError as problem:
                _log.debug("The route of %s stays as it is: %s", topic, problem)
        return is_changed

    def forget(self, topic: str) -> None:
        """Forget a topic, which nobody needs any more."""
        self._known.pop(topic, None)

    async def write_queues(
        self, topic: str, refresh: bool = False
    ) -> Sequence[MessageQueue]:
        """The queues to send to.

        A topic that does not exist gets queues on the brokers that create topics on
        the first send.

        @raise TopicNotExist: there is no such topic and nobody creates it.
        @raise NoBroker: none of its brokers has a master now.
        @raise NoPermission: none of its queues may be written.
        """
        try:
            view = await self.view(topic, refresh)
        except TopicNotExist as problem:
            return await self._queues_to_be(topic, problem)
        return writable(topic, view)

    async def _queues_to_be(
        self, topic: str, problem: TopicNotExist
    ) -> list[MessageQueue]:
        try:
            default = await self.view(AUTO_CREATE_TOPIC)
        except TopicNotExist:
            raise problem from None
        queues = first_queues(topic, default)
        if not queues:
            raise problem
        return queues

    def master(self, topic: str, broker: str) -> str:
        """The address of the master that has a topic's queue.

        @raise NoBroker: it is not known.
        """
        for name in (topic, AUTO_CREATE_TOPIC):
            view = self._known.get(name)
            if view is not None and broker in view.masters:
                return view.masters[broker]
        raise NoBroker(f"the name server knows no master now for {topic} on {broker}")

    def broker_of(self, queue: MessageQueue) -> str:
        """The name of the broker that has a queue now: of a logical one its leader."""
        if not queue.broker.startswith(MOCK_PREFIX):
            return queue.broker
        view = self._known.get(queue.topic)
        place = (queue.broker, queue.queue_id)
        return view.leaders.get(place, NO_BROKER) if view is not None else NO_BROKER

    def master_of(self, queue: MessageQueue) -> str:
        """The address of the master that has a queue now.

        @raise NoBroker: it is not known.
        """
        return self.master(queue.topic, self.broker_of(queue))

    def readable(self, queue: MessageQueue, broker_id: int) -> tuple[str, bool]:
        """A server to pull a queue from, and whether it is a master.

        @param broker_id: which one, if it is there; else the one of the lowest number.
        @raise NoBroker: none is known.
        """
        view = self._known.get(queue.topic)
        name = self.broker_of(queue)
        addresses = view.brokers.get(name) if view is not None else None
        if not addresses:
            raise NoBroker(f"the name server knows no broker now for {queue}")
        if broker_id not in addresses:
            broker_id = min(addresses)
        return addresses[broker_id], broker_id == MASTER

    def brokers(self, masters_only: bool = False) -> dict[str, str]:
        """The name of each broker of the known routes, by address."""
        return {
            address: data.broker_name
            for view in self._known.values()
            for data in view.route.broker_datas
            for broker_id, address in data.broker_addrs.items()
            if broker_id == MASTER or not masters_only
        }

    def any_broker(self, topic: str, turn: int) -> str:
        """A broker of a topic, another one with each turn: its master if it has one.

        @raise NoBroker: none is known.
        """
        view = self._known.get(topic)
        if view is None or not view.any:
            raise NoBroker(f"the name server knows no broker now for {topic}")
        name = sorted(view.any)[turn % len(view.any)]
        return view.masters.get(name) or view.any[name]
