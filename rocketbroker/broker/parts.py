# -*- test-case-name: tests.broker.test_broker -*-
"""All parts of a broker, made from its settings and wired to one another.

Each C{_make} method makes the parts of some rooms, from the ground upwards. Only the
parts that administrators ask are not here: they are made of these, in
L{rocketbroker.broker.admin.administration}.
"""

from __future__ import annotations

from rocketbroker.broker.appends.ack_rule import AckRule
from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.clients.consumer_info import ConsumerInfo
from rocketbroker.broker.clients.consumer_notify import ConsumerNotify
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.heartbeats import Heartbeats
from rocketbroker.broker.clients.members import MemberLog
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.clients.queue_assignment import QueueAssignment
from rocketbroker.broker.clients.queue_locks import QueueLocks
from rocketbroker.broker.clients.sql_compiler import SqlCompiler
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.diagnostics.group_diagnosis import GroupDiagnosis
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.message_request_mode import MessageRequestModes
from rocketbroker.broker.metadata.offset_files import LIGHT_FILE, PLAIN_FILE
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.broadcast_offsets import BroadcastOffsets
from rocketbroker.broker.pull.cold_flow import ColdFlow
from rocketbroker.broker.pull.long_polling import LongPolling
from rocketbroker.broker.pull.pull import Pulling
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.broker.pull.slow_groups import SlowGroups
from rocketbroker.broker.registration.membership import FILE, Membership
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.broker.registration.registration import Registration
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.broker.room import Responder
from rocketbroker.broker.running_settings import Configured, RunningSettings
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.send.dead_letters import DeadLetters
from rocketbroker.broker.send.reply import Replies
from rocketbroker.broker.send.send import Sending
from rocketbroker.broker.send.send_back import SendBack
from rocketbroker.broker.stats.broker_stats import BrokerStats
from rocketbroker.broker.stats.creation_times import CreationTimes
from rocketbroker.broker.stats.keyed_stats import KeyedStats
from rocketbroker.broker.stats.watermarks import Waiting, Watermarks, of_families
from rocketbroker.broker.storage.cleanup import Cleanup
from rocketbroker.broker.storage.log_subscribers import SUBSCRIBERS, LogSubscribers
from rocketbroker.broker.storage.store_scheduler import StoreScheduler
from rocketbroker.broker.timer.later_parts import LaterParts
from rocketbroker.broker.transaction.service import Transactions
from rocketbroker.broker.waiting_requests import WaitingRequests
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.wire.codes import RequestCode


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
        self._make_tables()
        self._make_registration()
        self.replica_server = env.replica_server(
            self.store, env.in_thread, self.membership
        )
        self.master_link = env.master_link(self.store, env.in_thread)
        self._make_registries()
        self._make_data_path()
        self._make_replies()
        self._make_statistics()
        self._make_log_subscribers()
        self.running.subscribe(self._configure)

    @property
    def settings(self) -> BrokerSettings:
        """The settings in force."""
        return self.running.current

    def _configure(self, settings: BrokerSettings) -> None:
        """Tell the parts to obey other settings."""
        self.store.configure(settings.store)
        obeying: tuple[Configured, ...] = (
            self.topics,
            self.groups,
            self.offsets,
            self.delay_offsets,
            self.filters,
            self.request_modes,
            self.consumer_notify,
            self.heartbeats,
            self.locks,
            self.assignment,
            self.name_server_api,
            self.registration,
            self.membership,
            self.group_commit,
            self.scheduler,
            self.services,
            self.long_polling,
            self.batcher,
            self.sending,
            self.send_back,
            self.replies,
            self.transactions,
            self.later,
            self.pull_checks,
            self.broadcasts,
            self.cold_flow,
            self.pulling,
            self.slow_groups,
            self.context.waiting,
        )
        for part in obeying:
            part.configure(settings)

    def _waiting(self, code: RequestCode) -> WaitingRequests:
        return self.context.waiting.family(code)

    def _make_tables(self) -> None:
        """The tables that are kept beside the messages."""
        env, options = self.context, self.settings.broker
        file, wall_ms = env.tables.file, env.wall_ms
        light = self.settings.store.enable_lmq
        timer = self.settings.store.timer_wheel_enable
        self.topics = TopicTable(options, file("topics.json"), wall_ms, timer, light)
        self.groups = GroupTable(
            options, file("subscriptionGroup.json"), wall_ms, light
        )
        plain, lmq = file(PLAIN_FILE), file(LIGHT_FILE)
        offsets = (lmq, plain) if light else (plain, lmq)
        self.offsets = OffsetTable(options, *offsets, env.slices, wall_ms)
        self.delay_offsets = DelayOffsets(
            file("delayOffset.json"),
            options.delay_offset_update_version_step,
            wall_ms,
        )
        compiler = SqlCompiler(env.slices)
        filters = file("consumerFilter.json")
        self.filters = Filters(options, filters, wall_ms, compiler)
        modes = file("messageRequestMode.json")
        self.request_modes = MessageRequestModes(options, modes)
        mappings = file("topicQueueMapping.json")
        self.mappings = QueueMappings(options.broker_name, mappings, wall_ms)
        tables = self.topics, self.mappings, self.groups, self.offsets
        self._tables = (*tables, self.filters, self.request_modes)

    def _make_registries(self) -> None:
        """The clients that are there."""
        seconds, options = self.context.clock.seconds, self.settings.broker
        self.consumer_notify = ConsumerNotify(self.context.clock, options)
        log = MemberLog(self.slices)
        self.consumers = ConsumerRegistry(
            seconds, log, self.consumer_notify.consumer_ids_changed
        )
        self.routes = RouteCache(
            seconds,
            options.broker_name,
            lambda: self.name_servers.current,
            self.name_server_api.route,
        )
        self.diagnosis = GroupDiagnosis(
            self.consumers,
            self.topics,
            self.groups,
            self.routes,
            seconds,
            self.context.wall_ms,
        )
        self.producers = ProducerRegistry(seconds, log)
        self.heartbeats = Heartbeats(
            options,
            self.topics,
            self.groups,
            self.consumers,
            self.producers,
            self.filters,
            self.registration.announced,
            self.slices,
        )
        self.assignment = QueueAssignment(
            options,
            self.topics,
            self.groups,
            self.consumers,
            self.request_modes,
            self.routes.queues if self.name_servers.is_needed() else None,
        )
        self.locks = QueueLocks(
            seconds, self.slices, self.context.long_requests, self.settings
        )

    def _make_data_path(self) -> None:
        """Messages in and out."""
        env, settings = self.context, self.settings
        clock, store, in_thread = env.clock, env.store, env.in_thread
        acked = self.replica_server.acked
        self.group_commit = GroupCommit(clock, store, settings.store, in_thread, acked)
        self.replica_server.watch(lambda: env.turns.within(self.group_commit.copied))
        self.long_polling = LongPolling(clock, store, settings.broker, env.turns)
        wake = self.long_polling.wake
        self.scheduler = StoreScheduler(
            clock,
            store,
            settings.store,
            self.group_commit,
            wake,
            env.turns,
            in_thread,
            self.services,
            self.replica_server.appended,
        )
        self.master_link.watch(self.scheduler.received)
        self.cleanup = Cleanup(clock, store, in_thread, self.services)
        self.batcher = AppendBatcher(
            store,
            self.group_commit,
            AckRule(
                settings,
                self.replica_server.in_sync,
                lambda: self.registration.members.alive,
            ),
            settings,
            self.scheduler.dispatch_later,
            clock.seconds,
        )
        env.turns.at_turn_end(self.batcher.flush)
        env.turns.at_turn_end(self.replica_server.push)
        self._make_services()

    def _make_services(self) -> None:
        """The parts that take messages."""
        env, settings = self.context, self.settings
        clock, store, in_thread = env.clock, env.store, env.in_thread
        lmqs = self._lmqs = Lmq(store, settings.store.enable_lmq)
        self._make_later()
        delay_messages = self.later.delay_messages
        host = env.host
        self.transactions = Transactions(
            clock,
            store,
            settings.broker,
            settings.store,
            self.context.tables.file("transactionMetrics"),
            self.offsets,
            self.topics,
            self.producers,
            delay_messages,
            lmqs,
            self.batcher,
            self.group_commit,
            self.scheduler,
            host,
            env.wall_ms,
            in_thread,
            self._waiting(RequestCode.END_TRANSACTION).before_threads(in_thread),
            self.services,
        )
        self.dead_letters = DeadLetters(self.topics, self.groups, self.locks.is_locked)
        waiting = self._waiting(RequestCode.CONSUMER_SEND_MSG_BACK)
        self.sending = Sending(
            store,
            self.topics,
            self.groups,
            self.batcher,
            self.dead_letters,
            delay_messages,
            lmqs,
            settings.broker,
            settings.store.max_message_size,
            host,
            env.unique_keys,
            self.transactions.counts.prepared,
            waiting.before_slices(env.slices),
            self.context.long_requests,
            env.turns,
            env.wall_ms,
        )
        self.send_back = SendBack(
            store,
            self.topics,
            self.groups,
            self.batcher,
            delay_messages,
            lmqs,
            self.dead_letters,
            settings.broker,
            waiting,
            in_thread,
        )
        self._make_pulling()

    def _make_later(self) -> None:
        """The parts for messages that have to wait."""
        env = self.context
        self.later = LaterParts(
            env.clock,
            self.store,
            self.settings,
            self.delay_offsets,
            self.context.tables.file("timermetrics"),
            self.topics,
            self.batcher,
            self.group_commit,
            self.scheduler.appended,
            self._lmqs,
            lambda *key: self.sending.counter(*key),
            env.wall_ms,
            env.in_thread,
            self.services,
        )
        self.schedule, self.timers = self.later.schedule, self.later.timers

    def _make_pulling(self) -> None:
        """The parts that hand messages out."""
        env, options, store = self.context, self.settings.broker, self.store
        self.pull_checks = PullChecks(
            store,
            self.topics,
            self.groups,
            self.consumers,
            self.filters,
            self.diagnosis.refusals,
            options,
        )
        self.broadcasts = BroadcastOffsets(
            store,
            self.topics,
            self.consumers,
            self.offsets,
            options,
            env.clock.seconds,
        )
        self.cold_flow = ColdFlow(
            self.settings,
            self.consumers,
            env.clock.seconds,
            env.wall_ms,
            self.running.change,
        )
        self.pulling = Pulling(
            store,
            self.pull_checks,
            self.offsets,
            self.broadcasts,
            self.long_polling,
            self.cold_flow,
            options,
            self.settings.store,
            self.scheduler.dispatch,
            self._waiting(RequestCode.PULL_MESSAGE).before_threads(env.in_thread),
            env.clock.seconds,
        )
        self.slow_groups = SlowGroups(
            store,
            self.offsets,
            self.groups,
            self.settings,
            env.slices,
            env.in_thread,
        )

    def _make_replies(self) -> None:
        """Replies, from the client that answers to the one that asked."""
        env, settings = self.context, self.settings
        self.replies = Replies(
            self.store,
            self.topics,
            self.groups,
            self.producers,
            self.batcher,
            self._lmqs,
            self.sending.counter,
            settings.broker,
            settings.store.max_message_size,
            env.host,
            env.wall_ms,
        )

    def _make_statistics(self) -> None:
        """Figures over time."""
        env, store = self.context, self.store
        self.statistics = BrokerStats(
            env.clock.seconds,
            env.wall_ms,
            store,
            self.batcher.put_times,
            self.sending,
            self.pulling,
            self.pull_checks,
        )
        self.keyed_stats = KeyedStats(
            env.clock.seconds,
            self.settings.broker.broker_cluster_name,
            self.sending,
            self.pull_checks,
            self.send_back.counts.messages,
            self._delivered,
        )
        self.creation_times = CreationTimes(env.clock.seconds)
        commit, pulling = self.group_commit, self.pulling
        self.watermarks = Watermarks(
            store,
            (
                Waiting("Send", lambda: commit.waiting, commit.waiting_ms),
                Waiting("Pull", lambda: pulling.cold, pulling.cold_since_ms),
                *of_families(self.waiting_requests.values()),
            ),
        )

    def _delivered(self) -> tuple[int, int]:
        """The delayed messages that count as pulled, and their bytes."""
        if not self.settings.store.enable_schedule_message_stats:
            return 0, 0
        return self.schedule.delivered, self.schedule.delivered_bytes

    def _make_log_subscribers(self) -> None:
        """The plug-ins that see each stored message."""
        env = self.context
        self.log_subscribers = LogSubscribers(
            env.clock, self.context.tables.file(SUBSCRIBERS)
        )
        self.log_subscribers.add_plugins(env.followers, self.store, self.settings)

    def _make_registration(self) -> None:
        """The registration with the name servers."""
        settings = self.settings
        options = settings.broker
        calls = self.name_server_api = NameServerApi(
            self.context.client,
            options,
            self.address,
            f"{options.broker_ip2}:{settings.store.ha_listen_port}",
        )
        env = self.context
        self.name_servers = NameServers(
            settings, env.lookup, env.in_thread, self.services
        )
        self.registration = Registration(
            self.context.clock,
            calls,
            self.name_servers,
            options,
            self.topics,
            self.mappings,
            self.services,
        )
        self.membership = Membership(
            env.clock,
            settings,
            self.registration.members,
            self.registration.masters,
            self.name_servers,
            self.context.tables.file(FILE),
        )

    def responders(self) -> list[Responder]:
        """The parts that answer on both ports: all of these but pulls."""
        return [
            self.sending,
            self.replies,
            self.send_back,
            self.transactions.ends,
            self.transactions.resuming,
            self.later.recall,
            self.heartbeats,
            self.locks,
            self.diagnosis,
            self.cleanup,
            self.delay_offsets,
            self.cold_flow,
            self.assignment,
            self.services,
            ConsumerInfo(
                self.topics, self.groups, self.offsets, self.consumers, self.store
            ),
        ]
