# -*- test-case-name: tests.broker.send.test_reply -*-
"""Replies of one client to another's message: requests 324 and 325, and 326 from us.

The requesting client sends an ordinary message with its client id (REPLY_TO_CLIENT) and
an id of the request (CORRELATION_ID). The replying client sends a reply with both to
this broker, which has a connection to the requesting client. The reply is pushed there,
compressed or not as it came, and its outcome there decides about the answer. Replies
are also stored (storeReplyMessageEnable), in a topic of the cluster; a failure of that
changes nothing for the clients.

RocketMQ pushes first and stores then, with a thread that waits. Here both are under way
together, and the answer waits for both; the only difference that can be seen is a reply
that is stored before it is read.

Another difference: a stored reply has the system flag of its body, so that a compressed
one can be read again; in RocketMQ it is lost.

C{docs/facts/broker.md} 10.3; C{docs/facts/client.md} 13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.appends.append_batcher import UNAVAILABLE
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.appends.send_answers import QueueSends
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.message_types import message_type_of
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.send.send import NOT_FOR_CLIENTS
from rocketbroker.broker.send.send_checks import (
    SendChecks,
    fields_of,
    header_of,
    region_of,
    wants_wait,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import BrokerError, SystemFailure
from rocketbroker.records import properties
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.hosts import text as host_text
from rocketbroker.records.ids import offset_id
from rocketbroker.records.properties import PUSH_REPLY_TIME, REPLY_TO_CLIENT
from rocketbroker.records.sysflags import TRANSACTION_MASK
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
)

#: How long the requesting client may take for a reply.
PUSH_SECONDS: Final = 10.0


@final
class Replies:
    """The responder of replies, which it passes to the requester.

    @ivar pushed: how many the requesting clients have taken.
    @ivar lost: how many were not: it is gone, silent or refused.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        producers: ProducerRegistry,
        appends: AppendsRoom,
        counter: Callable[[str, int, str], QueueSends],
    ) -> None:
        """
        @param counter: the counts of a queue and type of message.
        """
        options, topics = context.settings.broker, metadata.topics
        max_bytes = context.settings.store.max_message_size
        self.pushed = 0
        self.lost = 0
        self._store = context.store
        self._topics = topics
        self._producers = producers
        self._batcher = appends.batcher
        self._lmqs = appends.lmqs
        self._counter = counter
        self._store_host = context.host
        self._wall_ms = context.wall_ms
        self._checks = SendChecks(
            topics, metadata.groups, options, max_bytes, context.wall_ms
        )
        self._take(options)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._checks.configure(settings)
        self._take(settings.broker)

    def _take(self, options: BrokerOptions) -> None:
        self._stores = options.store_reply_message_enable
        self._added = region_of(options)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.SEND_REPLY_MESSAGE, self.respond)
        table.register(RequestCode.SEND_REPLY_MESSAGE_V2, self.respond)

    def respond(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Requests 324 and 325: push a reply, store it, and say what became of it.

        @raise BrokerError: nothing was done with it.
        """
        self._batcher.check_role()
        fields, header = fields_of(request), header_of(request)
        # A reply is one message, whatever its flags are, as in RocketMQ.
        fields.m = False
        # The official Go client forgets the body of what it replies; a message without
        # one cannot be stored, but it can be waited for.
        stores = self._stores and request.body != b""
        if stores:
            self._batcher.check_load()
        config = self._checks.topic(fields)
        queue_id = self._checks.queue_id(fields, config, connection)
        own = properties.parse(fields.i)
        # It is no half message either: nobody would ever end its transaction.
        sys_flag = self._checks.sys_flag(fields, config, own) & ~TRANSACTION_MASK
        for name in NOT_FOR_CLIENTS:
            own.pop(name, None)
        own.update(self._added)
        ext = {
            **self._added,
            "msgId": "0",
            "queueId": str(queue_id),
            "queueOffset": "0",
        }
        stored: Deferred[None] = succeed(None)
        if stores:
            try:
                draft = Draft(
                    self._store.queue(fields.b, queue_id),
                    request.body,
                    properties.encode(own),
                    fields.h,
                    sys_flag,
                    fields.g,
                    connection.peer_host,
                    fields.j,
                    tag_code(own.get("TAGS", "")),
                    None,
                    wait=wants_wait(fields.i),
                )
                self._lmqs.spread(draft)
                stored = self._keep(draft, message_type_of(own), ext)
            except BrokerError:
                # The disk is full, say: the reply is pushed all the same.
                self._batcher.refused[UNAVAILABLE] += 1
        header.queue_id, header.sys_flag = queue_id, sys_flag
        pushed = self._push(connection, header, own, request.body)

        def answer(problem: str | None) -> Command:
            if problem is None:
                self.pushed += 1
                return Command(0, ext)
            self.lost += 1
            return Command(SystemFailure.code, ext, remark=problem)

        return pushed.addCallback(
            lambda problem: stored.addCallback(lambda _: answer(problem))
        )

    def _keep(self, draft: Draft, kind: str, ext: dict[str, str]) -> Deferred[None]:
        """Store a reply; fires when it is, or is not.

        @param kind: its type.
        @param ext: gets the place of it.
        """
        done: Deferred[None] = Deferred()
        topic, queue_id = draft.queue.topic, draft.queue.queue_id

        def settled(draft: Draft, code: int) -> None:
            if draft.status != PUT_OK:
                self._batcher.not_stored(draft)
                done.callback(None)
                return
            sends = self._counter(topic, queue_id, kind)
            sends.count(1, draft.end - draft.position)
            ext["msgId"] = offset_id(self._store_host, draft.position)
            ext["queueOffset"] = str(draft.queue_offset)
            # A topic that this reply has made outlives the broker like the reply.
            self._topics.saved(topic).chainDeferred(done)

        draft.context = settled
        self._batcher.drafts.append(draft)
        return done

    def _push(
        self,
        connection: IConnection,
        header: SendMessageRequestHeader,
        own: dict[str, str],
        body: bytes,
    ) -> Deferred[str | None]:
        """Request 326; fires with what went wrong, None for nothing."""
        client_id = own.get(REPLY_TO_CLIENT)
        if client_id is None:
            return succeed(f"reply message properties[{REPLY_TO_CLIENT}] is null")
        asker = self._producers.connection(client_id)
        if asker is None:
            return succeed(
                f"push reply message fail, channel of <{client_id}> not found."
            )
        refused = f"push reply message to {client_id}fail."
        if asker.congested:
            # It does not read what it is sent; replies would pile up without a bound.
            return succeed(refused)
        now = self._wall_ms()
        pushed = ReplyMessageRequestHeader(
            producer_group=header.producer_group,
            topic=header.topic,
            default_topic=header.default_topic,
            default_topic_queue_nums=header.default_topic_queue_nums,
            queue_id=header.queue_id,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            flag=header.flag,
            properties=properties.to_text({**own, PUSH_REPLY_TIME: str(now)}),
            reconsume_times=header.reconsume_times,
            unit_mode=header.unit_mode,
            born_host=host_text(connection.peer_host),
            store_host=host_text(self._store_host),
            store_timestamp=now,
        )
        command = Command(
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, pushed.to_ext(), body
        )
        return asker.request(command, PUSH_SECONDS).addCallbacks(
            lambda answer: None if answer.code == 0 else refused,
            lambda failure: refused,
        )
