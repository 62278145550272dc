# -*- test-case-name: tests.blocking.test_routes -*-
"""Routes of topics, from the name servers.

One name server answers at a time; when it does not, the next one is asked, and stays.
A route is kept for a while, and asked for again at once when it turns out to be wrong.
While no name server answers it stays: brokers go on serving.
See C{docs/facts/client.md} 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.connections import Connections
from rocketbroker.blocking.settings import Settings, name_server_list
from rocketbroker.errors import (
    ConfigurationError,
    NoBroker,
    RemoteProtocolError,
    RocketbrokerError,
    TopicNotExist,
    error_of_response,
)
from rocketbroker.records.names import AUTO_CREATE_TOPIC
from rocketbroker.routing.topic_view import (
    MASTER,
    MessageQueue,
    TopicView,
    first_queues,
    writable,
)
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.routes import ClusterInfo, TopicRouteData
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

#: How long a known route is gone by before name servers that are away are asked again.
AWAY_SECONDS: Final = 5.0

__all__ = ["MASTER", "MessageQueue", "NoBroker", "Routes"]


@final
class Routes:
    """The routes of a client. It can be pickled: a copy knows none yet.

    @ivar asked: how many requests have been sent to name servers.
    """

    def __init__(self, settings: Settings, connections: Connections) -> None:
        self._settings = settings
        self._connections = connections
        self._name_servers = name_server_list(settings.name_servers)
        self._current = 0
        self._known: dict[str, TopicView] = {}
        self.asked = 0

    def __reduce__(self) -> tuple[object, ...]:
        return Routes, (self._settings, self._connections)

    def ask(self, code: int, ext: dict[str, str] | None = None) -> Command:
        """Ask a name server; those that do not answer are passed over.

        @return: its successful answer.
        @raise BrokerError: it refused the request.
        @raise ConfigurationError: the address is not a name server's.
        @raise RequestTimeout: none answered in time.
        @raise ConnectionLost: none could be reached.
        """
        failure: RocketbrokerError | None = None
        for _ in self._name_servers:
            address = self._name_servers[self._current]
            self.asked += 1
            try:
                answer = self._connections.to(address).invoke(
                    Command(code, ext), self._settings.seconds
                )
            except PASSING as problem:
                failure = problem
                self._current = (self._current + 1) % len(self._name_servers)
                continue
            if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise ConfigurationError(
                    f"{address} is no name server; it may be a broker: give the name "
                    "server's address, which ends in :9876 unless it was changed"
                )
            if answer.code != ResponseCode.SUCCESS:
                raise error_of_response(answer.code, answer.remark)
            return answer
        assert failure is not None
        raise failure

    def view(self, topic: str, refresh: bool = False) -> TopicView:
        """Where a topic is.

        @param refresh: do not go by what is known.
        @raise TopicNotExist: no name server knows it.
        @raise ConnectionLost: no name server answers, and it was never known; so for
            RequestTimeout.
        """
        now = self._settings.machine.monotonic()
        known = self._known.get(topic)
        if known is not None and not refresh and now < known.expires:
            return known
        try:
            answer = self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        except PASSING:
            if known is None or refresh:
                raise
            known.expires = now + AWAY_SECONDS
            return known
        route = TopicRouteData.from_json(fastjson.loads(answer.body))
        view = TopicView(topic, route, now + self._settings.route_seconds)
        self._known[topic] = view
        return view

    def broker_names(self) -> dict[str, str]:
        """The names of the brokers of all known routes, by address."""
        return {
            address: data.broker_name
            for view in [*self._known.values()]
            for data in view.route.broker_datas
            for address in data.broker_addrs.values()
        }

    def forget(self, topic: str) -> None:
        """Ask again the next time."""
        known = self._known.get(topic)
        if known is not None:
            known.expires = 0.0

    def is_known(self, topic: str) -> bool:
        """Whether there was such a topic at some time."""
        return topic in self._known

    def to_write(self, topic: str) -> Sequence[MessageQueue]:
        """The queues to send to.

        A topic that does not exist gets queues on the brokers that create topics on
        the first send.

        @raise TopicNotExist: there is no such topic and nobody creates it.
        @raise NoBroker: none of its brokers has a master now.
        @raise NoPermission: none of its queues may be written.
        """
        try:
            view = self.view(topic)
        except TopicNotExist as problem:
            return self._queues_to_be(topic, problem)
        return writable(topic, view)

    def _queues_to_be(self, topic: str, problem: TopicNotExist) -> list[MessageQueue]:
        try:
            default = self.view(AUTO_CREATE_TOPIC)
        except TopicNotExist:
            raise problem from None
        queues = first_queues(topic, default)
        if not queues:
            raise problem
        return queues

    def to_read(self, topic: str) -> Sequence[MessageQueue]:
        """The queues to read, by broker and number.

        @raise TopicNotExist: there is no such topic.
        """
        return self.view(topic).read

    def address(self, queue: MessageQueue, master_only: bool = True) -> str:
        """The broker to talk to about a queue.

        @param master_only: otherwise a slave will do where there is no master.
        @raise TopicNotExist: there is no such topic.
        @raise NoBroker: the queue's broker is not registered, or has no master.
        """
        try:
            view = self.view(queue.topic)
        except TopicNotExist as problem:
            try:
                view = self.view(AUTO_CREATE_TOPIC)
            except TopicNotExist:
                raise problem from None
        address = view.masters.get(queue.broker)
        if address is None and not master_only:
            address = view.any.get(queue.broker)
        if address is None:
            raise NoBroker(f"the name server knows no master now for {queue}")
        return address

    def clusters(self) -> ClusterInfo:
        """All brokers, by cluster."""
        answer = self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        return ClusterInfo.from_json(fastjson.loads(answer.body))

    def topics(self) -> list[str]:
        """The names of all topics, sorted."""
        answer = self.ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        body = fastjson.loads(answer.body)
        listed = body.get("topicList") if isinstance(body, dict) else None
        if not isinstance(listed, list):
            raise RemoteProtocolError("a list of topics that is none")
        return sorted(str(topic) for topic in listed)
