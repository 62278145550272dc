# -*- test-case-name: tests.client.test_consumer -*-
"""Requests of a client to brokers beside sends and pulls.

Each request is tried once: whoever asks knows what to do if it fails. Time-outs are
those of Java's clients, C{docs/facts/client.md} 2.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, final

from rocketbroker.client.connections import Connections
from rocketbroker.client.routes import Routes
from rocketbroker.errors import MessageIllegal, NotLeaderForQueue, QueryNotFound
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.recall_handle import RecallHandle
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire import fastjson
from rocketbroker.wire.answers import field, number
from rocketbroker.wire.bodies.queues import LockBatchBody
from rocketbroker.wire.bodies.queues import MessageQueue as QueueBody
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.client import GetConsumerListByGroupRequestHeader
from rocketbroker.wire.headers.header import Header
from rocketbroker.wire.headers.pull import (
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rocketbroker.wire.headers.send import (
    ConsumerSendMsgBackRequestHeader,
    RecallMessageRequestHeader,
)

MEMBERS_SECONDS: Final = 3.0
OFFSET_SECONDS: Final = 5.0
LOCK_SECONDS: Final = 1.0
SEND_BACK_SECONDS: Final = 5.0
RECALL_SECONDS: Final = 3.0


@final
class BrokerRequests:
    """The requests of one client."""

    def __init__(self, connections: Connections, routes: Routes) -> None:
        self._connections = connections
        self._routes = routes
        self._turn = 0

    async def members(self, topic: str, group: str) -> list[str]:
        """The client ids of a group's members, as one broker of a topic knows them.

        @raise BrokerError: it knows no member.
        """
        self._turn += 1
        address = self._routes.any_broker(topic, self._turn)
        header = GetConsumerListByGroupRequestHeader(consumer_group=group)
        answer = await self._connections.ask(
            address,
            Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header.to_ext()),
            MEMBERS_SECONDS,
        )
        body = Fields(fastjson.loads(answer.body), "a list of members")
        return body.strings("consumerIdList")

    async def assigned(
        self, topic: str, group: str, client_id: str, strategy: str
    ) -> list[tuple[MessageQueue, str]] | None:
        """What a broker assigns to a member, and how it gets it: C{PULL} or C{POP}.

        @return: None if the broker cannot say it now.
        @raise RequestCodeNotSupported: it is older than RocketMQ 5.
        """
        self._turn += 1
        address = self._routes.any_broker(topic, self._turn)
        question = {
            "clientId": client_id,
            "consumerGroup": group,
            "messageModel": "CLUSTERING",
            "strategyName": strategy,
            "topic": topic,
        }
        answer = await self._connections.ask(
            address,
            Command(RequestCode.QUERY_ASSIGNMENT, {}, fastjson.dumps(question)),
            MEMBERS_SECONDS,
        )
        body = Fields(fastjson.loads(answer.body), "assignments")
        if body.value("messageQueueAssignments") is None:
            return None
        return body.beans("messageQueueAssignments", _assignment)

    async def committed_offset(self, queue: MessageQueue, group: str) -> int | None:
        """Where a group goes on, None if the broker has no offset of it.

        Of a young queue a broker says 0, as if the group had been there from its
        beginning; so RocketMQ's clients get it, too.
        """
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            bname=queue.broker,
        )
        code = RequestCode.QUERY_CONSUMER_OFFSET
        try:
            answer = await self._ask(queue, code, header, OFFSET_SECONDS)
        except QueryNotFound:
            return None
        return number(answer, "offset")

    async def commit(
        self, queue: MessageQueue, group: str, offset: int, wait: bool
    ) -> None:
        """Commit where a group goes on.

        @param wait: for the answer; otherwise it is only sent.
        """
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            bname=queue.broker,
        )
        code = RequestCode.UPDATE_CONSUMER_OFFSET
        if wait:
            await self._ask(queue, code, header, OFFSET_SECONDS)
            return
        address = self._routes.master_of(queue)
        command = Command(code, header.to_ext())
        await self._connections.to(address).oneway(command, OFFSET_SECONDS)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the last offset of a queue."""
        header = GetMaxOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker
        )
        answer = await self._ask(
            queue, RequestCode.GET_MAX_OFFSET, header, OFFSET_SECONDS
        )
        return number(answer, "offset")

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first offset of a queue that can be read."""
        header = GetMinOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker
        )
        answer = await self._ask(
            queue, RequestCode.GET_MIN_OFFSET, header, OFFSET_SECONDS
        )
        return number(answer, "offset")

    async def offset_by_time(self, queue: MessageQueue, ms: int) -> int:
        """The offset of the first message stored at C{ms} or later."""
        header = SearchOffsetRequestHeader(
            topic=queue.topic,
            queue_id=queue.queue_id,
            timestamp=ms,
            bname=queue.broker,
        )
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        answer = await self._ask(queue, code, header, OFFSET_SECONDS)
        return number(answer, "offset")

    async def send_back(
        self,
        queue: MessageQueue,
        group: str,
        message: StoredMessage,
        origin_topic: str,
        delay_level: int,
        max_attempts: int,
    ) -> None:
        """Have the broker give a message to the group again.

        @param queue: where it was read.
        @param delay_level: 0: the broker decides; -1: it becomes a dead letter.
        """
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.position,
            group=group,
            delay_level=delay_level,
            origin_msg_id=message.message_id,
            origin_topic=origin_topic,
            unit_mode=False,
            max_reconsume_times=max_attempts,
            bname=queue.broker,
        )
        code = RequestCode.CONSUMER_SEND_MSG_BACK
        await self._ask(queue, code, header, SEND_BACK_SECONDS)

    async def recall(self, topic: str, handle: str | None, group: str) -> str:
        """Take a message back that waits for its time; its message id.

        @param group: of the producer.
        @raise MessageIllegal: it is no recall handle.
        """
        try:
            broker = RecallHandle.parse(handle or "").broker_name
        except Malformed as problem:
            raise MessageIllegal(str(problem)) from None
        header = RecallMessageRequestHeader(
            producer_group=group, topic=topic, recall_handle=handle or "", bname=broker
        )
        await self._routes.view(topic)
        answer = await self._connections.ask(
            self._routes.master(topic, broker),
            Command(RequestCode.RECALL_MESSAGE, header.to_ext()),
            RECALL_SECONDS,
        )
        return field(answer, "msgId")

    async def lock(
        self, broker: str, client_id: str, group: str, queues: Collection[MessageQueue]
    ) -> set[MessageQueue]:
        """Lock queues of one broker for a client; those that it has now.

        @param queues: at least one.
        """
        answer = await self._locking(
            RequestCode.LOCK_BATCH_MQ, broker, client_id, group, queues
        )
        body = Fields(fastjson.loads(answer.body), "locked queues")
        found = body.beans("lockOKMQSet", QueueBody.from_json)
        return {MessageQueue(one.topic, one.broker_name, one.queue_id) for one in found}

    async def unlock(
        self, broker: str, client_id: str, group: str, queues: Collection[MessageQueue]
    ) -> None:
        """Give locks back."""
        await self._locking(
            RequestCode.UNLOCK_BATCH_MQ, broker, client_id, group, queues
        )

    async def _locking(
        self,
        code: int,
        broker: str,
        client_id: str,
        group: str,
        queues: Collection[MessageQueue],
    ) -> Command:
        body = LockBatchBody(
            client_id=client_id,
            consumer_group=group,
            mq_set=[QueueBody(*queue) for queue in sorted(queues)],
        )
        topic = next(iter(queues)).topic
        return await self._connections.ask(
            self._routes.master(topic, broker),
            Command(code, {"bname": broker}, fastjson.dumps(body)),
            LOCK_SECONDS,
        )

    async def _ask(
        self, queue: MessageQueue, code: int, header: Header, seconds: float
    ) -> Command:
        ext = header.to_ext()
        address = self._routes.master_of(queue)
        try:
            return await self._connections.ask(address, Command(code, ext), seconds)
        except NotLeaderForQueue:
            # A queue of a static topic has moved.
            await self._routes.view(queue.topic, refresh=True)
        address = self._routes.master_of(queue)
        return await self._connections.ask(address, Command(code, ext), seconds)


def _assignment(value: object) -> tuple[MessageQueue, str]:
    """One queue, and how it is read.

    @raise RemoteProtocolError: it is none.
    """
    fields = Fields(value, "an assignment")
    queue = QueueBody.from_json(fields.value("messageQueue"))
    found = MessageQueue(queue.topic, queue.broker_name, queue.queue_id)
    return found, fields.text("mode") or "PULL"
