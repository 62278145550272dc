# -*- test-case-name: tests.cli.cluster.test_cluster -*-
"""A cluster as the tool sees it: name servers, brokers, requests to each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeVar, final

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.routes import MASTER, MessageQueue
from rocketbroker.blocking.settings import name_server_list
from rocketbroker.cli.cluster.surroundings import Connect, Sender, connect
from rocketbroker.cli.exit_status import NoAnswer, NotThere, is_absence
from rocketbroker.errors import (
    ConfigurationError,
    NoPermission,
    RocketbrokerError,
    TopicNotExist,
)
from rocketbroker.wire.bodies.routes import ClusterInfo, TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.fields import object_of
from rocketbroker.wire.headers.header import Header

T = TypeVar("T")


class Broker(NamedTuple):
    """One broker process.

    @ivar cluster: the cluster's name.
    @ivar name: shared by a master and its slaves.
    @ivar broker_id: 0 is the master.
    @ivar address: C{host:port}.
    """

    cluster: str
    name: str
    broker_id: int
    address: str


@final
class Cluster:
    """What the name servers know, and requests to them and to brokers.

    The table of brokers is asked for once.

    @ivar client: for topics, queues and offsets; L{rocketbroker.blocking}.
    @ivar name_servers: their addresses.
    @ivar unreachable: the brokers that did not answer L{from_each}, and why.
    """

    def __init__(self, client: Client, connect: Connect = connect) -> None:
        self.client = client
        self._connect = connect
        self.name_servers = name_server_list(client.settings.name_servers)
        self._info: ClusterInfo | None = None
        self.unreachable: dict[Broker, RocketbrokerError] = {}
        self._names: dict[str, str] = {}

    def sender(self, patience: float) -> AbstractContextManager[Sender]:
        """What to send with; nothing is opened before the first message.

        @param patience: how many seconds servers that are away are waited for.
        """
        return self._connect(self.client.settings, patience)

    def ask(
        self,
        address: str,
        code: RequestCode,
        header: Header | None = None,
        body: object = None,
        extra: dict[str, str] | None = None,
        seconds: float | None = None,
    ) -> Command:
        """Ask one server; see C{Client.ask_server} for the errors.

        @param body: bytes, or a value that is sent as JSON.
        @param extra: fields beside those of the header.
        """
        ext = {**(header.to_ext() if header else {}), **(extra or {})}
        data = body if isinstance(body, bytes) else dumps(body) if body else b""
        return self.client.ask_server(address, code, ext or None, data, seconds)

    def read(
        self,
        address: str,
        code: RequestCode,
        from_json: Callable[[object], T],
        header: Header | None = None,
        seconds: float | None = None,
    ) -> T:
        """Ask one server for a body; errors as L{ask}.

        @param from_json: what reads it.
        """
        answer = self.ask(address, code, header, seconds=seconds)
        return object_of(answer.body or b"{}", from_json)

    def from_each(
        self,
        brokers: Iterable[Broker],
        ask: Callable[[Broker], T],
        none_will_do: bool = False,
    ) -> list[tuple[Broker, T]]:
        """What each broker answers; those that do not are passed over, and kept.

        @param none_will_do: all may be passed over.
        @raise RocketbrokerError: none of them answers, or one refuses.
        """
        found: list[tuple[Broker, T]] = []
        failure: RocketbrokerError | None = None
        for broker in brokers:
            if broker in self.unreachable:
                # It would take the time of a connection again, for each question.
                failure = self.unreachable[broker]
                continue
            try:
                found.append((broker, ask(broker)))
            except PASSING as problem:
                self.unreachable[broker] = failure = problem
        if failure is not None and not found and not none_will_do:
            raise failure
        return found

    def outcome(
        self, error: RocketbrokerError | None = None
    ) -> RocketbrokerError | None:
        """What to raise after a verb has ended: what is not there may be on a broker
        that did not answer.

        @param error: what it has raised.
        @return: None where all went well.
        """
        away = self.unreachable
        if not away or not (
            error is None or is_absence(error) or error in away.values()
        ):
            return error
        found = str(error) if error is not None and is_absence(error) else ""
        return NoAnswer([(one.name, why) for one, why in away.items()], found)

    def ask_name_server(
        self, code: RequestCode, header: Header | None = None
    ) -> Command:
        """Ask the first name server that answers; errors as C{Routes.ask}."""
        return self.client.routes.ask(code, header.to_ext() if header else None)

    def info(self, refresh: bool = False) -> ClusterInfo:
        """All brokers and clusters, as a name server has them."""
        if self._info is None or refresh:
            self._info = self.client.routes.clusters()
        return self._info

    @property
    def names(self) -> dict[str, str]:
        """The names of the brokers that name servers have told, by address."""
        return self._names | self.client.routes.broker_names()

    @property
    def registered(self) -> set[str]:
        """The names of the brokers that were registered when L{info} last asked."""
        return {*self._info.broker_addr_table} if self._info is not None else set()

    def brokers(
        self, cluster: str | None = None, name: str | None = None
    ) -> list[Broker]:
        """All brokers, or those of a cluster or a name; by cluster, name and id.

        @param name: also one's C{host:port}.
        @raise NotThere: there is no such cluster or broker.
        """
        info = self.info()
        found = [
            Broker(data.cluster, data.broker_name, broker_id, address)
            for data in info.broker_addr_table.values()
            for broker_id, address in data.broker_addrs.items()
        ]
        self._names |= {one.address: one.name for one in found}
        clusters = sorted({one.cluster for one in found} | {*info.cluster_addr_table})
        if cluster is not None:
            if cluster not in clusters:
                raise NotThere(
                    f"There is no cluster {cluster}; there are: {_listed(clusters)}."
                )
            found = [one for one in found if one.cluster == cluster]
        if name is not None:
            names = sorted({one.name for one in found})
            found = [one for one in found if name in (one.name, one.address)]
            if not found:
                raise NotThere(
                    f"There is no broker {name}; there are: {_listed(names)}."
                )
        return sorted(found)

    def masters(
        self, cluster: str | None = None, name: str | None = None
    ) -> list[Broker]:
        """The masters among L{brokers}.

        @raise NotThere: there is none, or no such cluster or broker.
        """
        found = [one for one in self.brokers(cluster, name) if one.broker_id == MASTER]
        if not found:
            raise NotThere("The name server knows no master: is a broker running?")
        return found

    def one_broker(self, name: str) -> Broker:
        """The broker of a name, its master if there is one, or of an address.

        @raise NotThere: there is none.
        """
        return self.brokers(name=name)[0]

    def route(self, topic: str) -> TopicRouteData:
        """Where a topic is; asked for again each time.

        @raise TopicNotExist: the name servers do not know it.
        """
        try:
            route = self.client.routes.view(topic, refresh=True).route
        except TopicNotExist:
            raise TopicNotExist(f"There is no topic {topic}") from None
        # The client forgets a route that seems wrong; the names are wanted then.
        self._names |= self.client.routes.broker_names()
        return route

    def queues(self, topic: str, texts: Sequence[str] = ()) -> list[MessageQueue]:
        """The queues of a topic that may be read: all of them, or those given.

        @param texts: as C{broker:number}.
        @raise TopicNotExist: the name servers do not know the topic.
        @raise NoPermission: none of its queues may be read.
        @raise NotThere: there is no such queue.
        """
        wanted = [parse_queue(topic, text) for text in texts]
        self.route(topic)
        found = self.client.queues(topic)
        if not found:
            raise NoPermission(f"{topic} may not be read: it has no read permission")
        for queue in wanted:
            if queue not in found:
                raise NotThere(f"There is no {queue} that may be read.")
        return wanted or found

    def brokers_of(self, topic: str) -> Iterator[Broker]:
        """The brokers of a topic, by name: of each its master, or else a slave."""
        for data in sorted(self.route(topic).broker_datas, key=lambda d: d.broker_name):
            if data.broker_addrs:
                lowest = min(data.broker_addrs)
                address = data.broker_addrs[lowest]
                yield Broker(data.cluster, data.broker_name, lowest, address)


def parse_queue(topic: str, text: str) -> MessageQueue:
    """The queue of a topic that is given as C{broker:number}.

    @raise ConfigurationError: it is none.
    """
    broker, colon, number = text.rpartition(":")
    if not colon or not broker or not number.isdecimal() or len(number) > 6:
        raise ConfigurationError(f"{text!r} is no queue: give BROKER:NUMBER")
    return MessageQueue(topic, broker, int(number))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") or "none"
