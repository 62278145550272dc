# -*- test-case-name: tests.client.test_served -*-
"""Requests of brokers to a member of a group, on behalf of operators.

  - 220: go on at other offsets; 221: where are you.
  - 307: how are you: C{mqadmin consumerStatus}, C{rocketbroker group show}.

C{docs/facts/client.md} 24.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.client.connection import LANGUAGE, ServerConnection
from rocketbroker.client.consumer import Consumer
from rocketbroker.client.instance import Instance
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.queues import MessageQueue as QueueBody
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command, response_to
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.admin import (
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from rocketbroker.wire.versions import version_name

MIB: Final = 1 << 20


@final
class ServedRequests:
    """What one consumer answers."""

    def __init__(self, instance: Instance, consumer: Consumer) -> None:
        self._instance = instance
        self._consumer = consumer
        for code, taker in (
            (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset),
            (RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self._status),
            (RequestCode.GET_CONSUMER_RUNNING_INFO, self._running_info),
        ):
            instance.connections.watch(code, taker)

    def _reset(self, connection: ServerConnection, command: Command) -> None:
        header = ResetOffsetRequestHeader.from_ext(command.ext)
        if header.group == self._consumer.settings.group:
            self._instance.tasks.spawn(self._seek_all(offsets_of(command.body)))

    async def _seek_all(self, offsets: dict[MessageQueue, int]) -> None:
        """Go on there; what was given out before counts for nothing."""
        for queue, offset in offsets.items():
            mine = self._consumer.queues.get(queue)
            if mine is not None:
                await self._consumer.seek(mine, offset)
        await self._consumer.commit()

    def _status(self, connection: ServerConnection, command: Command) -> None:
        header = GetConsumerStatusRequestHeader.from_ext(command.ext)
        table = {
            QueueBody(*queue): offset
            for queue, offset in self._consumer.offsets().items()
            if queue.topic == header.topic
            and header.group == self._consumer.settings.group
        }
        body = fastjson.dumps({"messageQueueTable": table})
        connection.respond(response_to(command, body=body))

    def _running_info(self, connection: ServerConnection, command: Command) -> None:
        header = GetConsumerRunningInfoRequestHeader.from_ext(command.ext)
        group = header.consumer_group
        if group != self._consumer.settings.group:
            words = f"The Consumer Group <{group}> not exist in this consumer"
            connection.respond(response_to(command, 1, words))
            return
        consumer = self._consumer
        instance = self._instance
        data = consumer.heartbeat_data()
        servers = instance.settings.name_servers
        info = {
            "mqPopTable": {},
            "mqTable": {
                QueueBody(*one.queue): queue_info(one)
                for one in consumer.queues.values()
            },
            "properties": {
                "PROP_CLIENT_VERSION": version_name(VERSION).upper(),
                "PROP_CONSUMEORDERLY": str(consumer.settings.ordered).lower(),
                "PROP_CONSUMER_START_TIMESTAMP": str(instance.started_ms),
                "PROP_CONSUME_TYPE": data.consume_type,
                "PROP_NAMESERVER_ADDR": "".join(f"{one};" for one in servers),
                "PROP_THREADPOOL_CORE_SIZE": "1",
                "language": LANGUAGE,
            },
            "statusTable": {},
            "subscriptionSet": data.subscription_data_set,
            "userConsumerInfo": {},
        }
        connection.respond(response_to(command, body=fastjson.dumps(info)))


def served(instance: Instance, consumer: Consumer) -> Consumer:
    """The consumer, which answers what brokers ask it from now on."""
    ServedRequests(instance, consumer)
    return consumer


def queue_info(queue: ProcessQueue) -> dict[str, object]:
    """What operators see of a queue; times are not kept."""
    messages = queue.held()
    offsets = [one.queue_offset for one in messages]
    return {
        "cachedMsgCount": len(messages),
        "cachedMsgMaxOffset": max(offsets, default=0),
        "cachedMsgMinOffset": min(offsets, default=0),
        "cachedMsgSizeInMiB": sum(len(one.body) for one in messages) // MIB,
        "commitOffset": queue.commit_offset,
        "droped": queue.dropped,
        "lastConsumeTimestamp": 0,
        "lastLockTimestamp": 0,
        "lastPullTimestamp": 0,
        "locked": queue.locked_until > 0,
        "transactionMsgCount": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgMinOffset": 0,
        "tryUnlockTimes": 0,
    }


def offsets_of(body: bytes) -> dict[MessageQueue, int]:
    """The offsets in a request to go on at others.

    @raise RemoteProtocolError: they are none.
    """
    fields = Fields(fastjson.loads(body), "offsets")
    found: dict[MessageQueue, int] = {}
    for key, offset in fields.members("offsetTable").items():
        if not isinstance(offset, int):
            raise RemoteProtocolError(f"an offset that is none: {offset!r}")
        queue = QueueBody.from_json(key)
        found[MessageQueue(queue.topic, queue.broker_name, queue.queue_id)] = offset
    return found
