# -*- test-case-name: tests.broker.test_broker -*-
"""A broker: which port answers what, and the order in which it starts and stops.

Start, before the reactor runs: tables and store are read (L{Broker.open}), then the
ports listen (L{Broker.listen}), so that nobody is answered from half a store. With the
reactor: periodic work begins, and the name servers hear of it (L{Broker.start}).

Stop: the name servers hear of it first, so that clients go elsewhere; then the ports
close, accepted messages are appended, flushed and answered, the tables are written, and
the store closes last. docs/facts/broker.md 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol, final

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from rocketbroker.broker.acting.group_roles import GroupRoles
from rocketbroker.broker.admin import codes
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.diagnostics.room import DiagnosticsRoom
from rocketbroker.broker.figures import FiguresRoom
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pop import need
from rocketbroker.broker.ports import Ports
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.replicas.metadata_sync import MetadataSync
from rocketbroker.broker.replicas.room import ReplicasRoom
from rocketbroker.broker.roles import Role
from rocketbroker.broker.room import LateRoom, Room
from rocketbroker.broker.running_settings import Configurable, RunningSettings
from rocketbroker.broker.schedule.room import ScheduleRoom
from rocketbroker.broker.send.room import SendRoom
from rocketbroker.broker.services import Service, always
from rocketbroker.broker.statictopics.room import StaticTopicsRoom
from rocketbroker.broker.storage.room import StorageRoom
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.broker.transaction.room import TransactionRoom
from rocketbroker.broker.wait_limits import wait_limits
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.records.names import revive_topic
from rocketbroker.store.interfaces import Arrival

if TYPE_CHECKING:
    from rocketbroker.broker.access.room import AccessRoom
    from rocketbroker.broker.acting.masters_work import MastersWork
    from rocketbroker.broker.admin.broker_room import BrokerAdminRoom
    from rocketbroker.broker.admin.consumers_room import ConsumersAdminRoom
    from rocketbroker.broker.admin.runtime_info import RuntimeInfo
    from rocketbroker.broker.admin.tables_room import TablesAdminRoom
    from rocketbroker.broker.pop.room import PopRoom

SAVE_TABLES: Final = Service(
    "save of tables",
    "topics, groups, offsets and filters go to the disk",
    lambda s: s.broker.flush_consumer_offset_interval / 1000,
    always(10),
)

#: The VIP port is so far below the main port.
VIP_DISTANCE: Final = 2

#: Why no client finds a broker that works alone.
NO_NAME_SERVER: Final = "No name server is configured (namesrvAddr)."


class Server(Protocol):
    """The part of L{rocketbroker.remoting.server.RemotingServer} that is used."""

    def listen(self, port: int | None = None) -> int:
        """Accept connections from now on; the port."""

    def stop(self) -> Deferred[None]:
        """Accept no connection any more, let answers go out, close all."""


@final
class Broker:
    """A broker: its rooms in order, and their start and stop.

    The rooms stand in the order in which they are made, each from those before it. They
    start in this order, too, and the last one tells the name servers.

    @ivar rooms: those below, and those of administrators, which are made late.
    @ivar metadata_sync: of a slave, copies its master's tables.
    @ivar group_roles: how this broker gets into the group of its name, and acts in it.
    @ivar access: controls access; C{None}: nobody does.
    @ivar ports: the responders of all ports.
    @ivar main: those of the main port.
    @ivar vip: those of the VIP port.
    """

    _log = Logger()

    def __init__(self, context: BrokerContext) -> None:
        self.context = context
        self.running = RunningSettings(context.settings, context.wall_ms)
        self.port, self.told_port = context.port, context.told_port
        self.address = context.address
        self.store = context.store
        self.slices = context.slices
        self.services = context.services
        self.metadata = MetadataRoom(context)
        self.registration = RegistrationRoom(context, self.metadata)
        self.clients = ClientsRoom(context, self.metadata, self.registration)
        self.replicas = ReplicasRoom(context, self.registration)
        self.appends = AppendsRoom(context, self.registration, self.replicas)
        self.storage = StorageRoom(context, self.appends, self.replicas)
        self.timer = TimerRoom(context, self.metadata, self.registration, self.appends)
        self.schedule = ScheduleRoom(context, self.appends, self.timer)
        self.transactions = TransactionRoom(
            context, self.metadata, self.clients, self.appends, self.timer
        )
        self.send = SendRoom(
            context,
            self.metadata,
            self.clients,
            self.appends,
            self.schedule,
            self.transactions,
        )
        self.pull = PullRoom(
            context, self.metadata, self.clients, self.storage, self.running
        )
        self.diagnostics = DiagnosticsRoom(
            context, self.metadata, self.clients, self.registration, self.pull
        )
        self._pop = LateRoom(
            self._make_pop, self.running, need.CODES, need.PULL_CODES, self._pops
        )
        self._revive_topic = revive_topic(context.settings.broker.broker_cluster_name)
        self.storage.scheduler.watch(self._arrived)
        self.access = self._make_access()
        self._make_group(context)
        self._admin = LateRoom(self._broker_admin, self.running, codes.BROKER)
        self.rooms: tuple[Room, ...] = (
            self.metadata,
            self.registration,
            self.clients,
            self.replicas,
            self.appends,
            self.storage,
            self.timer,
            self.schedule,
            self.transactions,
            self.send,
            self.pull,
            self.diagnostics,
            self._pop,
            self.static_topics,
            self.figures,
            self.metadata_sync,
            LateRoom(self._tables_admin, self.running, codes.TABLES),
            LateRoom(self._consumers_admin, self.running, codes.CONSUMERS),
            self._admin,
            self.group_roles,
            *(() if self.access is None else (self.access,)),
        )
        self.running.watch(self._configure)
        self.ports = Ports(context)
        self.main, self.vip = self.ports.main, self.ports.vip
        self._register()
        self._limit_waits(context.settings)
        self.running.watch(self._limit_waits)
        self._servers: list[Server] = []

    def _register(self) -> None:
        """Give each port its responders."""
        ports = self.ports
        for table in ports.tables:
            self.services.register(table)
            for room in self.rooms:
                room.register(table)
        for table in ports.with_pulls:
            for room in self.rooms:
                room.register_pulls(table)
        for table in ports.tables:
            self.static_topics.stand_before(table)

    def _make_group(self, context: BrokerContext) -> None:
        """Make what concerns other brokers, and the figures of this one."""
        self.static_topics = StaticTopicsRoom(
            context, self.metadata, self.registration, self.pull
        )
        self.figures = FiguresRoom(
            context, self.appends, self.schedule, self.send, self.pull
        )
        self.metadata_sync = MetadataSync(
            context,
            self.metadata,
            self.registration.registration.masters,
            self.schedule.service.become,
        )
        work = None
        if context.settings.broker.enable_slave_acting_master:
            work = self._masters_work()
        self.group_roles = GroupRoles(
            context, self.registration, self.replicas, self.pull, work
        )

    def _make_access(self) -> AccessRoom | None:
        """Make what controls access; most brokers have none."""
        if not self.context.settings.controls_access:
            return None
        from rocketbroker.broker.access.room import AccessRoom

        return AccessRoom(self.context)

    def _masters_work(self) -> MastersWork:
        from rocketbroker.broker.acting.masters_work import MastersWork

        return MastersWork(
            self.context,
            self.metadata,
            self.replicas.bridge,
            self.appends.own,
            self.timer,
            self.schedule,
            self.transactions,
        )

    @property
    def settings(self) -> BrokerSettings:
        """The settings in force."""
        return self.running.current

    def _configure(self, settings: BrokerSettings) -> None:
        """Tell the rooms to obey other settings."""
        self.store.configure(settings.store)
        obeying: tuple[Configurable, ...] = (
            self.context.services,
            self.context.waiting,
            *self.rooms,
        )
        for part in obeying:
            part.configure(settings)

    @property
    def pop(self) -> PopRoom:
        """POP; it is made if it is not there."""
        return self._pop.made()

    def _make_pop(self) -> PopRoom:
        from rocketbroker.broker.pop.room import PopRoom

        return PopRoom(
            self.context,
            self.metadata,
            self.replicas,
            self.appends,
            self.storage,
            self.timer,
            self.pull,
        )

    def _pops(self) -> bool:
        """Whether POP is needed from the start."""
        return need.is_needed(self.context, self.metadata.topics)

    def _arrived(self, arrival: Arrival) -> None:
        """Another broker may send what is to be revived here."""
        if arrival.queue.topic == self._revive_topic:
            self._pop.made()

    # The rooms that show and change the others on request.

    def _tables_admin(self) -> TablesAdminRoom:
        from rocketbroker.broker.admin.tables_room import TablesAdminRoom

        return TablesAdminRoom(
            self.context,
            self.metadata,
            self.registration,
            self.clients,
            self.appends,
            self.timer,
            self.figures,
        )

    def _consumers_admin(self) -> ConsumersAdminRoom:
        from rocketbroker.broker.admin.consumers_room import ConsumersAdminRoom

        return ConsumersAdminRoom(
            self.context,
            self.metadata,
            self.clients,
            self.storage,
            self.pull,
            self.figures,
        )

    def _broker_admin(self) -> BrokerAdminRoom:
        from rocketbroker.broker.admin.broker_room import BrokerAdminRoom

        others = (
            self.schedule.service.figures,
            self.timer.service.figures,
            self.storage.log_subscribers.figures,
            self._problem_figure,
        )
        return BrokerAdminRoom(
            self.context,
            self.running,
            self.registration,
            self.appends,
            self.pull,
            self.figures,
            others,
        )

    @property
    def runtime_info(self) -> RuntimeInfo:
        """The state of this broker in figures."""
        return self._admin.made().runtime_info

    def _limit_waits(self, settings: BrokerSettings) -> None:
        """Set how long requests may wait to be begun."""
        for table in self.ports.tables:
            table.limit_waits(wait_limits(settings.broker, table.responders))

    def open(self) -> None:
        """I{Blocking.} Read the tables, open and recover the store.

        The tables come first: the store has to know which topics have batch queues.

        @raise StoreError: it cannot be opened; one sentence.
        """
        if self.access is not None:
            self.access.load()
        for room in (self.metadata, self.clients, self.registration):
            room.load()
        self.store.know_topics(self.metadata.topics.is_batch)
        self.store.open()
        if self.settings.broker.enable_calc_filter_bit_map:
            self.store.calculate_bit_maps(self.clients.filters.bit_map)
        self.timer.load()
        self.schedule.load()
        self.transactions.load()
        self._pop.load()
        self.storage.load()

    def listen(self, main: Server, vip: Server, admin: Server | None = None) -> None:
        """Accept connections on all ports, and slaves on another.

        A slave listens for slaves, too, as RocketMQ's does.

        @param admin: the admin port; C{None}: there is none.
        @raise ConfigurationError: a port cannot be had; one sentence.
        """
        main.listen(self.port)
        self._servers.append(main)
        vip.listen(vip_port(self.port))
        self._servers.append(vip)
        if admin is not None:
            admin.listen()
            self._servers.append(admin)
        port = self.replicas.server.listen(self.settings.store.ha_listen_port)
        self.registration.calls.ha_address = f"{self.settings.broker.broker_ip2}:{port}"

    def start(self) -> Deferred[None]:
        """Begin regular work and tell the name servers.

        @return: fires when they know this broker, or could not be reached.
        """
        self.services.begin(SAVE_TABLES, self._save)
        for room in self.rooms:
            room.start()
        return self.group_roles.known.addCallback(lambda _: self._ready())

    def _ready(self) -> None:
        """Log the sentence of RocketMQ that scripts wait for."""
        options, servers = self.settings.broker, self.registration.name_servers.current
        self._log.info(
            "The broker[{name}, {ip}:{port}] boot success. serializeType=JSON{servers}",
            name=options.broker_name,
            ip=options.broker_ip1,
            port=self.told_port,
            servers=f" and name server is {';'.join(servers)}" if servers else "",
        )

    def problems(self) -> list[str]:
        """Sentences about what an operator has to mend, for C{/healthz}.

        The broker serves its clients all the same; while it cannot, C{store.refusal}
        says so.
        """
        return self._problems(self.rooms)

    def _problem_figure(self) -> dict[str, str]:
        """Those of tables, for request 28: requests 907 and 26 tell of replication."""
        rooms = [room for room in self.rooms if room is not self.replicas]
        found = self._problems(rooms)
        return {"problems": " ".join(found)} if found else {}

    def _problems(self, rooms: Iterable[Room]) -> list[str]:
        found = self.context.tables.problems()
        for room in rooms:
            found += room.problems()
        return found

    def unhealthy(self) -> str | None:
        """Why this broker does not do what it is there for, for C{/healthz}."""
        return self.store.refusal() or self.replicas.status.without_master()

    def standing(self) -> list[str]:
        """Sentences about what is as it should be, for C{/healthz}: of a slave, how far
        behind its master it is."""
        if self.services.role is Role.MASTER:
            return []
        return [self.replicas.progress.sentence()]

    def not_ready(self) -> str | None:
        """Why clients cannot use this broker, for C{/healthz/ready}."""
        if not self.registration.registration.is_known:
            way = self.group_roles.pre_online
            if way is not None and way.problem:
                return f"This broker is not registered yet: {way.problem}"
            return "No name server knows this broker."
        if self.services.role is Role.SLAVE:
            behind = self.replicas.progress.not_ready()
            if behind is not None:
                return behind
        alone = None if self.registration.name_servers.is_needed() else NO_NAME_SERVER
        return self.store.refusal() or alone

    def stop(self) -> Deferred[None]:
        """Stop: see the head of this module; fires when all is on the disk."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        left = self.group_roles.stop()
        self.services.stop()
        self.metadata_sync.stop()
        self.registration.membership.stop()
        for step in (
            lambda: left,
            self.registration.registration.stop,
            self._stop_answering,
            self.schedule.stop,
            self.timer.stop,
            self.transactions.stop,
            self._pop.stop,
            self.replicas.link.stop,
            self.storage.cleanup.stop,
            self.storage.scheduler.stop,
            self.appends.group_commit.stop,
            self.replicas.server.stop,
            self._flush,
            self.storage.log_subscribers.stop,
            self._save_now,
            self.timer.service.close,
            self.context.in_thread.settled,
            lambda: self.context.in_thread(self.store.close),
        ):
            try:
                await step()
            except Exception:
                # The steps after it, closing the store above all, are still done.
                self._log.failure("The broker did not stop as it should.")

    async def _stop_answering(self) -> None:
        """Answer the requests that wait for the disk, then close the ports."""
        self.pull.long_polling.stop()
        self._pop.stop_answering()
        self.appends.batcher.flush()
        await self.appends.group_commit.settled()
        self.context.tables.hurry()
        await self.context.tables.idle()
        await gatherResults([server.stop() for server in self._servers])
        self.slices.stop()

    def _flush(self) -> Deferred[int]:
        """Flush the store, so that no table is ahead of it on the disk."""
        return self.context.in_thread(self.store.flush)

    def _save_now(self) -> Deferred[list[None]]:
        """L{_save} without pauses between writes, and without slices."""
        self.metadata.offsets.save_now()
        saved = self._save()
        self.context.tables.hurry()
        return saved

    def _save(self) -> Deferred[list[None]]:
        """Write the tables that changed since their last write; fires when done."""
        # What others put into the table of offsets is written with it.
        saved = [room.save() for room in reversed(self.rooms)]
        return gatherResults(saved)


def vip_port(main: int) -> int:
    """The VIP port of a main port; any free one where there is none below."""
    return main - VIP_DISTANCE if main > VIP_DISTANCE else 0
