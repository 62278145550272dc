# -*- test-case-name: tests.client.test_queries -*-
"""Messages that are found by a key or an id, whoever has read them.

All brokers of the topic are asked, for a key and the id that a send returned; for an
offset id the one that it names. C{docs/facts/client.md} 6, C{docs/facts/admin.md} 5.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, final

from rocketbroker.client.instance import Instance
from rocketbroker.client.received import MessageView, view
from rocketbroker.client.waits import together
from rocketbroker.errors import QueryNotFound, RocketbrokerError, SystemFailure
from rocketbroker.records import hosts, ids
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.key_search import (
    FOREVER_MS,
    KeySearch,
    by_store_time,
    index_request,
    told,
    with_unique_key,
)
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import ViewMessageRequestHeader

#: How long a broker may look: it may have to read what is not in memory.
QUERY_SECONDS: Final = 18.0
VIEW_SECONDS: Final = 3.0

#: Asks the broker at an address.
Ask: TypeAlias = Callable[[str], Coroutine[Any, Any, list[StoredMessage]]]


@final
class Queries:
    """The questions of one client for messages."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def by_key(
        self, topic: str, key: str, most: int, begin_ms: int, end_ms: int
    ) -> list[MessageView]:
        """The messages with a key, by store time; the newest if there are more."""
        topic = self._instance.namespace.inside(topic)

        async def ask(address: str) -> list[StoredMessage]:
            search = KeySearch(topic, key, most, begin_ms, end_ms)
            while not search.is_over:
                search.take(await self._told(address, search.request()))
            return search.messages

        found, problem = await self._ask_all(topic, ask)
        if problem is not None:
            raise problem
        return found[-most:]

    async def by_id(self, topic: str, message_id: str) -> list[MessageView]:
        """The message with an id; more if it was stored more than once."""
        topic = self._instance.namespace.inside(topic)
        found = await self._viewed(topic, message_id)
        if found:
            return found
        request = index_request(topic, message_id, 0, FOREVER_MS, True)

        async def ask(address: str) -> list[StoredMessage]:
            command = Command(request.code, request.ext)
            page = await self._told(address, command)
            return with_unique_key(page, topic, message_id)

        found, problem = await self._ask_all(topic, ask)
        if problem is not None and not found:
            raise problem
        return found

    async def _viewed(self, topic: str, message_id: str) -> list[MessageView]:
        """The message at an offset id, if a broker of a known route has it."""
        routes = self._instance.routes
        await routes.view(topic)
        try:
            place = ids.parse_offset_id(message_id)
            address = hosts.text(place.host)
        except Malformed:
            return []
        broker = routes.brokers().get(address)
        if broker is None:  # strangers are not asked
            return []
        header = ViewMessageRequestHeader(topic=topic, offset=place.position)
        command = Command(RequestCode.VIEW_MESSAGE_BY_ID, header.to_ext())
        ask = self._instance.connections.ask
        try:
            found = told(await ask(address, command, VIEW_SECONDS))
        except SystemFailure:
            return []
        return [self._view(broker, one) for one in found]

    async def _told(self, address: str, command: Command) -> list[StoredMessage]:
        ask = self._instance.connections.ask
        try:
            return told(await ask(address, command, QUERY_SECONDS))
        except QueryNotFound:
            return []

    async def _ask_all(
        self, topic: str, ask: Ask
    ) -> tuple[list[MessageView], RocketbrokerError | None]:
        """What all brokers of a topic tell, by store time; and a failure of one."""
        found: list[tuple[str, StoredMessage]] = []
        problems: list[RocketbrokerError] = []

        async def ask_one(broker: str, address: str) -> None:
            try:
                found.extend((broker, one) for one in await ask(address))
            except RocketbrokerError as problem:
                problems.append(problem)

        route = await self._instance.routes.view(topic)
        asks = [ask_one(*broker) for broker in sorted(route.any.items())]
        await together(self._instance.runtime, asks)
        found.sort(key=lambda one: by_store_time(one[1]))
        views = [self._view(*one) for one in found]
        return views, problems[0] if problems else None

    def _view(self, broker: str, stored: StoredMessage) -> MessageView:
        """A stored message, as it was read at a broker."""
        queue = MessageQueue(stored.topic, broker, stored.queue_id)
        return view(stored, queue, self._instance.namespace)
