# -*- test-case-name: tests.broker.test_broker -*-
"""All parts of a broker, made from its settings and wired to one another.

Each C{_make} method makes the parts of some rooms, from the ground upwards. Only the
parts that administrators ask are not here: they are made of these, in
L{rocketbroker.broker.admin.administration}.
"""

from __future__ import annotations

from rocketbroker.broker.acting.group_roles import GroupRoles
from rocketbroker.broker.acting.masters_work import MastersWork
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.diagnostics.room import DiagnosticsRoom
from rocketbroker.broker.figures import FiguresRoom
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pop.room import PopRoom
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.replicas.metadata_sync import MetadataSync
from rocketbroker.broker.replicas.room import ReplicasRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.running_settings import Configured, RunningSettings
from rocketbroker.broker.schedule.room import ScheduleRoom
from rocketbroker.broker.send.room import SendRoom
from rocketbroker.broker.statictopics.room import StaticTopicsRoom
from rocketbroker.broker.storage.room import StorageRoom
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.broker.transaction.room import TransactionRoom
from rocketbroker.config.broker_settings import BrokerSettings


class Parts:
    """The parts of a broker, as attributes: tests and metrics look at them.

    @ivar membership: says who is a slave of this broker, and who its master.
    @ivar replica_server: sends the log to slaves.
    @ivar master_link: gets it from the master.
    """

    def __init__(self, context: BrokerContext) -> None:
        env = self.context = context
        settings = context.settings
        self.running = RunningSettings(settings, env.wall_ms)
        self.port, self.told_port = context.port, context.told_port
        self.address = context.address
        self.store = env.store
        self.slices = env.slices
        self.services = env.services
        self.waiting_requests = env.waiting.all
        self.metadata = MetadataRoom(context)
        self.names = RegistrationRoom(context, self.metadata)
        self.clients = ClientsRoom(context, self.metadata, self.names)
        self.replicas = ReplicasRoom(context, self.names)
        self.appends = AppendsRoom(context, self.names, self.replicas)
        self.storage = StorageRoom(context, self.appends, self.replicas)
        self.timer = TimerRoom(context, self.metadata, self.names, self.appends)
        self.delays = ScheduleRoom(context, self.appends, self.timer)
        self.transactions = TransactionRoom(
            context, self.metadata, self.clients, self.appends, self.timer
        )
        self.send = SendRoom(
            context,
            self.metadata,
            self.clients,
            self.appends,
            self.delays,
            self.transactions,
        )
        self.pull = PullRoom(
            context, self.metadata, self.clients, self.storage, self.running
        )
        self.diagnostics = DiagnosticsRoom(
            context, self.metadata, self.clients, self.names, self.pull
        )
        self.pop = PopRoom(
            context,
            self.metadata,
            self.replicas,
            self.appends,
            self.storage,
            self.timer,
            self.pull,
        )
        self._make_group(context)
        self.rooms: tuple[Room, ...] = (
            self.metadata,
            self.names,
            self.clients,
            self.replicas,
            self.appends,
            self.storage,
            self.timer,
            self.delays,
            self.transactions,
            self.send,
            self.pull,
            self.diagnostics,
            self.pop,
            self.static_topics,
            self.figures,
        )
        self._name_parts()
        self.running.subscribe(self._configure)

    def _make_group(self, context: BrokerContext) -> None:
        """Make what concerns other brokers, and the figures of this one."""
        self.static_topics = StaticTopicsRoom(
            context, self.metadata, self.names, self.pull
        )
        self.figures = FiguresRoom(
            context, self.appends, self.delays, self.send, self.pull
        )
        self.metadata_sync = MetadataSync(
            context,
            self.metadata,
            self.names.registration.masters,
            self.delays.service.become,
        )
        work = MastersWork(
            context,
            self.metadata,
            self.replicas.bridge,
            self.appends.own,
            self.timer,
            self.delays,
            self.transactions,
        )
        self.group_roles = GroupRoles(
            context, self.names, self.replicas, self.pull, work
        )

    def _name_parts(self) -> None:
        """Give names to parts of rooms."""
        self.topics, self.groups = self.metadata.topics, self.metadata.groups
        self.offsets, self.mappings = self.metadata.offsets, self.metadata.mappings
        self.request_modes = self.metadata.request_modes
        self.name_server_api = self.names.calls
        self.name_servers = self.names.name_servers
        self.registration = self.names.registration
        self.membership, self.routes = self.names.membership, self.names.routes
        self.filters, self.locks = self.clients.filters, self.clients.locks
        self.consumers = self.clients.consumers
        self.producers = self.clients.producers
        self.heartbeats = self.clients.heartbeats
        self.replica_server = self.replicas.server
        self.master_link = self.replicas.link
        self.group_commit = self.appends.group_commit
        self.batcher, self._lmqs = self.appends.batcher, self.appends.lmqs
        self.scheduler, self.cleanup = self.storage.scheduler, self.storage.cleanup
        self.log_subscribers = self.storage.log_subscribers
        self.timers, self.schedule = self.timer.service, self.delays.service
        self.delay_offsets = self.delays.offsets
        self.dead_letters, self.sending = self.send.dead_letters, self.send.sending
        self.send_back = self.send.send_back
        self.pull_checks, self.pulling = self.pull.checks, self.pull.pulling
        self.long_polling = self.pull.long_polling
        self.broadcasts, self.cold_flow = self.pull.broadcasts, self.pull.cold_flow
        self.slow_groups = self.pull.slow_groups
        self.diagnosis = self.diagnostics.diagnosis
        self.statistics, self.keyed_stats = self.figures.statistics, self.figures.keyed
        self.creation_times = self.figures.creation_times
        self.watermarks = self.figures.watermarks
        self.ha_status, self.slave_progress = (
            self.replicas.status,
            self.replicas.progress,
        )

    @property
    def settings(self) -> BrokerSettings:
        """The settings in force."""
        return self.running.current

    def _configure(self, settings: BrokerSettings) -> None:
        """Tell the parts to obey other settings."""
        self.store.configure(settings.store)
        obeying: tuple[Configured, ...] = (
            self.context.services,
            self.context.waiting,
            *self.rooms,
            self.group_roles,
        )
        for part in obeying:
            part.configure(settings)
