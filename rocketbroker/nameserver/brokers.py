# -*- test-case-name: tests.nameserver.test_brokers -*-
"""Registrations of brokers: heartbeats, expiry, and changes of routes by operators.

A broker that unregisters, loses its connection or is silent for too long is removed at
the end of the turn, together with all others of the same turn: a removal looks at every
topic. So, as in RocketMQ, the answer to an unregistration can come before the route is
gone.

What takes long, a registration of which not all is L{read at once<is_short>} or what
changes more than L{FEW} topics, is done in slices, one work after the other, in the
order in which it came; routes are looked up between them. A registration is answered
when all its topics are there.

Requests: C{docs/facts/namesrv.md} 10.2 and 10.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from rocketbroker.errors import (
    BrokerError,
    RemoteProtocolError,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.nameserver.keyvalues import (
    ORDER_TOPIC_CONFIG,
    KeyValues,
)
from rocketbroker.nameserver.register_request import is_short, registration
from rocketbroker.nameserver.settings import RunningSettings
from rocketbroker.remoting.cooperative_tasks import only_stopped, result_of
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
    ISlices,
)
from rocketbroker.routing.registration import (
    MinBrokerChange,
    Registration,
    Unregistration,
)
from rocketbroker.routing.table import RouteTable
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
from rocketbroker.wire.steps import Steps, finished

T = TypeVar("T")

#: Pairs of brokers with one name and id that the log has named; with one more they are
#: all forgotten, and named once more.
MAX_RIVALS: Final = 1024

#: Up to so many topics are changed at once: it takes two milliseconds.
FEW: Final = 1000

#: How long all bodies of registrations may be together that wait for their turn: those
#: of sixteen brokers with as many topics as a frame holds. Brokers that are refused
#: register again with the next period, of half a minute.
MAX_WAITING_BYTES: Final = 256 * 1024 * 1024

#: So many brokers are removed at once.
FEW_BROKERS: Final = 64

#: The longest body of 217, which is the route of a topic at a hundred brokers, and of
#: 322, a data version. RocketMQ's dialect takes 300 ms for each megabyte.
MAX_ROUTE_BYTES: Final = 32 * 1024
MAX_VERSION_BYTES: Final = 4 * 1024

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
        self._waiting_bytes = 0
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
        size = len(request.body)
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            self.refused += 1
            raise SystemBusy(
                f"Registrations of {self._waiting_bytes} bytes wait already, and the "
                f"most is {MAX_WAITING_BYTES}; register again later."
            )
        drops = self._settings.options.delete_topic_with_broker_registration
        answer: Answer = self._do(
            self._registering(connection, request),
            is_short(request)
            and self._keyvalues.is_short(ORDER_TOPIC_CONFIG)
            and not (drops and len(self.table.topics) > FEW),
        )
        if isinstance(answer, Deferred):
            self._waiting_bytes += size
            answer.addBoth(self._was_read, size)
        return answer

    def _was_read(self, result: T, size: int) -> T:
        self._waiting_bytes -= size
        return result

    def _do(self, steps: Steps[T], is_short: bool) -> T | Deferred[T]:
        """Do what changes the table, now or in slices."""
        if is_short and not self._working:
            return finished(steps)
        self._working += 1
        return result_of(self._slices, self, steps).addBoth(self._worked)

    def _worked(self, result: T) -> T:
        self._working -= 1
        return result

    def _registering(self, connection: IConnection, request: Command) -> Steps[Command]:
        """A broker registers, and is answered.

        @raise BrokerError: it is refused.
        """
        options = self._settings.options
        drop_missing = options.delete_topic_with_broker_registration
        try:
            new = yield from registration(connection, request)
            result = yield from self.table.registering(
                new, self._now_ms(), drop_missing
            )
            if result is None:
                raise SystemFailure("register broker failed")
        except BrokerError:
            self.refused += 1
            raise
        self.registered += 1
        if result.rival is not None:
            self._warn_of_rivals(new, result.rival)
        if connection not in self._watched:
            self._watched.add(connection)
            connection.watch_close(self._closed)
        if result.change is not None and options.notify_min_broker_id_changed:
            self._notify(result.change)
        body = b""
        if options.return_order_topic_config_to_broker:
            body = yield from self._keyvalues.body(ORDER_TOPIC_CONFIG)
        return response_to(
            request,
            ext=RegisterBrokerResponseHeader(
                ha_server_addr=result.ha_address, master_addr=result.master_address
            ).to_ext(),
            body=body,
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
        theirs = None
        if request.body:
            theirs = _read(DataVersion.from_json, request.body, MAX_VERSION_BYTES)
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

    def scan(self) -> Deferred[None]:
        """Remove brokers that were silent for too long, and close their connections."""
        scanned = self._slices.run("scan for silent brokers", self._scanning())
        return scanned.addErrback(only_stopped)

    def _scanning(self) -> Iterator[None]:
        """One broker in each step."""
        expired = self.table.expired(self._now_ms())
        leaving = self.table.unregistrations([key for key, _ in expired])
        gone = {(one.cluster, one.address): one for one in leaving}
        for key, channel in expired:
            if key in gone:
                if not self.table.is_silent(key, self._now_ms()):
                    continue
                if not self._remove(gone[key]):
                    return
            self.expired += 1
            self._log.warn(
                "The broker at {address} of cluster {cluster} was silent for too long.",
                cluster=key[0],
                address=key[1],
            )
            if IConnection.providedBy(channel):
                IConnection(channel).close()
            yield

    def _closed(self, connection: IConnection) -> None:
        """A connection over which a broker registered is gone."""
        self._watched.discard(connection)
        key = self.table.of_channel(connection)
        if key is None:
            return
        for leaving in self.table.unregistrations([key]):
            if leaving in self._removals:
                continue
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
        few = len(self.table.topics) <= FEW and len(leaving) <= FEW_BROKERS
        done = self._do(self._removing(leaving), few)
        if done is not None:
            # The table is not kept when the name server stops.
            done.addErrback(only_stopped)

    def _removing(self, leaving: Sequence[Unregistration]) -> Steps[None]:
        """Brokers go, and others are told."""
        for change in (yield from self.table.unregistering(leaving)):
            if self._settings.options.notify_min_broker_id_changed:
                self._notify(change)
                yield

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

        def permitted() -> Steps[Command]:
            count = yield from steps
            self._log.info(
                "{peer} {action} for {count} topics.",
                peer=connection.peer,
                action=action,
                count=count,
            )
            return response_to(request, ext=header(count).to_ext())

        return self._do(permitted(), len(self.table.topics) <= FEW)

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
            route = _read(TopicRouteData.from_json, request.body, MAX_ROUTE_BYTES)
            self.table.add_topic(header.topic, route.queue_datas)
            self._log.info(
                "{peer} added routes of topic {topic!r} for {count} brokers.",
                peer=connection.peer,
                topic=header.topic,
                count=len(route.queue_datas),
            )
        return response_to(request)


def _read(read: Callable[[object], T], body: bytes, most: int) -> T:
    """A body as a value.

    @param most: its length at most.
    @raise SystemFailure: it cannot be read.
    """
    if len(body) > most:
        raise SystemFailure(f"The body has {len(body)} bytes, the most is {most}.")
    try:
        return object_of(body, read)
    except RemoteProtocolError as error:
        raise SystemFailure(f"The body cannot be read: {error}.") from error
