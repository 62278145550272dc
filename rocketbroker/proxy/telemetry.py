# -*- test-case-name: tests.proxy.test_telemetry -*-
"""Telemetry: the settings of clients, and the commands that they get.

A client's settings come over a stream that stays open; each is answered on it. Over the
same stream a producer is asked what became of a transaction. C{docs/facts/proxy.md} 4,
9.2 and 9.3.
"""

from __future__ import annotations

import logging
from typing import Final, final

from rocketbroker.client.connection import ServerConnection
from rocketbroker.client.instance import Instance
from rocketbroker.errors import RocketbrokerError
from rocketbroker.proxy.brokers import Brokers
from rocketbroker.proxy.clients import Client, Clients, Stream, answer_to
from rocketbroker.proxy.messages_pb2 import (
    ClientType,
    Code,
    MessageType,
    RecoverOrphanedTransactionCommand,
    Settings,
    TelemetryCommand,
)
from rocketbroker.proxy.names import group_of, topic_of
from rocketbroker.proxy.pops import filter_of
from rocketbroker.proxy.received import message_of
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal, ok
from rocketbroker.proxy.transactions import Half
from rocketbroker.records import properties
from rocketbroker.records.batches import messages
from rocketbroker.records.malformed import Malformed
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import CheckTransactionStateRequestHeader

#: Types of topics whose half messages brokers ask about.
TRANSACTIONAL: Final = ("TRANSACTION", "MIXED")

_log: Final = logging.getLogger("rocketbroker.proxy")


@final
class Telemetry:
    """All streams of clients."""

    def __init__(
        self,
        instance: Instance,
        brokers: Brokers,
        clients: Clients,
        settings: ProxySettings,
    ) -> None:
        self._instance = instance
        self._brokers = brokers
        self._clients = clients
        self._settings = settings
        self._beating: set[str] = set()
        instance.connections.watch(RequestCode.CHECK_TRANSACTION_STATE, self._asked)

    async def settings_came(
        self, client_id: str, given: Settings, stream: Stream
    ) -> None:
        """A client says what it does, and is told what it has to go by.

        @raise Refusal: it cannot be served like that.
        """
        config = None
        if given.HasField("publishing"):
            topics = [topic_of(topic) for topic in given.publishing.topics]
            await self._join(topics)
        elif given.HasField("subscription"):
            config = await self._brokers.group(self._check_consumer(given))
        else:
            raise Refusal(
                Code.BAD_REQUEST,
                "there is no publishing or subscription data in settings",
            )
        client = self._clients.heard(client_id, self._instance.runtime.monotonic())
        client.settings = given
        client.stream = stream
        answer = answer_to(given, config, self._settings)
        stream(TelemetryCommand(status=ok(), settings=answer))

    def _check_consumer(self, given: Settings) -> str:
        group = group_of(given.subscription.group)
        kinds = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER)
        if given.client_type not in kinds:
            kind = ClientType.Name(given.client_type)
            raise Refusal(Code.UNRECOGNIZED_CLIENT_TYPE, f"a consumer that is a {kind}")
        for entry in given.subscription.subscriptions:
            topic_of(entry.topic)
            filter_of(entry.expression)
        return group

    def stream_ended(self, client_id: str, stream: Stream) -> None:
        """A stream is closed; the client may come back with another one."""
        client = self._clients.get(client_id)
        if client is not None and client.stream is stream:
            client.stream = None

    async def _join(self, topics: list[str]) -> None:
        """Be a producer of topics with transactions, so that brokers can ask."""
        new = False
        for topic in topics:
            if topic in self._beating:
                continue
            try:
                kind = await self._brokers.kind(topic)
            except RocketbrokerError:
                continue
            if kind in TRANSACTIONAL:
                self._beating.add(topic)
                self._instance.membership.add_producer(topic)
                new = True
        if new:
            self._instance.tasks.spawn(self._instance.membership.beat())

    async def leave(self) -> None:
        """Be no producer of topics whose producers have all gone: brokers would ask
        here in vain what others know."""
        for topic in self._beating - self._clients.topics():
            self._beating.discard(topic)
            await self._instance.membership.leave(producer=topic)

    # Checks.

    def _asked(self, connection: ServerConnection, command: Command) -> None:
        self._instance.tasks.spawn(self._ask(connection.address, command))

    async def _ask(self, address: str, command: Command) -> None:
        """Let a producer say what became of a transaction."""
        asked = CheckTransactionStateRequestHeader.from_ext(command.ext)
        try:
            (stored,) = messages(command.body, decompress=False)
        except (Malformed, ValueError):
            _log.warning("Broker %s asks about no half message", address)
            return
        topic = stored.properties.get(properties.PRODUCER_GROUP, stored.topic)
        real = stored.properties.get(properties.REAL_TOPIC, stored.topic)
        broker = asked.bname or self._instance.routes.brokers().get(address)
        client = self._clients.producer_of(topic)
        if client is None or client.stream is None or broker is None:
            _log.info("Nobody can be asked now about a transaction of %s", topic)
            return
        runtime = self._instance.runtime
        half = Half(
            broker,
            asked.commit_log_offset,
            asked.tran_state_table_offset,
            asked.transaction_id or stored.message_id,
        )
        message = message_of(stored, real, 0, None, runtime.wall_ms())
        message.system_properties.message_type = MessageType.TRANSACTION
        self._send(
            client,
            TelemetryCommand(
                recover_orphaned_transaction_command=RecoverOrphanedTransactionCommand(
                    message=message, transaction_id=half.text()
                )
            ),
        )

    def _send(self, client: Client, command: TelemetryCommand) -> None:
        assert client.stream is not None
        client.stream(command)
