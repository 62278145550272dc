# -*- test-case-name: tests.broker.statictopics.test_mapped_requests -*-
"""Requests about logical queues, between a port and the responders behind it.

While there is a static topic at all, each responder of such requests has one before it
that looks for the topic's name. So a broker without any does nothing more, and other
topics of a broker with some cost a search in the header and a look-up.

C{lo=false} says that a queue is a physical one: so brokers ask one another.

Where RocketMQ does otherwise, on purpose here: a pull's commit goes to the queue that
has that offset (RocketMQ stores logical offsets as physical ones); 29 finds a time in
whichever item has it; 30 and 32 ask about the queue of the item that they look at; a
send to any queue takes one that is led here; another broker's refusal is handed on.

C{docs/facts/broker.md} 23.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.statictopics.mapped_pulls import MappedPull
from rocketbroker.broker.statictopics.other_brokers import OtherBrokers
from rocketbroker.errors import BrokerError, NotLeaderForQueue, QueryNotFound
from rocketbroker.remoting.interfaces import (
    Answer,
    HotResponder,
    IConnection,
    Responder,
)
from rocketbroker.remoting.table import HotEntry, ResponderTable
from rocketbroker.routing.static_topics import LAST, Items, decided, find
from rocketbroker.wire.bodies.mappings import (
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fields import integer_of

#: Where the topic of a request stands that comes the hot way. Names have no character
#: that JSON would write otherwise; and within a text, quotes have a backslash.
_HOT_TOPICS: Final = {
    RequestCode.PULL_MESSAGE: re.compile(rb'"topic":"([^"\\]*)"'),
    RequestCode.SEND_MESSAGE: re.compile(rb'"topic":"([^"\\]*)"'),
    RequestCode.SEND_MESSAGE_V2: re.compile(rb'"b":"([^"\\]*)"'),
    RequestCode.SEND_BATCH_MESSAGE: re.compile(rb'"b":"([^"\\]*)"'),
}

#: The codes whose fields have one letter.
_SHORT_NAMES: Final = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)


class _Call:
    """One request about a logical queue.

    @ivar items: of the queue.
    """

    __slots__ = ("connection", "detail", "ext", "items", "number", "request")

    def __init__(
        self,
        connection: IConnection,
        request: Command,
        detail: TopicQueueMappingDetail,
        number: int,
        items: Items,
    ) -> None:
        self.connection = connection
        self.request = request
        self.ext = request.ext or {}
        self.detail = detail
        self.number = number
        self.items = items

    def with_fields(self, ext: dict[str, str]) -> Command:
        """The request with other fields."""
        request = self.request
        return Command(
            request.code,
            ext,
            request.body,
            opaque=request.opaque,
            flag=request.flag,
            version=request.version,
            language=request.language,
            remark=request.remark,
        )


Serve: TypeAlias = Callable[[_Call], Answer]


@final
class MappedRequests:
    """The translation of requests for logical queues.

    @ivar mapped: how many requests were about them.
    """

    def __init__(
        self, mappings: QueueMappings, others: OtherBrokers, broker_name: str
    ) -> None:
        self.mapped = 0
        self._mappings = mappings
        self._others = others
        self._broker_name = broker_name
        self._tables: list[tuple[ResponderTable, int, Responder]] = []
        self._hot: list[tuple[HotEntry, HotResponder, HotResponder]] = []
        #: The names of static topics, as they stand in headers.
        self._names: frozenset[bytes] = frozenset()
        #: Those that know physical queues, by code.
        self._inner: dict[int, Responder] = {}
        send, whole = self._send, partial(partial, self._in_steps)
        self._serve: dict[int, Serve] = {
            RequestCode.SEND_MESSAGE: send,
            RequestCode.SEND_MESSAGE_V2: send,
            RequestCode.SEND_BATCH_MESSAGE: send,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
            RequestCode.QUERY_CONSUMER_OFFSET: whole(self._committed),
            RequestCode.UPDATE_CONSUMER_OFFSET: whole(self._commit),
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: whole(self._by_time),
            RequestCode.GET_MAX_OFFSET: whole(self._end),
            RequestCode.GET_MIN_OFFSET: whole(self._begin),
            RequestCode.GET_EARLIEST_MSG_STORETIME: whole(self._earliest),
        }

    def stand_before(self, table: ResponderTable) -> None:
        """Look at requests before the responders of a port, all of which are there."""
        for code, serve in self._serve.items():
            inner = table.responders.get(code)
            if inner is not None:
                self._inner[code] = inner
                self._tables.append((table, code, partial(self._respond, serve, inner)))
        for entry in table.hot.values():
            pattern = _HOT_TOPICS.get(RequestCode(entry.code))
            if pattern is not None:
                inner_hot = entry.responder
                screened = partial(self._screen, pattern, inner_hot)
                self._hot.append((entry, inner_hot, screened))
        self._mappings.watch(self._changed)

    def _changed(self) -> None:
        """Static topics came or went."""
        self._names = frozenset(name.encode() for name in self._mappings.details)
        for table, code, respond in self._tables:
            table.register(code, respond if self._names else self._inner[code])
        for entry, inner, screened in self._hot:
            entry.responder = screened if self._names else inner

    def _screen(
        self,
        pattern: re.Pattern[bytes],
        inner: HotResponder,
        connection: IConnection,
        header: bytes,
        body: bytes,
    ) -> bool:
        """The hot way of other topics; static ones go the general way."""
        found = pattern.search(header)
        if found is None or found[1] in self._names:
            return False
        return inner(connection, header, body)

    def _respond(
        self, serve: Serve, inner: Responder, connection: IConnection, request: Command
    ) -> Answer:
        """Serve a request if it is about a logical queue.

        @raise NotLeaderForQueue: this broker does not lead it.
        """
        ext = request.ext
        if not ext:
            return inner(connection, request)
        short = request.code in _SHORT_NAMES
        detail = self._mappings.details.get(ext.get("b" if short else "topic", ""))
        if detail is None or ext.get("lo", "").lower() == "false":
            return inner(connection, request)
        self.mapped += 1
        number = integer_of(ext.get("e" if short else "queueId"))
        if number is None:
            number = -1
        if number < 0 and serve == self._send:
            led = filter(detail.leads, detail.hosted_queues)
            number = next(led, number)
        items = detail.hosted_queues.get(number, ())
        if not detail.leads(number):
            raise NotLeaderForQueue(_not_leader(request.code, detail, number))
        return serve(_Call(connection, request, detail, number, items))

    def _here(
        self, call: _Call, ext: dict[str, str], code: int | None = None
    ) -> Answer:
        """What is answered here when other fields are sent.

        @param code: of another request.
        @raise BrokerError: it is refused.
        """
        respond = self._inner[code or call.request.code]
        return respond(call.connection, call.with_fields(ext))

    # Sends.

    def _send(self, call: _Call) -> Answer:
        item = call.items[-1]
        key = "e" if call.request.code in _SHORT_NAMES else "queueId"
        answer = self._here(call, {**call.ext, key: str(item.queue_id)})
        if isinstance(answer, Deferred):
            return answer.addCallback(_sent, call.number, item)
        return _sent(answer, call.number, item)

    # Pulls.

    def _pull(self, call: _Call) -> Answer:
        pull = MappedPull(call.items, call.ext, self._broker_name)
        if pull.item.bname == self._broker_name:
            answer = self._here(call, pull.ext)
            if isinstance(answer, Deferred):
                return answer.addCallback(_pulled, pull)
            return _pulled(answer, pull)
        code = RequestCode.PULL_MESSAGE
        asked = self._others.ask(call.detail.topic, pull.item.bname, code, pull.ext)
        return Deferred.fromCoroutine(asked).addCallback(_pulled, pull)

    # Offsets: each may ask several brokers.

    def _in_steps(
        self, serve: Callable[[_Call], Coroutine[Any, Any, Command | None]], call: _Call
    ) -> Answer:
        return Deferred.fromCoroutine(serve(call))

    async def _ask(
        self,
        call: _Call,
        item: LogicQueueMappingItem,
        code: int | None = None,
        **changes: object,
    ) -> Command:
        """Ask about the physical queue of an item, here or at its broker.

        @param code: of another request.
        @return: the answer, whatever its code.
        @raise SystemFailure: the broker does not answer.
        """
        ext = {**call.ext, "queueId": str(item.queue_id)}
        ext.update({name: str(value) for name, value in changes.items()})
        if item.bname != self._broker_name:
            topic, asked = call.detail.topic, code or call.request.code
            return await self._others.ask(topic, item.bname, asked, ext)
        try:
            answer = self._here(call, ext, code)
            found = await answer if isinstance(answer, Deferred) else answer
        except BrokerError as error:
            return Command(error.code, remark=error.remark)
        assert found is not None
        return found

    async def _committed(self, call: _Call) -> Command | None:
        """Request 14: the last item in which the group has an offset."""
        items = call.items
        if len(items) == 1 and items[0].logic_offset == 0:
            return await self._ask(call, items[0])
        for item in reversed(decided(items)):
            answer = await self._ask(call, item, setZeroIfNotFound="false")
            if answer.code != ResponseCode.QUERY_NOT_FOUND:
                return _offset(answer, item.logical)
        raise QueryNotFound("Not found, maybe this group consumer boot first")

    async def _commit(self, call: _Call) -> Command:
        """Request 15: to the item that has the offset."""
        offset = integer_of(call.ext.get("commitOffset"))
        if offset is None:
            return await self._ask(call, call.items[-1])
        item = find(call.items, offset)
        return await self._ask(call, item, commitOffset=item.physical(offset))

    async def _end(self, call: _Call) -> Command:
        """Request 30."""
        item = find(call.items, LAST)
        return _offset(await self._ask(call, item), item.logical)

    async def _begin(self, call: _Call) -> Command:
        """Request 31."""
        item = find(call.items, 0)
        return _offset(await self._ask(call, item), item.logical_within)

    async def _earliest(self, call: _Call) -> Command:
        """Request 32."""
        return await self._ask(call, find(call.items, 0))

    async def _by_time(self, call: _Call) -> Command:
        """Request 29: the first offset stored at or after a time, in whichever item;
        with UPPER the last one stored at or before it.

        If a time is between two items, UPPER may give the last offset of the former for
        the first one of the latter: a reader that begins there loses nothing.
        """
        upper = call.ext.get("boundaryType", "").upper() == "UPPER"
        kept: Command | None = None
        for item in decided(call.items):
            answer = await self._ask(call, item)
            if answer.code:
                return answer
            found = _offset(answer, item.logical)
            if len(call.items) == 1:
                return found
            at = integer_of((answer.ext or {}).get("offset")) or 0
            least, most = await self._bounds(call, item)
            if kept is None or not upper or least < at:
                kept = found
            if at < most - upper:
                break
        return kept or await self._begin(call)

    async def _bounds(
        self, call: _Call, item: LogicQueueMappingItem
    ) -> tuple[int, int]:
        """Where an item's queue begins and ends."""
        found = []
        for code in (RequestCode.GET_MIN_OFFSET, RequestCode.GET_MAX_OFFSET):
            answer = await self._ask(call, item, code)
            found.append(integer_of((answer.ext or {}).get("offset")) or 0)
        return found[0], found[1]


def _sent(
    answer: Command | None, number: int, item: LogicQueueMappingItem
) -> Command | None:
    """The answer to a send, with the logical queue and offset."""
    ext = {} if answer is None else answer.ext or {}
    offset = integer_of(ext.get("queueOffset"))
    if offset is not None:
        ext["queueId"] = str(number)
        ext["queueOffset"] = str(item.logical_within(offset))
    return answer


def _pulled(answer: Command | None, pull: MappedPull) -> Command | None:
    return None if answer is None else pull.answer(answer)


def _offset(answer: Command, logical: Callable[[int], int]) -> Command:
    """An answer with a physical offset, with the logical one in its place."""
    ext = answer.ext or {}
    offset = integer_of(ext.get("offset"))
    if answer.code or offset is None:
        return Command(answer.code, ext, remark=answer.remark)
    return Command(0, {**ext, "offset": str(logical(offset))})


def _not_leader(code: int, detail: TopicQueueMappingDetail, number: int) -> str:
    """RocketMQ's words for a queue that this broker does not lead."""
    queue, name = f"{detail.topic}-{number}", detail.bname
    if code == RequestCode.GET_MIN_OFFSET:
        return f"{queue} is not leader in broker {name}, request code {code}"
    pulls = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
    what = "cannot find mapping item" if code in pulls else "does not exit"
    return f"{queue} {what} in request process of current broker {name}"
