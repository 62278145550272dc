# -*- test-case-name: tests.nameserver.test_brokers -*-
"""Brokers register, send heartbeats, unregister and expire; operators change routes.

A broker that unregisters, loses its connection or is silent for too long is removed at
the end of the turn, together with all others of the same turn: a removal looks at every
topic. So, as in RocketMQ, the answer to an unregistration can come before the route is
gone.

What changes more than L{FEW} topics is done in slices, one work after the other; routes
are looked up between them. A registration is answered when all its topics are there.

Requests: C{docs/facts/namesrv.md} 10.2 and 10.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, TypeVar, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.errors import BrokerError, RemoteProtocolError, SystemFailure
from rocketbroker.nameserver.incoming import registration
from rocketbroker.nameserver.keyvalues import (
    ORDER_TOPIC_CONFIG,
    KeyValues,
    table_body,
)
from rocketbroker.nameserver.settings import RunningSettings
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.remoting.slices import only_stopped
from rocketbroker.routing.registration import (
    MinBrokerChange,
    Registered,
    Registration,
    Unregistration,
)
from rocketbroker.routing.table import RouteTable, Steps, finished
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.fields import object_of
from rocketbroker.wire.headers.header import Header
from rocketbroker.wire.headers.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    BrokerHeartbeatRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerResponseHeader,
    RegisterTopicRequestHeader,
    UnRegisterBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)

T = TypeVar("T")
R = TypeVar("R")

#: Pairs of brokers with one name and id that the log has named; with one more they are
#: all forgotten, and named once more.
MAX_RIVALS: Final = 1024

#: Up to so many topics are changed at once: it takes two milliseconds.
FEW: Final = 1000

#: Sends a request that wants no answer to an address.
Oneway: TypeAlias = Callable[[str, Command], None]


@final
class Brokers:
    """Keeps the table up to date.

    @ivar table: the routes.
    @ivar registered: how many registrations were accepted.
    @ivar refused: how many were refused.
    @ivar expired: how many brokers were silent for too long.
    @ivar lost: how many lost their connection.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        table: RouteTable,
        settings: RunningSettings,
        keyvalues: KeyValues,
        now_ms: Callable[[], int],
        oneway: Oneway,
        slices: ISlices,
    ) -> None:
        """
        @param now_ms: a clock that never jumps.
        @param oneway: notifies a broker that the minimum id has changed.
        """
        self._clock = clock
        self.table = table
        self._settings = settings
        self._keyvalues = keyvalues
        self._now_ms = now_ms
        self._oneway = oneway
        self._slices = slices
        self._working = 0
        self._removals: list[Unregistration] = []
        self._apply_call: IDelayedCall | None = None
        self._watched: set[IConnection] = set()
        self._rivals: set[tuple[str, int, str, str]] = set()
        self.registered = 0
        self.refused = 0
        self.expired = 0
        self.lost = 0

    def register(self, table: IResponderTable) -> None:
        """Answer requests 103, 104, 322, 904, 205, 327, 216 and 217."""
        table.register(RequestCode.REGISTER_BROKER, self.register_broker)
        table.register(RequestCode.UNREGISTER_BROKER, self.unregister_broker)
        table.register(RequestCode.QUERY_DATA_VERSION, self.query_data_version)
        table.register(RequestCode.BROKER_HEARTBEAT, self.heartbeat)
        table.register(RequestCode.WIPE_WRITE_PERM_OF_BROKER, self.wipe_write)
        table.register(RequestCode.ADD_WRITE_PERM_OF_BROKER, self.add_write)
        table.register(RequestCode.DELETE_TOPIC_IN_NAMESRV, self.delete_topic)
        table.register(RequestCode.REGISTER_TOPIC_IN_NAMESRV, self.register_topic)

    def stop(self) -> None:
        """Forget the pending removals; the table is not kept anyway."""
        if self._apply_call is not None:
            self._apply_call.cancel()
            self._apply_call = None

    # Registrations and heartbeats.

    def register_broker(self, connection: IConnection, request: Command) -> Answer:
        """A broker registers itself and its topics (103)."""
        options = self._settings.options
        try:
            new = registration(connection, request)
        except BrokerError:
            self.refused += 1
            raise
        drop_missing = options.delete_topic_with_broker_registration
        steps = self.table.registering(new, self._now_ms(), drop_missing)
        topics = len(new.topics)
        if drop_missing:
            topics += len(self.table.topics)
        return self._do(
            steps,
            topics,
            lambda result: self._registered(connection, request, new, result),
        )

    def _do(
        self, steps: Steps[T], topics: int, then: Callable[[T], R]
    ) -> R | Deferred[R]:
        """Do what changes the table, now or in slices.

        @param topics: how many topics it looks at.
        @param then: gets the result.
        """
        if topics <= FEW and not self._working:
            return then(finished(steps))
        results: list[T] = []

        def work() -> Iterator[None]:
            results.append((yield from steps))

        self._working += 1
        done = self._slices.run(self, work()).addBoth(self._worked)
        return done.addCallback(lambda _: then(results[0]))

    def _worked(self, result: T) -> T:
        self._working -= 1
        return result

    def _registered(
        self,
        connection: IConnection,
        request: Command,
        new: Registration,
        result: Registered | None,
    ) -> Command:
        """The answer to a registration.

        @raise SystemFailure: it is refused.
        """
        options = self._settings.options
        if result is None:
            self.refused += 1
            raise SystemFailure("register broker failed")
        self.registered += 1
        if result.rival is not None:
            self._warn_of_rivals(new, result.rival)
        if connection not in self._watched:
            self._watched.add(connection)
            connection.on_close(self._closed)
        if result.change is not None and options.notify_min_broker_id_changed:
            self._notify(result.change)
        ordered = None
        if options.return_order_topic_config_to_broker:
            ordered = self._keyvalues.namespace(ORDER_TOPIC_CONFIG)
        return response_to(
            request,
            ext=RegisterBrokerResponseHeader(
                ha_server_addr=result.ha_address, master_addr=result.master_address
            ).to_ext(),
            body=b"" if ordered is None else table_body(ordered),
        )

    def _warn_of_rivals(self, new: Registration, other: str) -> None:
        """Log once for each pair that two brokers use one name and id."""
        low, high = sorted((new.address, other))
        pair = (new.name, new.broker_id, low, high)
        if pair in self._rivals:
            return
        if len(self._rivals) >= MAX_RIVALS:
            self._rivals.clear()
        self._rivals.add(pair)
        self._log.warn(
            "Two brokers are called {name} and have the id {broker_id}: {low} and "
            "{high}. Clients find only one of them. Give one of them another "
            "brokerName or brokerId.",
            name=new.name,
            broker_id=new.broker_id,
            low=low,
            high=high,
        )

    def query_data_version(self, connection: IConnection, request: Command) -> Command:
        """Whether a broker has changed its topics (322); counts as a heartbeat."""
        header = QueryDataVersionRequestHeader.from_ext(request.ext)
        theirs = _read(DataVersion.from_json, request.body) if request.body else None
        cluster, address = header.cluster_name, header.broker_addr
        ours = self.table.data_version(cluster, address)
        changed = ours is None or ours != theirs
        self.table.heard(cluster, address, self._now_ms())
        return response_to(
            request,
            ext=QueryDataVersionResponseHeader(changed=changed).to_ext(),
            body=b"" if ours is None else dumps(ours),
        )

    def heartbeat(self, connection: IConnection, request: Command) -> Command:
        """A heartbeat (904); the answer does not say whether the broker is known."""
        header = BrokerHeartbeatRequestHeader.from_ext(request.ext)
        self.table.heard(header.cluster_name, header.broker_addr, self._now_ms())
        return response_to(request)

    # Removals.

    def unregister_broker(self, connection: IConnection, request: Command) -> Command:
        """A broker unregisters (104)."""
        header = UnRegisterBrokerRequestHeader.from_ext(request.ext)
        without_id = "brokerId" in header.lacking(request.ext)
        leaving = Unregistration(
            cluster=header.cluster_name,
            name=header.broker_name,
            address=header.broker_addr,
            broker_id=None if without_id else header.broker_id,
        )
        if not self._remove(leaving):
            raise SystemFailure("too many brokers are being unregistered")
        return response_to(request)

    def scan(self) -> None:
        """Remove brokers that were silent for too long, and close their connections."""
        for key, channel in self.table.expired(self._now_ms()):
            leaving = self.table.unregistration(key)
            self.expired += 1
            self._log.warn(
                "The broker at {address} of cluster {cluster} was silent for too long.",
                cluster=key[0],
                address=key[1],
            )
            if leaving is not None:
                self._remove(leaving)
            if IConnection.providedBy(channel):
                IConnection(channel).close()

    def _closed(self, connection: IConnection) -> None:
        """A connection over which a broker registered is gone."""
        self._watched.discard(connection)
        key = self.table.of_channel(connection)
        if key is None:
            return
        leaving = self.table.unregistration(key)
        if leaving is not None and leaving not in self._removals:
            self.lost += 1
            self._log.warn(
                "The broker {name} at {address} lost its connection.",
                name=leaving.name,
                address=leaving.address,
            )
            self._remove(leaving)

    def _remove(self, leaving: Unregistration) -> bool:
        """Remove a broker at the end of the turn; False if too many wait for that."""
        most = self._settings.options.un_register_broker_queue_capacity
        if len(self._removals) >= most:
            return False
        self._removals.append(leaving)
        if self._apply_call is None:
            self._apply_call = self._clock.callLater(0, self._apply)
        return True

    def _apply(self) -> None:
        self._apply_call = None
        leaving, self._removals = self._removals, []
        steps = self.table.unregistering(leaving)
        done = self._do(steps, len(self.table.topics), self._removed)
        if done is not None:
            # The table is not kept when the name server stops.
            done.addErrback(only_stopped)

    def _removed(self, changes: list[MinBrokerChange]) -> None:
        """Brokers have gone."""
        if self._settings.options.notify_min_broker_id_changed:
            for change in changes:
                self._notify(change)

    def _notify(self, change: MinBrokerChange) -> None:
        """Notify a group that its minimum id has changed (905)."""
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=change.broker_id,
            min_broker_addr=change.address,
            offline_broker_addr=change.offline_address,
            ha_broker_addr=change.ha_address,
        )
        for address in change.recipients:
            command = Command(
                RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, header.to_ext(), flag=ONEWAY
            )
            self._oneway(address, command)

    # Requests of operators.

    def wipe_write(self, connection: IConnection, request: Command) -> Answer:
        """Clients are to send to a broker no more (205)."""
        name = WipeWritePermOfBrokerRequestHeader.from_ext(request.ext).broker_name
        return self._permit(
            connection,
            request,
            self.table.wiping_write(name),
            f"took the write permission of broker {name!r}",
            lambda count: WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count),
        )

    def add_write(self, connection: IConnection, request: Command) -> Answer:
        """Clients may send to a broker again (327)."""
        name = AddWritePermOfBrokerRequestHeader.from_ext(request.ext).broker_name
        return self._permit(
            connection,
            request,
            self.table.adding_write(name),
            f"gave broker {name!r} the write permission",
            lambda count: AddWritePermOfBrokerResponseHeader(add_topic_count=count),
        )

    def _permit(
        self,
        connection: IConnection,
        request: Command,
        steps: Steps[int],
        action: str,
        header: Callable[[int], Header],
    ) -> Answer:
        """Change the permission of a broker's topics.

        @param action: what was done, for the log.
        @param header: of the answer, by the number of topics.
        """

        def done(count: int) -> Command:
            self._log.info(
                "{peer} {action} for {count} topics.",
                peer=connection.peer,
                action=action,
                count=count,
            )
            return response_to(request, ext=header(count).to_ext())

        return self._do(steps, len(self.table.topics), done)

    def delete_topic(self, connection: IConnection, request: Command) -> Command:
        """Delete the routes of a topic (216), or those in one cluster."""
        header = DeleteTopicFromNamesrvRequestHeader.from_ext(request.ext)
        cluster = header.cluster_name or None
        self.table.delete_topic(header.topic, cluster)
        self._log.info(
            "{peer} deleted the routes of topic {topic!r} in {where}.",
            peer=connection.peer,
            topic=header.topic,
            where="all clusters" if cluster is None else f"cluster {cluster!r}",
        )
        return response_to(request)

    def register_topic(self, connection: IConnection, request: Command) -> Command:
        """Add routes of a topic (217)."""
        header = RegisterTopicRequestHeader.from_ext(request.ext)
        if request.body:
            route = _read(TopicRouteData.from_json, request.body)
            self.table.add_topic(header.topic, route.queue_datas)
            self._log.info(
                "{peer} added routes of topic {topic!r} for {count} brokers.",
                peer=connection.peer,
                topic=header.topic,
                count=len(route.queue_datas),
            )
        return response_to(request)


def _read(read: Callable[[object], T], body: bytes) -> T:
    """A body as a value.

    @raise SystemFailure: it cannot be read.
    """
    try:
        return object_of(body, read)
    except RemoteProtocolError as error:
        raise SystemFailure(f"The body cannot be read: {error}.") from error
