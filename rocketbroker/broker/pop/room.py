# -*- test-case-name: tests.broker.pop.test_pop -*-
"""The room of POP: messages that each go to one member of a group.

  - L{pop}: request 200050. L{pop_checks}: its checks. L{pop_collect}: what it takes
    of a queue. L{popped_messages}: its messages.
  - L{pop_polling}: those that wait. L{notification}: requests 200054 and 200055.
  - L{progress}: how far groups are. L{check_point_buffer}: check points in memory.
  - L{revive_log}: check points and acknowledgements on their way into the log.
  - L{ack}, L{invisible_time}: requests 200051, 200151, 200053. L{hot_acks}: most of
    the first.
  - L{revive}, L{revive_queue}: what was not acknowledged is given out again.
  - L{order_info}: consumption in order. L{retry_topics}: where messages go then.
  - L{peek}: request 200052.
  - L{need}: when a broker needs the room at all.

Request 200056 moves check points out of RocketMQ's key-value store; there is none here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pop.ack import AckRequests
from rocketbroker.broker.pop.check_point_buffer import CheckPointBuffer
from rocketbroker.broker.pop.hot_acks import HotAcks
from rocketbroker.broker.pop.invisible_time import InvisibleTimeRequests
from rocketbroker.broker.pop.need import ORDER_FILE
from rocketbroker.broker.pop.notification import NotificationRequests
from rocketbroker.broker.pop.order_info import OrderInfo
from rocketbroker.broker.pop.peek import PeekRequests
from rocketbroker.broker.pop.pop import PopRequests
from rocketbroker.broker.pop.pop_checks import NO_KEY_VALUE_STORE, PopChecks
from rocketbroker.broker.pop.pop_collect import PopCollect
from rocketbroker.broker.pop.pop_polling import PopLongPolling
from rocketbroker.broker.pop.pop_state import PopState
from rocketbroker.broker.pop.progress import PopProgress
from rocketbroker.broker.pop.retry_topics import RetryTopics
from rocketbroker.broker.pop.revive import Revive
from rocketbroker.broker.pop.revive_log import ReviveLog, WheelTimer
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.replicas.room import ReplicasRoom
from rocketbroker.broker.roles import ACTING, MASTERS
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.storage.room import StorageRoom
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import (
    IConnection,
    IResponderTable,
)
from rocketbroker.store.interfaces import Arrival
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

#: How often offsets of groups that pop are committed: a tenth of what check points in
#: memory have to spare.
POP_SECONDS: Final = 0.1

POP_PROGRESS: Final = Service(
    "progress of pops",
    "offsets of groups that pop are committed, check points in memory are written",
    always(POP_SECONDS),
    roles=MASTERS | ACTING,
)

#: Upper bounds of the times that looks take, in ms, for metrics; the last is open.
SCAN_BOUNDS: Final = (1, 10, 100, 1000, 2000, 3000)

#: What was not used for so long is forgotten; it costs a look at the table.
UNUSED_SECONDS: Final = 60.0


@final
class PopRoom(Room):
    """The room of consumption by POP.

    @ivar progress: how far groups are, and what they have in flight.
    @ivar order: what groups have that consume in order.
    @ivar pops: the pops that wait. C{notified}: the notifications.
    @ivar buffer: check points in memory.
    @ivar log: writes check points and acknowledgements.
    @ivar pop_requests: answers pops. C{acks}: answers acknowledgements. C{hot_acks}:
        most of those of single messages.
    @ivar revive: gives out again.
    @ivar scans: how many looks at check points in memory took how long, by class of
        L{SCAN_BOUNDS}. C{scan_ms}: how long all of them.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        replicas: ReplicasRoom,
        appends: AppendsRoom,
        storage: StorageRoom,
        timer: TimerRoom,
        pull: PullRoom,
    ) -> None:
        settings, clock, wall_ms = context.settings, context.clock, context.wall_ms
        options, store = settings.broker, context.store
        topics, groups, offsets = metadata.topics, metadata.groups, metadata.offsets
        scheduler, bridge = storage.scheduler, replicas.bridge
        self._options = options
        self._topics = topics
        self._groups = groups
        self._services: Services = context.services
        self._seconds = clock.seconds
        self._turns = context.turns
        self._cleaned = 0.0
        self.scans = [0] * (len(SCAN_BOUNDS) + 1)
        self.scan_ms = 0.0
        self._timer = WheelTimer(timer.service, settings.store, wall_ms)
        self._checks = PopChecks(
            topics, groups, pull.checks, settings.store.timer_wheel_enable, options
        )
        self._retry_topics = RetryTopics(topics, offsets, options)
        self.progress = PopProgress(store, offsets, clock.seconds, wall_ms())
        self.order = OrderInfo(context.tables.file(ORDER_FILE), wall_ms)
        self.pops = PopLongPolling(clock, store, options, context.turns)
        self.notified = PopLongPolling(
            clock, store, options, context.turns, latest_first=True
        )
        self.log = ReviveLog(context, appends.batcher, self._timer, bridge.put)
        self.buffer = CheckPointBuffer(
            self.log, self.progress, options, clock.seconds, wall_ms
        )
        state = PopState(
            self._retry_topics, self.progress, self.order, self.log, self.buffer
        )
        self._collect = PopCollect(context, pull.checks, offsets, state)
        self.pop_requests = PopRequests(
            context,
            metadata,
            state,
            self._checks,
            self._collect,
            self.pops,
            scheduler.dispatch,
        )
        self.notifications = NotificationRequests(
            context,
            topics,
            state,
            self._checks,
            self.notified,
            self.pops,
            scheduler.dispatch,
        )
        self.peek_requests = PeekRequests(
            context, topics, state, self._checks, scheduler.dispatch
        )
        acks = self.acks = AckRequests(context, metadata, state, self.pops)
        batcher = appends.batcher
        self.hot_acks = HotAcks(acks, self.buffer, self.log, batcher, options)
        self.invisible_times = InvisibleTimeRequests(
            acks, offsets, self.order, self.log, batcher, wall_ms
        )
        self.revive = Revive(context, metadata, state, self._timer, appends.own, bridge)
        offsets.watch(self)
        scheduler.watch(self.arrived)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._timer.configure(settings.store)
        for part in (
            self._checks,
            self._retry_topics,
            self.pops,
            self.notified,
            self.log,
            self.buffer,
            self._collect,
            self.pop_requests,
            self.acks,
            self.hot_acks,
            self.revive,
        ):
            part.configure(settings)

    def register_pulls(self, table: IResponderTable) -> None:
        """Answer what the VIP port does not answer."""
        self.pop_requests.register(table)
        self.notifications.register(table)
        self.peek_requests.register(table)

    def register(self, table: IResponderTable) -> None:
        """Answer on either port."""
        self.acks.register(table)
        self.hot_acks.register(table)
        self.invisible_times.register(table)
        table.register(RequestCode.POP_ROLLBACK, self.roll_back)

    def roll_back(self, connection: IConnection, request: Command) -> Command:
        """Request 200056: there are no records in a key-value store to be moved."""
        return response_to(request)

    def offset_reset(self, group: str, topic: str, queue_id: int) -> None:
        """A group is to go on elsewhere: one that waits may do so now."""
        self.pops.wake(topic, group, queue_id)
        self.notified.wake(topic, group, queue_id)

    def offsets_forgotten(self, is_gone: Callable[[str, str], bool]) -> None:
        """Groups or topics are gone: what comes under their names begins anew."""
        self.progress.forget_all(is_gone)
        self.order.forget_all(is_gone)

    def arrived(self, arrival: Arrival) -> None:
        """Messages came into a queue: those that wait for them may go on."""
        self.pops.arrived(arrival)
        self.notified.arrived(arrival)

    def load(self) -> None:
        """I{Blocking.} Begin where the last broker was; store and offsets are open."""
        self.order.load()
        self.revive.load()
        if self._options.pop_consumer_kv_service_enable:
            self._log.warn("{sentence}.", sentence=NO_KEY_VALUE_STORE)

    def start(self) -> None:
        """Begin regular work."""
        self._services.begin(POP_PROGRESS, self._look, self._begin_anew)
        self.revive.start()

    def _begin_anew(self) -> None:
        """Go on where the offsets are, in another role: what was in memory in the last
        one may have come to others since."""
        self.buffer.clear()
        self.progress.forget_all(lambda group, topic: True)

    def _look(self) -> None:
        """Write check points that stayed for long enough, and commit offsets."""
        begin = self._seconds()
        self._turns.within(self.buffer.look)
        self.progress.commit()
        took_ms = (self._seconds() - begin) * 1000
        self.scan_ms += took_ms
        self.scans[bisect_left(SCAN_BOUNDS, took_ms)] += 1
        if self._seconds() - self._cleaned > UNUSED_SECONDS:
            self._cleaned = self._seconds()
            self.progress.forget_unused(UNUSED_SECONDS)

    def _has_queue(self, group: str, topic: str, queue_id: int) -> bool:
        config = self._topics.config(topic)
        return (
            config is not None
            and self._groups.config(group) is not None
            and 0 <= queue_id < config.read_queue_nums
        )

    def stop_answering(self) -> None:
        """Hold nothing any more, and write what is in memory."""
        self.pops.stop()
        self.notified.stop()
        self.buffer.drain()

    def stop(self) -> Deferred[None]:
        """Revive no more; fires when no step is under way."""
        return self.revive.stop()

    def save(self) -> Deferred[None]:
        """Put into the table of offsets how far all is; write the file of orders.

        @return: fires when that file is written.
        """
        self.progress.commit()
        self.revive.save()
        self.order.clean(self._has_queue)
        self.order.save()
        return self.order.saved()
