# -*- test-case-name: tests.broker.send.test_send_back -*-
"""Request 36: a consumer sends a message back, to reconsume it later.

The request names the position of the message in the log. The message is read, in a
thread, and stored once more: for the group's retry topic, after a delay level that
grows with its failures (10 s the first time); or in the group's dead-letter topic
(L{dead_letters}) if that was the last time. The copy has its first topic in RETRY_TOPIC
and its first id in ORIGIN_MESSAGE_ID.

The answer lets the client commit an offset behind the message, so it comes when the
copy is as safe as a send would be: with SYNC_FLUSH when it is on the disk, and with
SYNC_MASTER when slaves have it, although the stored property WAIT is false, as in
RocketMQ, which does not wait. After an answer other than success the client sends the
message to the retry topic itself. So slaves that do not report in time are no error: as
long as they are gone each message would come twice.

C{docs/facts/broker.md} 10.2; C{docs/facts/client.md} 20. Differences from RocketMQ:

  - The retry topic's order flag stays as heartbeats have set it; RocketMQ resets it
    with each request, and writes its topics each time.
  - The queue of the retry topic is one that consumers read, if the group's settings
    have more queues than the topic.
  - Messages that no consumer was ever given, half messages above all, cannot be sent
    back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar, final

from twisted.internet.defer import Deferred, DeferredSemaphore

from rocketbroker.broker.appends.ack_rule import IN_SYNC_REPLICAS_NOT_ENOUGH
from rocketbroker.broker.appends.overload import OVERLOAD, OVERLOADED
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.metadata.topics import (
    UNIT_SUBSCRIPTION,
    WRITE,
)
from rocketbroker.broker.send.dead_letters import (
    DeadLetters,
    FailureCounts,
    max_reconsumed,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    FAQ,
    NoPermission,
    SubscriptionGroupNotExist,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.records import names, properties
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.records.sysflags import (
    HOST_MASK,
    INNER_BATCH,
    takes_queue_offset,
)
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    OS_PAGE_CACHE_BUSY,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
    Draft,
)
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.send import ConsumerSendMsgBackRequestHeader

T = TypeVar("T")

#: The level of a message that failed once; each failure more is one level more.
FIRST_LEVEL: Final = 3

#: How many messages are read at a time: each may have 4 MiB, and those that have been
#: read wait for the reactor.
MAX_READ: Final = 16

#: What 32 bits hold.
MAX_TIMES: Final = (1 << 31) - 1

#: RocketMQ's names of the outcomes, which are the remark.
STATUS_NAMES: Final = {
    MESSAGE_ILLEGAL: "MESSAGE_ILLEGAL",
    PROPERTIES_SIZE_EXCEEDED: "PROPERTIES_SIZE_EXCEEDED",
    SERVICE_NOT_AVAILABLE: "SERVICE_NOT_AVAILABLE",
    CREATE_MAPPED_FILE_FAILED: "CREATE_MAPPED_FILE_FAILED",
    OS_PAGE_CACHE_BUSY: "OS_PAGE_CACHE_BUSY",
    IN_SYNC_REPLICAS_NOT_ENOUGH: "IN_SYNC_REPLICAS_NOT_ENOUGH",
}


@final
class SendBack:
    """The responder of request 36, a message sent back.

    @ivar counts: messages that were stored again, dead letters too.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        appends: AppendsRoom,
        dead_letters: DeadLetters,
        delay_messages: DelayMessages,
    ) -> None:
        waiting = context.waiting.family(RequestCode.CONSUMER_SEND_MSG_BACK)
        options = context.settings.broker
        self.counts = FailureCounts(metadata.topics)
        self._store = context.store
        self._topics = metadata.topics
        self._groups = metadata.groups
        self._batcher = appends.batcher
        self._delay_messages = delay_messages
        self._lmqs = appends.lmqs
        self._dead_letters = dead_letters
        self._options = options
        self._in_thread: InThread = context.in_thread
        self._read = waiting.before_threads(self._read_later)
        self._reading = DeferredSemaphore(MAX_READ)
        self._max_waiting = options.send_thread_pool_queue_capacity
        self._next_queue = 0

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._max_waiting = settings.broker.send_thread_pool_queue_capacity

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.CONSUMER_SEND_MSG_BACK, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Store a message again for a group, or say why not."""
        self._batcher.check_role()
        header = ConsumerSendMsgBackRequestHeader.complete(request.ext)
        group = self._groups.find(header.group)
        if group is None:
            raise SubscriptionGroupNotExist(
                f"subscription group not exist, {header.group} {FAQ}"
            )
        if not self._options.broker_permission & WRITE:
            raise NoPermission(
                f"the broker[{self._options.broker_ip1}] sending message is forbidden"
            )
        if group.retry_queue_nums <= 0:
            # The group wants nothing again.
            return response_to(request)
        self._check_load()
        queue_id = self._retry_queue(group, header)
        store, position = self._store, header.offset
        found = self._read(lambda: store.record_at(position))
        return found.addCallback(self._put, request, header, group, queue_id)

    def _read_later(self, function: Callable[[], T], /) -> Deferred[T]:
        """Run C{function} in a thread when fewer than L{MAX_READ} are read."""
        found: Deferred[T] = self._reading.run(self._in_thread, function)
        return found

    def _check_load(self) -> None:
        """Refuse one more while too many wait: to be read, or for the disk."""
        self._batcher.check_load()
        if len(self._reading.waiting) >= self._max_waiting:
            # RocketMQ keeps as many in its queue of sends.
            self._batcher.refused[OVERLOADED] += 1
            raise SystemBusy(f"{OVERLOAD}, slow stage: reads from the disk")

    def _retry_queue(
        self, group: SubscriptionGroupConfig, header: ConsumerSendMsgBackRequestHeader
    ) -> int:
        """The queue of the group's retry topic whose turn it is; the topic is made."""
        topic = names.retry_topic(header.group)
        if len(topic) > names.MAX_RETRY_TOPIC_BYTES:
            # It would wait, and be refused when its time has come.
            raise SystemFailure(STATUS_NAMES[MESSAGE_ILLEGAL])
        config = self._topics.config(topic)
        if config is None:
            flag = UNIT_SUBSCRIPTION if header.unit_mode else 0
            config = self._topics.ensure(topic, group.retry_queue_nums, sys_flag=flag)
        if not config.perm & WRITE:
            raise NoPermission(f"the topic[{topic}] sending message is forbidden")
        self._next_queue += 1
        queues = min(group.retry_queue_nums, config.read_queue_nums)
        return self._next_queue % max(queues, 1)

    def _put(
        self,
        record: bytes | None,
        request: Command,
        header: ConsumerSendMsgBackRequestHeader,
        group: SubscriptionGroupConfig,
        queue_id: int,
    ) -> Deferred[Command | None]:
        """Store what was read.

        @raise BrokerError: it cannot be.
        """
        # Many may have been read since it was asked for.
        self._check_load()
        message = given_out(record, header.offset)
        own = properties_again(message)
        first_topic = own[properties.RETRY_TOPIC]
        most = max_reconsumed(group, request.version, header.max_reconsume_times)
        is_dead = message.reconsume_times >= most or header.delay_level < 0
        if is_dead:
            topic, queue_id = self._dead_letters.topic(header.group), 0
            own[properties.DELAY] = "0"
        else:
            level = header.delay_level or FIRST_LEVEL + message.reconsume_times
            topic, queue_id = self._delay_messages.postpone(
                own, names.retry_topic(header.group), queue_id, max(level, 1)
            )
        done: Deferred[Command | None] = Deferred()
        answer = partial(self._answer, done, request, header.group, first_topic)
        draft = Draft(
            self._store.queue(topic, queue_id),
            message.body,
            properties.encode(own),
            message.flag,
            message.sys_flag & ~HOST_MASK,
            message.born_ms,
            message.born_host,
            min(message.reconsume_times, MAX_TIMES - 1) + 1,
            tag_code(own.get(properties.TAGS, "")),
            partial(answer, is_dead),
        )
        self._lmqs.spread(draft)
        self._batcher.drafts.append(draft)
        # A thread came back with it: that is no turn which ends.
        self._batcher.flush()
        return done

    def _answer(
        self,
        done: Deferred[Command | None],
        request: Command,
        group: str,
        topic: str,
        is_dead: bool,
        draft: Draft,
        code: int,
    ) -> None:
        problem = ""
        if draft.status != PUT_OK:
            self._batcher.not_stored(draft)
            problem = STATUS_NAMES.get(draft.status, "UNKNOWN_ERROR")
        else:
            self.counts.count(group, topic)
            if is_dead:
                self._dead_letters.counts.count(group, topic)
            if code == ResponseCode.FLUSH_DISK_TIMEOUT:
                problem = ResponseCode(code).name
        if problem:
            is_busy = draft.status == OS_PAGE_CACHE_BUSY
            refusal = ResponseCode.SYSTEM_BUSY if is_busy else ResponseCode.SYSTEM_ERROR
            done.callback(response_to(request, refusal, problem))
            return
        # Topics that were just made must outlive the broker like the message in them.
        saved = self._topics.saved(names.retry_topic(group), names.dlq_topic(group))
        saved.addCallback(lambda _: done.callback(response_to(request)))


def given_out(record: bytes | None, position: int) -> StoredMessage:
    """A message that a consumer can have been given.

    @raise SystemFailure: there is none, or it was never given out, or not as one
        message: a batch that is one record.
    """
    message = None if record is None else decode(record)
    if message is None or not takes_queue_offset(message.sys_flag):
        raise SystemFailure(f"look message by offset failed, {position}")
    if message.sys_flag & INNER_BATCH:
        # The client then sends those of its messages that failed.
        raise SystemFailure(STATUS_NAMES[MESSAGE_ILLEGAL])
    return message


def properties_again(message: StoredMessage) -> dict[str, str]:
    """The properties of a message that is stored once more, without its delay."""
    own = dict(message.properties)
    own.setdefault(properties.RETRY_TOPIC, message.topic)
    if not own.get(properties.ORIGIN_MESSAGE_ID, "").strip():
        own[properties.ORIGIN_MESSAGE_ID] = message.offset_id
    own[properties.WAIT] = "false"
    # That of the record which was read.
    own.pop(properties.CRC32, None)
    return own
