# -*- test-case-name: tests.client.test_transactions -*-
"""Transactions: a message that readers see when, and only if, other work is done.

A half message is stored first, which nobody reads. When the work is done it is
committed or rolled back; that request wants no answer, so it may be lost. Then the
broker asks any producer of the group what became of it (request 39), again and again;
so does it if the process ends in between. C{docs/facts/client.md} 12.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Final, final

from rocketbroker.client.connection import ServerConnection
from rocketbroker.client.instance import Instance
from rocketbroker.client.observers import TransactionEnd
from rocketbroker.client.producer import Producer
from rocketbroker.client.received import MessageView, view
from rocketbroker.errors import RemoteProtocolError, RocketbrokerError
from rocketbroker.records import ids, properties
from rocketbroker.records.batches import messages
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import DEFAULT_REGION, SendResult
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)

#: What became of the work that belongs to a half message: True: it is done; False: it
#: is not, and will not be; None: not known yet. A coroutine is waited for.
Check = Callable[[MessageView], object]

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Transaction:
    """A half message that waits for its end.

    As a context it is committed at the end, and rolled back if that is an error.

    @ivar result: where the half message is.
    """

    def __init__(
        self, transactions: Transactions, message: Message, result: SendResult
    ) -> None:
        self._transactions = transactions
        self._message = message
        self._ended = False
        self.result = result

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(self, kind: object, problem: object, trace: object) -> None:
        if kind is None:
            await self.commit()
        else:
            await self.rollback()

    async def commit(self) -> None:
        """Let readers have the message; nothing if it has ended before.

        If the broker does not hear of it, it asks later.
        """
        await self._end(TRANSACTION_COMMIT)

    async def rollback(self) -> None:
        """Let nobody have the message; nothing if it has ended before."""
        await self._end(TRANSACTION_ROLLBACK)

    async def _end(self, outcome: int) -> None:
        if not self._ended:
            self._ended = True
            await self._transactions.end(self._message, self.result, outcome)


@final
class Transactions:
    """The transactions of one producer group."""

    def __init__(
        self,
        instance: Instance,
        producer: Producer,
        group: str,
        checks: Mapping[str, Check],
    ) -> None:
        """
        @param producer: of that group.
        @param checks: answers the broker's questions, by topic; more may come.
        """
        self._instance = instance
        self._producer = producer
        self._group = instance.namespace.producer_group(group)
        self._checks = checks
        instance.connections.watch(RequestCode.CHECK_TRANSACTION_STATE, self._asked)

    async def join(self) -> None:
        """Let the brokers of all topics with a check know that we can be asked."""
        for topic in self._checks:
            try:
                await self._instance.routes.view(self._instance.namespace.inside(topic))
            except RocketbrokerError as problem:
                _log.warning("No broker can ask about %s: %s", topic, problem)
        await self._instance.membership.beat()

    async def begin(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        timeout: float | None = None,
    ) -> Transaction:
        """Store a half message; arguments and errors as those of L{Producer.send}.

        One that is not stored as safely as the broker is set up to is rolled back.

        @raise RocketbrokerError: it is not stored, or not safely.
        """
        message.properties.pop(properties.DELAY, None)
        message.properties[properties.TRANSACTION_PREPARED] = "true"
        message.properties[properties.PRODUCER_GROUP] = self._group
        result = await self._producer.send(message, queue, timeout)
        begun = Transaction(self, message, result)
        if result.status != ResponseCode.SUCCESS:
            await begun.rollback()
            raise RocketbrokerError(
                f"the half message is not stored safely ({result.status}), and is "
                "rolled back"
            )
        return begun

    async def end(self, message: Message, result: SendResult, outcome: int) -> None:
        """Tell the broker what becomes of a half message."""
        position = ids.parse_offset_id(result.offset_ids[0]).position
        broker = result.queue.broker
        header = EndTransactionRequestHeader(
            topic=message.topic,
            producer_group=self._group,
            tran_state_table_offset=result.queue_offset,
            commit_log_offset=position,
            commit_or_rollback=outcome,
            from_transaction_check=False,
            msg_id=result.message_id,
            transaction_id=result.transaction_id,
            bname=broker,
        )
        command = Command(RequestCode.END_TRANSACTION, header.to_ext())
        try:
            topic = self._instance.namespace.inside(message.topic)
            address = self._instance.routes.master(topic, broker)
            self._observe(address, header, topic, message.properties, result.region)
            await self._instance.connections.to(address).oneway(command)
        except RocketbrokerError as problem:
            _log.warning(
                "The broker does not hear of the end of a transaction, and will ask: "
                "%s",
                problem,
            )

    def _asked(self, connection: ServerConnection, command: Command) -> None:
        self._instance.tasks.spawn(self._answer(connection, command))

    async def _answer(self, connection: ServerConnection, command: Command) -> None:
        try:
            (stored,) = messages(command.body)
        except (Malformed, ValueError):
            raise RemoteProtocolError("a check of no half message") from None
        namespace = self._instance.namespace
        check = self._checks.get(namespace.outside(stored.topic))
        if check is None:
            return
        if stored.properties.get(properties.PRODUCER_GROUP) != self._group:
            return
        asked = CheckTransactionStateRequestHeader.from_ext(command.ext)
        queue = MessageQueue(stored.topic, asked.bname or "", stored.queue_id)
        outcome, remark = await self._outcome(check, view(stored, queue, namespace))
        header = EndTransactionRequestHeader(
            topic=asked.topic,
            producer_group=self._group,
            tran_state_table_offset=asked.tran_state_table_offset,
            commit_log_offset=asked.commit_log_offset,
            commit_or_rollback=outcome,
            from_transaction_check=True,
            msg_id=stored.message_id,
            transaction_id=asked.transaction_id,
            bname=asked.bname,
        )
        code = RequestCode.END_TRANSACTION
        text = stored.properties
        region = text.get(properties.MSG_REGION, DEFAULT_REGION)
        self._observe(connection.address, header, stored.topic, text, region)
        try:
            await connection.oneway(Command(code, header.to_ext(), remark=remark))
        except RocketbrokerError as problem:
            _log.debug("The broker will ask again: %s", problem)

    def _observe(
        self,
        address: str,
        header: EndTransactionRequestHeader,
        topic: str,
        text: Mapping[str, str],
        region: str,
    ) -> None:
        """Let observers know that a broker is told of an end."""
        observers = self._instance.observers
        if observers is None:
            return
        namespace = self._instance.namespace
        decided = {TRANSACTION_COMMIT: True, TRANSACTION_ROLLBACK: False}
        end = TransactionEnd(
            group=namespace.outside(self._group),
            topic=namespace.outside(topic),
            message_id=header.msg_id,
            tag=text.get(properties.TAGS),
            keys=text.get(properties.KEYS),
            address=address,
            transaction_id=header.transaction_id,
            committed=decided.get(header.commit_or_rollback),
            asked=bool(header.from_transaction_check),
            region=region,
        )
        observers.transaction_ended(end)

    async def _outcome(
        self, check: Check, message: MessageView
    ) -> tuple[int, str | None]:
        try:
            found = check(message)
            if inspect.isawaitable(found):
                found = await found
        except self._instance.runtime.cancelled:
            raise
        except Exception as problem:
            _log.exception("The check of a transaction failed: %r", message)
            remark = f"checkLocalTransactionState Exception: {problem}"
            return TRANSACTION_UNKNOWN, remark
        if found is None:
            return TRANSACTION_UNKNOWN, None
        return (TRANSACTION_COMMIT if found else TRANSACTION_ROLLBACK), None
