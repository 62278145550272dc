# -*- test-case-name: tests.client.test_served -*-
"""Requests of brokers to a member of a group, on behalf of operators.

  - 220: go on at other offsets; 221: where are you.
  - 307: how are you: C{mqadmin consumerStatus}, C{rocketbroker group show}.
  - 309: run your listener on this message.

C{docs/facts/client.md} 24.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar, final

from rocketbroker.client.connection import LANGUAGE, ServerConnection
from rocketbroker.client.consumer import Consumer
from rocketbroker.client.inbox import Taken
from rocketbroker.client.instance import Instance
from rocketbroker.client.locks import LOCK_SECONDS
from rocketbroker.client.pop_consumer import PopConsumer
from rocketbroker.client.process_queue import ProcessQueue
from rocketbroker.client.received import ReceivedMessage
from rocketbroker.client.runtime import Runtime
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records.batches import messages
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.queues import MessageQueue as QueueBody
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command, response_to
from rocketbroker.wire.fields import Fields
from rocketbroker.wire.headers.admin import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from rocketbroker.wire.versions import version_name

#: A member of a group, whichever way it gets its messages.
Member: TypeAlias = Consumer | PopConsumer

#: Handles a message: returns, and it is acknowledged; raises, and it comes again.
Listener = Callable[[ReceivedMessage], object]

M = TypeVar("M", Consumer, PopConsumer)

#: The queue id that stands for all queues of a broker.
ALL_QUEUES: Final = -1

MIB: Final = 1 << 20

_log: Final = logging.getLogger("rocketbroker.client")


@final
class DirectSettlement:
    """What becomes of a message on which a listener is run: nothing, but it is told.

    @ivar is_wanted_again: the listener has sent it back.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self.is_wanted_again = False

    async def acknowledge(self, taken: Taken) -> None:
        """See C{Settlement.acknowledge}."""

    async def send_back(self, taken: Taken, delay_level: int) -> None:
        """See C{Settlement.send_back}."""
        self.is_wanted_again = True

    async def reply(
        self,
        taken: Taken,
        body: bytes | str,
        tag: str | None,
        properties: Mapping[str, str] | None,
    ) -> None:
        """See C{Settlement.reply}."""
        await self._member.reply(taken, body, tag, properties)


@final
class ServedRequests:
    """What one member answers."""

    def __init__(
        self, instance: Instance, member: Member, listener: Listener | None
    ) -> None:
        """
        @param listener: what its messages are given to, unless they are iterated over.
        """
        self._instance = instance
        self._member = member
        self._listener = listener
        for code, taker in (
            (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset),
            (RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, self._status),
            (RequestCode.GET_CONSUMER_RUNNING_INFO, self._running_info),
            (RequestCode.CONSUME_MESSAGE_DIRECTLY, self._consume),
        ):
            instance.connections.watch(code, taker)

    def _reset(self, connection: ServerConnection, command: Command) -> None:
        header = ResetOffsetRequestHeader.from_ext(command.ext)
        if header.group == self._member.settings.group:
            offsets = offsets_of(command.body)
            self._instance.tasks.spawn(self._member.reset(offsets))

    def _status(self, connection: ServerConnection, command: Command) -> None:
        header = GetConsumerStatusRequestHeader.from_ext(command.ext)
        table = {
            QueueBody(*queue): offset
            for queue, offset in self._member.offsets().items()
            if queue.topic == header.topic
            and header.group == self._member.settings.group
        }
        body = fastjson.dumps({"messageQueueTable": table})
        connection.respond(response_to(command, body=body))

    def _is_stranger(
        self, connection: ServerConnection, command: Command, group: str
    ) -> bool:
        """Whether another group is meant, which is said then."""
        if group == self._member.settings.group:
            return False
        words = f"The Consumer Group <{group}> not exist in this consumer"
        connection.respond(response_to(command, 1, words))
        return True

    def _running_info(self, connection: ServerConnection, command: Command) -> None:
        header = GetConsumerRunningInfoRequestHeader.from_ext(command.ext)
        if self._is_stranger(connection, command, header.consumer_group):
            return
        member = self._member
        instance = self._instance
        data = member.heartbeat_data()
        servers = instance.settings.name_servers
        info = {
            "mqPopTable": pop_table(instance.runtime, member),
            "mqTable": {
                QueueBody(*one.queue): queue_info(instance.runtime, one)
                for one in member.queues.values()
            },
            "properties": {
                "PROP_CLIENT_VERSION": version_name(VERSION).upper(),
                "PROP_CONSUMEORDERLY": str(member.settings.ordered).lower(),
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

    def _consume(self, connection: ServerConnection, command: Command) -> None:
        header = ConsumeMessageDirectlyResultRequestHeader.from_ext(command.ext)
        if self._is_stranger(connection, command, header.consumer_group):
            return
        if self._listener is None:
            words = (
                f"the consumer of {header.consumer_group} iterates over its messages, "
                "and has no listener that could be run on one"
            )
            connection.respond(response_to(command, 1, words))
            return
        try:
            message = next(messages(command.body))
        except (Malformed, StopIteration):
            words = "the request brings no message that can be read"
            connection.respond(response_to(command, 1, words))
            return
        queue = MessageQueue(message.topic, header.broker_name or "", message.queue_id)
        run = self._run(self._listener, queue, message, connection, command)
        self._instance.tasks.spawn(run)

    async def _run(
        self,
        listener: Listener,
        queue: MessageQueue,
        message: StoredMessage,
        connection: ServerConnection,
        command: Command,
    ) -> None:
        """Run the listener on a message, and tell what came of it."""
        runtime = self._instance.runtime
        settings = self._member.settings
        settlement = DirectSettlement(self._member)
        taken = Taken(ProcessQueue(queue, message.queue_offset, settings), message)
        begin = runtime.monotonic()
        result: dict[str, object] = {"autoCommit": True, "order": settings.ordered}
        try:
            namespace = self._member.namespace
            outcome = listener(ReceivedMessage(settlement, taken, namespace))
            if inspect.isawaitable(outcome):
                await outcome
        except runtime.cancelled:
            raise
        except Exception as problem:
            _log.exception("A listener failed with %r, as an operator asked", message)
            result["consumeResult"] = "CR_THROW_EXCEPTION"
            result["remark"] = f"{type(problem).__name__}: {problem}"
        else:
            again = settlement.is_wanted_again
            result["consumeResult"] = "CR_LATER" if again else "CR_SUCCESS"
        result["spentTimeMills"] = round((runtime.monotonic() - begin) * 1000)
        connection.respond(response_to(command, body=fastjson.dumps(result)))


def served(instance: Instance, member: M, listener: Listener | None = None) -> M:
    """The member, which answers what brokers ask it from now on."""
    ServedRequests(instance, member, listener)
    return member


def wall_ms_of(runtime: Runtime, at: float) -> int:
    """A time of the monotonic clock in ms since 1970; 0: never."""
    if at <= 0:
        return 0
    return runtime.wall_ms() - round((runtime.monotonic() - at) * 1000)


def pop_table(runtime: Runtime, member: Member) -> dict[QueueBody, dict[str, object]]:
    """What operators see of a member that pops: the brokers that it asks."""
    parts = member.popping if isinstance(member, Consumer) else [member]
    return {
        QueueBody(part.topic, broker, ALL_QUEUES): {
            "droped": False,
            "lastPopTimestamp": wall_ms_of(runtime, popped_at),
            "waitAckCount": count,
        }
        for part in parts
        for broker, (popped_at, count) in part.pops().items()
    }


def queue_info(runtime: Runtime, queue: ProcessQueue) -> dict[str, object]:
    """What operators see of a queue."""
    held = queue.held()
    offsets = [one.queue_offset for one in held]
    locked_at = queue.locked_until - LOCK_SECONDS
    return {
        "cachedMsgCount": len(held),
        "cachedMsgMaxOffset": max(offsets, default=0),
        "cachedMsgMinOffset": min(offsets, default=0),
        "cachedMsgSizeInMiB": sum(len(one.body) for one in held) // MIB,
        "commitOffset": queue.commit_offset,
        "droped": queue.dropped,
        "lastConsumeTimestamp": wall_ms_of(runtime, queue.taken_at),
        "lastLockTimestamp": wall_ms_of(runtime, locked_at),
        "lastPullTimestamp": wall_ms_of(runtime, queue.pulled_at),
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
