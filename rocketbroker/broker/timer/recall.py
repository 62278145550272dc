# -*- test-case-name: tests.broker.timer.test_recall -*-
"""Request 370: take back a message that waits for its time, by its handle.

A message is stored that deletes the other one: it waits for the same slot, and names
the key of the other one. Both are over with that slot.

C{docs/facts/transaction-timer-pop.md} B11; C{docs/facts/broker.md} 10.3.
"""

from __future__ import annotations

from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.append_batcher import AppendBatcher, problem_of
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.timer_messages import (
    TimerMessages,
    decode_handle,
    delete_key,
)
from rocketbroker.broker.metadata.topics import WRITE, TopicTable
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    IllegalOperation,
    NoPermission,
    ServiceNotAvailable,
    SlaveNotAvailable,
    TopicNotExist,
)
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.properties import (
    BORN_TIMESTAMP,
    PRODUCER_GROUP,
    TAGS,
    TIMER_DEL_UNIQUE_KEY,
    TIMER_DELIVER_MS,
    UNIQUE_KEY,
    encode,
)
from rocketbroker.remoting.interfaces import Answer, IConnection, IResponderTable
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import RecallMessageRequestHeader

RECALL_TAG: Final = "_RECALL_TAG_"


@final
class Recall:
    """The responder of request 370, which recalls a message.

    @ivar recalled: how many messages that delete another one were stored.
    """

    def __init__(
        self,
        context: BrokerContext,
        topics: TopicTable,
        batcher: AppendBatcher,
        delay_messages: DelayMessages,
        timer_messages: TimerMessages,
    ) -> None:
        self.recalled = 0
        self._store = context.store
        self._topics = topics
        self._batcher = batcher
        self._delay_messages = delay_messages
        self._timer_messages = timer_messages
        self._wall_ms = context.wall_ms
        self.configure(context.settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._max_bytes = settings.store.max_message_size

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.RECALL_MESSAGE, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Take a message back, or say why not."""
        options = self._options
        if not options.recall_message_enable:
            raise NoPermission("recall failed, operation is forbidden")
        if self._batcher.is_slave:
            raise SlaveNotAvailable("this broker is a slave, and stores nothing")
        until = options.start_accept_send_request_time_stamp
        if self._wall_ms() < until:
            raise ServiceNotAvailable(f"broker unable to service, until {until} ms")
        if not (
            options.broker_permission & WRITE
            or options.allow_recall_when_broker_not_writeable
        ):
            raise ServiceNotAvailable("broker service not available, not writeable")
        header = RecallMessageRequestHeader.complete(request.ext)
        self._batcher.check_load()
        topic = header.topic
        if self._topics.config(topic) is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please!")
        handle = decode_handle(header.recall_handle)
        ahead = handle.deliver_ms - self._wall_ms()
        if handle.topic != topic:
            raise IllegalOperation("recall failed, topic not match")
        if handle.broker_name != options.broker_name:
            raise IllegalOperation("recall failed, broker service not available")
        if not 0 < ahead < self._timer_messages.max_delay_ms:
            raise IllegalOperation("recall failed, timestamp invalid")
        own = {
            TAGS: RECALL_TAG,
            TIMER_DELIVER_MS: str(handle.deliver_ms),
            TIMER_DEL_UNIQUE_KEY: delete_key(topic, handle.unique_key),
            UNIQUE_KEY: handle.unique_key,
            BORN_TIMESTAMP: str(self._wall_ms()),
            PRODUCER_GROUP: header.producer_group or "",
        }
        return self._put(connection, own, topic, handle.unique_key)

    def _put(
        self, connection: IConnection, own: dict[str, str], topic: str, unique_key: str
    ) -> Deferred[Command | None]:
        """Store the message that deletes another one."""
        place = self._delay_messages.place(own, topic, 0)
        assert place is not None
        done: Deferred[Command | None] = Deferred()
        draft = Draft(
            self._store.queue(*place),
            b"0",
            encode(own),
            0,
            0,
            self._wall_ms(),
            connection.peer_host,
            0,
            tag_code(RECALL_TAG),
            partial(self._answer, done, unique_key),
        )
        self._batcher.drafts.append(draft)
        return done

    def _answer(
        self, done: Deferred[Command | None], unique_key: str, draft: Draft, code: int
    ) -> None:
        """Success also where a copy or the disk is late: the message is there."""
        if draft.status != PUT_OK:
            self._batcher.not_stored(draft)
            problem = problem_of(draft, self._store, self._max_bytes)
            done.callback(Command(problem.code, remark=problem.remark))
            return
        self.recalled += 1
        ext = {"msgId": unique_key, "MSG_REGION": self._options.region_id}
        done.callback(Command(0, ext))
