# -*- test-case-name: tests.broker.test_broker -*-
"""All parts of a broker, put together, and the order in which they start and stop.

Start, before the reactor runs: tables and store are read (L{Broker.open}), then the
ports listen (L{Broker.listen}), so that nobody is answered from half a store. With the
reactor: regular work begins, and the name servers are told (L{Broker.start}).

Stop: the name servers are told first, so that clients go elsewhere; then the ports
close, what was accepted is appended, flushed and answered, the tables are written, and
the store closes last. The broker sheet, sections 3 and 4.
"""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from rocketbroker.broker.admin.administration import administration
from rocketbroker.broker.clients.consumer_info import ConsumerInfo
from rocketbroker.broker.clients.consumer_notify import LATE_SECONDS, ConsumerNotify
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.heartbeats import Heartbeats
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.clients.queue_locks import QueueLocks
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.diagnostics.group_diagnosis import LOOK_SECONDS, GroupDiagnosis
from rocketbroker.broker.environment import BrokerEnvironment, Part, Server
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.message_request_mode import MessageRequestModes
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.broadcast_offsets import BroadcastOffsets
from rocketbroker.broker.pull.long_polling import LongPolling
from rocketbroker.broker.pull.pull import Pulling
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.registration import Registration
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.schedule.schedule_service import ScheduleService
from rocketbroker.broker.send.append_batcher import AppendBatcher
from rocketbroker.broker.send.dead_letters import DeadLetters
from rocketbroker.broker.send.reply import Replies
from rocketbroker.broker.send.send import Sending
from rocketbroker.broker.send.send_back import SendBack
from rocketbroker.broker.stats.broker_stats import BrokerStats
from rocketbroker.broker.stats.rates import SAMPLE_SECONDS
from rocketbroker.broker.storage.cleanup import Cleanup
from rocketbroker.broker.storage.group_commit import GroupCommit
from rocketbroker.broker.storage.log_subscribers import LogSubscriber, LogSubscribers
from rocketbroker.broker.storage.store_scheduler import StoreScheduler
from rocketbroker.broker.transaction.service import Transactions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.addresses import host_bytes
from rocketbroker.remoting.periodic import PeriodicWork
from rocketbroker.remoting.table import ResponderTable

#: The VIP port is so far below the main port.
VIP_DISTANCE: Final = 2

#: How often silent clients are looked for.
SCAN_SECONDS: Final = 10.0

#: The first write of offsets comes so long after the start.
FIRST_SAVE_SECONDS: Final = 10.0

#: Where followers are, in the folder of the tables.
FOLLOWERS: Final = "dispatchFollowers.json"

#: Producers that are silent for so long are gone; for consumers a setting says it.
PRODUCER_SILENCE_SECONDS: Final = 120.0


@final
class Broker:
    """A broker.

    Its parts are attributes, for who counts what they did.

    @ivar main: what the main port answers.
    @ivar vip: what the VIP port answers: all but pulls.
    """

    _log = Logger()

    def __init__(
        self, env: BrokerEnvironment, settings: BrokerSettings, port: int
    ) -> None:
        """
        @param port: the main port, which becomes part of message ids.
        """
        self.settings = settings
        self.port = port
        self.store = env.store
        self._environment = env
        self._make_tables()
        self._make_registration()
        self._make_registries()
        self._make_data_path()
        self._make_replies()
        self._make_statistics()
        self._make_followers()
        self.main = ResponderTable()
        self.vip = ResponderTable()
        self._fill_tables()
        self.periodic = PeriodicWork(env.clock)
        self._servers: list[Server] = []

    def _file(self, name: str) -> JsonTable:
        """The file of a table."""
        path = f"{self.settings.store.store_path_root_dir}/config/{name}"
        return JsonTable(self._environment.files, path, self._environment.in_thread)

    def _make_tables(self) -> None:
        """What is kept beside the messages."""
        env, options = self._environment, self.settings.broker
        file, wall_ms = self._file, env.wall_ms
        light = self.settings.store.enable_lmq
        timer = self.settings.store.timer_wheel_enable
        self.topics = TopicTable(options, file("topics.json"), wall_ms, timer, light)
        self.groups = GroupTable(
            options, file("subscriptionGroup.json"), wall_ms, light
        )
        offsets = "lmqConsumerOffset.json" if light else "consumerOffset.json"
        self.offsets = OffsetTable(options, file(offsets), wall_ms)
        self._delay_offsets = DelayOffsets(
            file("delayOffset.json"),
            options.delay_offset_update_version_step,
            wall_ms,
        )
        self.filters = Filters(options, file("consumerFilter.json"), wall_ms)
        self.request_modes = MessageRequestModes(
            options, file("messageRequestMode.json")
        )
        tables = self.topics, self.groups, self.offsets
        self._tables = (*tables, self.filters, self.request_modes)

    def _make_registries(self) -> None:
        """Who is there."""
        seconds, options = self._environment.clock.seconds, self.settings.broker
        self.notices = ConsumerNotify(options)
        self.consumers = ConsumerRegistry(seconds, self.notices.consumer_ids_changed)
        route = self.name_server_calls.route
        self.diagnosis = GroupDiagnosis(
            self.consumers,
            self.topics,
            self.groups,
            RouteCache(seconds, options.broker_name, self.settings.name_servers, route),
            seconds,
            self._environment.wall_ms,
        )
        self.producers = ProducerRegistry(seconds)
        strict = options.lock_in_strict_mode
        self.locks = QueueLocks(seconds, strict, self.settings.store.total_replicas)

    def _make_data_path(self) -> None:
        """Messages in and out."""
        env, settings = self._environment, self.settings
        clock, store, in_thread = env.clock, env.store, env.in_thread
        self.group_commit = GroupCommit(clock, store, settings.store, in_thread)
        self.long_polling = LongPolling(clock, store, settings.broker)
        wake = self.long_polling.wake
        self.scheduler = StoreScheduler(
            clock, store, settings.store, self.group_commit, wake, in_thread
        )
        self.cleanup = Cleanup(clock, store, settings.store, in_thread)
        self.batcher = AppendBatcher(
            store,
            self.group_commit,
            settings.broker,
            settings.store.max_message_size,
            self.scheduler.appended,
            clock.seconds,
        )
        env.turns.at_turn_end(self.batcher.flush)
        self._make_services()

    def _make_services(self) -> None:
        """What takes messages, and keeps some of them back."""
        env, settings = self._environment, self.settings
        clock, store, in_thread = env.clock, env.store, env.in_thread
        delay_messages = DelayMessages(settings.store.message_delay_level)
        lights = self._lights = Lmq(store, settings.store.enable_lmq)
        host = host_bytes(settings.broker.broker_ip1, self.port)
        self.transactions = Transactions(
            clock,
            store,
            settings.broker,
            settings.store,
            self._file("transactionMetrics"),
            self.offsets,
            self.topics,
            self.producers,
            delay_messages,
            lights,
            self.batcher,
            self.group_commit,
            self.scheduler,
            host,
            env.wall_ms,
            in_thread,
        )
        self.dead_letters = DeadLetters(self.topics, self.groups, self.locks.is_locked)
        self.sending = Sending(
            store,
            self.topics,
            self.groups,
            self.batcher,
            self.dead_letters,
            delay_messages,
            lights,
            settings.broker,
            settings.store.max_message_size,
            host,
            env.unique_keys,
            self.transactions.counts.prepared,
            env.wall_ms,
        )
        self.send_back = SendBack(
            store,
            self.topics,
            self.groups,
            self.batcher,
            delay_messages,
            lights,
            self.dead_letters,
            settings.broker,
            in_thread,
        )
        self._make_delaying(delay_messages)
        self._make_pulling()

    def _make_delaying(self, delay_messages: DelayMessages) -> None:
        """What delivers messages that waited."""
        env, settings = self._environment, self.settings
        counted = settings.store.enable_schedule_message_stats
        under_way = (
            settings.store.schedule_async_deliver_max_pending_limit
            if settings.store.enable_schedule_async_deliver
            else 1
        )
        self.schedule = ScheduleService(
            env.clock,
            self.store,
            self._delay_offsets,
            delay_messages,
            self._lights,
            self.group_commit,
            self.scheduler.appended,
            self.sending.counter if counted else None,
            under_way,
            env.wall_ms,
            env.in_thread,
        )

    def _make_pulling(self) -> None:
        """What hands messages out."""
        env, options, store = self._environment, self.settings.broker, self.store
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
        self.pulling = Pulling(
            store,
            self.pull_checks,
            self.offsets,
            self.broadcasts,
            self.long_polling,
            options,
            self.scheduler.dispatch,
            env.in_thread,
            env.clock.seconds,
        )

    def _make_replies(self) -> None:
        """From the client that answers to the one that asked."""
        env, settings = self._environment, self.settings
        self.replies = Replies(
            self.store,
            self.topics,
            self.groups,
            self.producers,
            self.batcher,
            self._lights,
            self.sending.counter,
            settings.broker,
            settings.store.max_message_size,
            host_bytes(settings.broker.broker_ip1, self.port),
            env.wall_ms,
        )

    def _make_statistics(self) -> None:
        """How much goes in and out."""
        env, store = self._environment, self.store
        self.statistics = BrokerStats(
            env.clock.seconds,
            env.wall_ms,
            store,
            self.topics,
            self.batcher.put_times,
            self.sending,
            self.pulling,
            self.pull_checks,
        )

    def _make_followers(self) -> None:
        """Who sees each stored message."""
        env, root = self._environment, self.settings.store.store_path_root_dir
        self.followers = LogSubscribers(env.clock, self._file(FOLLOWERS))
        for plugin, in_thread in env.followers:
            self.followers.add(
                LogSubscriber(
                    env.clock,
                    self.store,
                    plugin,
                    in_thread,
                    f"{root}/plugins/{plugin.name}",
                    self.settings.as_properties(),
                )
            )

    def _make_registration(self) -> None:
        """What name servers hear."""
        settings = self.settings
        options = settings.broker
        calls = self.name_server_calls = NameServerApi(
            self._environment.client,
            options,
            f"{options.broker_ip1}:{self.port}",
            f"{options.broker_ip2}:{settings.store.ha_listen_port}",
        )
        self.registration = Registration(
            self._environment.clock, calls, settings.name_servers, options, self.topics
        )

    def _fill_tables(self) -> None:
        """Which port answers what (the broker sheet, 6.2): VIP all but pulls."""
        env, options, store = self._environment, self.settings.broker, self.store
        topics, groups, consumers = self.topics, self.groups, self.consumers
        announced = self.registration.announced
        self.heartbeats = Heartbeats(
            options, topics, groups, consumers, self.producers, self.filters, announced
        )
        both: list[Part] = [
            self.sending,
            self.replies,
            self.send_back,
            self.transactions.ends,
            self.heartbeats,
            self.locks,
            self.diagnosis,
            self.cleanup,
            ConsumerInfo(topics, groups, self.offsets, consumers, store),
            *administration(self, env),
        ]
        for part in both:
            part.register(self.main)
            part.register(self.vip)
        self.pulling.register(self.main)

    def open(self) -> None:
        """I{Blocking.} Read the tables, open and recover the store.

        The tables come first: the store has to know which topics have batch queues.

        @raise StoreError: it cannot be opened; one sentence.
        """
        for table in self._tables:
            table.load()
        self.store.know_topics(self.topics.is_batch)
        self.store.open()
        if self.settings.broker.enable_calc_filter_bit_map:
            self.store.calculate_bit_maps(self.filters.bit_map)
        self.schedule.load()
        self.transactions.load()
        self.followers.load()

    def listen(self, main: Server, vip: Server) -> None:
        """Accept connections on both ports.

        @raise ConfigurationError: a port cannot be had; one sentence.
        """
        main.listen(self.port)
        self._servers.append(main)
        vip.listen(vip_port(self.port))
        self._servers.append(vip)

    def start(self) -> Deferred[None]:
        """Begin regular work and tell the name servers.

        @return: fires when they know this broker, or could not be reached.
        """
        self.scheduler.start()
        self.cleanup.start()
        self.long_polling.start()
        self.schedule.start()
        self.transactions.start()
        self.followers.start()
        options, every = self.settings.broker, self.periodic.every
        every("scan of clients", SCAN_SECONDS, SCAN_SECONDS, self._scan)
        save = options.flush_consumer_offset_interval / 1000
        every("save of tables", FIRST_SAVE_SECONDS, save, self._save)
        save = self.settings.store.flush_delay_offset_interval / 1000
        every("save of delays", FIRST_SAVE_SECONDS, save, self.schedule.save)
        save = options.transaction_metric_flush_interval / 1000
        every("save of counters", save, save, self.transactions.counts.save)
        every("notices", 2 * LATE_SECONDS, LATE_SECONDS, self.notices.deliver)
        every("diagnosis", LOOK_SECONDS, LOOK_SECONDS, self.diagnosis.look)
        every("samples", SAMPLE_SECONDS, SAMPLE_SECONDS, self.statistics.look)
        return self.registration.start().addCallback(lambda _: self._ready())

    def _scan(self) -> None:
        self.consumers.scan(self.settings.broker.channel_expired_timeout / 1000)
        self.producers.scan(PRODUCER_SILENCE_SECONDS)
        self.locks.scan()
        self.filters.look(self.consumers.is_subscribed)

    def _ready(self) -> None:
        """The reference's sentence, which scripts wait for."""
        options, servers = self.settings.broker, self.settings.name_servers
        self._log.info(
            "The broker[{name}, {ip}:{port}] boot success. serializeType=JSON{servers}",
            name=options.broker_name,
            ip=options.broker_ip1,
            port=self.port,
            servers=f" and name server is {';'.join(servers)}" if servers else "",
        )

    def stop(self) -> Deferred[None]:
        """Stop: see the head of this module; fires when all is on the disk."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        self.periodic.stop()
        for step in (
            self.registration.stop,
            self._stop_answering,
            self.schedule.stop,
            self.transactions.stop,
            self.cleanup.stop,
            self.scheduler.stop,
            self.group_commit.stop,
            self._flush,
            self.followers.stop,
            self._save,
            self._environment.in_thread.settled,
            lambda: self._environment.in_thread(self.store.close),
        ):
            try:
                await step()
            except Exception:
                # What comes behind it, the store above all, must be closed yet.
                self._log.failure("The broker did not stop as it should.")

    async def _stop_answering(self) -> None:
        """Who waits for the disk is answered; then nobody is any more."""
        self.long_polling.stop()
        self.batcher.flush()
        await self.group_commit.settled()
        await gatherResults([server.stop() for server in self._servers])

    def _flush(self) -> Deferred[int]:
        """What is delivered is on the disk before that is written down."""
        return self._environment.in_thread(self.store.flush)

    def _save(self) -> Deferred[list[None]]:
        """Write what changed and was not written when it did; and wait for it."""
        self.broadcasts.look()
        self.transactions.save()
        for table in self._tables:
            table.save()
        self.schedule.save()
        saved = [table.saved() for table in self._tables]
        saved += [self._delay_offsets.saved(), self.transactions.counts.saved()]
        return gatherResults(saved)


def vip_port(main: int) -> int:
    """The VIP port of a main port; any free one where there is none below."""
    return main - VIP_DISTANCE if main > VIP_DISTANCE else 0
