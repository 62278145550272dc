# -*- test-case-name: tests.client.test_connection -*-
"""One server: a connection made on use, and the requests under way on it.

Any number of coroutines send over one connection; an answer finds its request by the
opaque. What is sent in one turn goes out as one write: a write costs more than all else
of a small request. Requests go out in the order in which they came, also if they had to
wait for the connection.

A connection that is lost is made again with the next request. Before one goes out over
a connection that has rested, the loop has a look at it: a program that kept the loop
busy may not have seen yet that the server closed it. What was under way fails: whether
it was carried out is not known, so whoever asked decides. A request that comes too late
to be answered in time leaves the connection alone if anything has arrived since it went
out; a server that has been silent altogether may be gone without a word, so then it is
closed, as RocketMQ's clients do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, final

import attrs

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.client.runtime import Future, Link, Runtime, Timer
from rocketbroker.client.tls_link import connect
from rocketbroker.client.waits import Signal, Tasks
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import (
    ClientClosed,
    ConnectionLost,
    RemoteProtocolError,
    RequestTimeout,
)
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import MAX_BYTES, encode

#: How long a connection may take to be made.
CONNECT_SECONDS: Final = 3.0

#: Requests that are late are looked for this often at most.
EXPIRY_SECONDS: Final = 0.05

#: A connection over which nothing came for so long is looked at before it is used, and
#: for so many turns: the end arrives in one, and is told in another.
REST_SECONDS: Final = 1.0
LOOK_TURNS: Final = 3

#: What we say that we are: docs/facts/remoting.md 4.3. Brokers only show it.
LANGUAGE: Final = "PYTHON"

#: Opaques are numbers of 32 bits.
_OPAQUES: Final = 0x7FFFFFFF


class _Pending(NamedTuple):
    """A request under way."""

    answer: Future[Command]
    sent_at: float
    deadline: float


@attrs.frozen(kw_only=True)
class Terms:
    """What all connections of a client have in common.

    @ivar max_bytes: the longest frame that is sent or taken.
    @ivar fields: what each request says beside its own.
    @ivar tls: how they speak TLS; C{None}: they do not.
    @ivar credentials: requests are signed with them; C{None}: they are not.
    """

    max_bytes: int = MAX_BYTES
    fields: Mapping[str, str] = attrs.field(factory=dict)
    tls: ClientTls | None = None
    credentials: Credentials | None = None


@final
class ServerConnection:
    """One server.

    @ivar address: C{host:port}.
    @ivar connects: how many connections have been made.
    @ivar dropped: how many answers came too late.
    """

    def __init__(
        self,
        runtime: Runtime,
        address: str,
        host: str,
        port: int,
        serve: Callable[[ServerConnection, Command], None],
        made: Callable[[ServerConnection], None],
        terms: Terms,
    ) -> None:
        """
        @param serve: takes requests of the server.
        @param made: called when a connection has been made.
        """
        self.address = address
        self._runtime = runtime
        self._host = host
        self._port = port
        self._serve = serve
        self._made = made
        self._terms = terms
        self._max_bytes = terms.max_bytes
        self._fields = terms.fields
        self._tasks = Tasks(runtime)
        self._link: Link | None = None
        self._events: _Events | None = None
        self._connecting = False
        self._connected = Signal(runtime)
        self._failure: ConnectionLost | None = None
        self._pending: dict[int, _Pending] = {}
        self._last_opaque = 0
        self._line: deque[object] = deque()
        self._unwritten: list[bytes] = []
        self._congested = False
        self._uncongested = Signal(runtime)
        self._heard_at = 0.0
        self._expiry_at = 0.0
        self._expiry: Timer | None = None
        self._closed = False
        self.connects = 0
        self.dropped = 0

    @property
    def is_up(self) -> bool:
        """Whether there is a connection now."""
        return self._link is not None

    async def request(self, command: Command, seconds: float) -> Command:
        """Send a request and wait for its answer.

        @param command: gets an opaque of its own here.
        @param seconds: how long it may take, connecting included.
        @return: the response, whatever its code.
        @raise ConnectionLost: there is no connection, or it broke.
        @raise RequestTimeout: no answer in time.
        @raise LocalProtocolError: the protocol cannot carry it.
        @raise ClientClosed: it was closed before.
        """
        deadline = self._runtime.monotonic() + seconds
        frame = self._frame(command)
        await self._ready(deadline)
        now = self._runtime.monotonic()
        answer: Future[Command] = self._runtime.future()
        opaque = command.opaque
        self._pending[opaque] = _Pending(answer, now, deadline)
        self._look_later(deadline)
        self._write(frame)
        try:
            return await answer
        finally:
            self._pending.pop(opaque, None)

    async def oneway(self, command: Command, seconds: float = CONNECT_SECONDS) -> None:
        """Send a request that wants no answer; raises as L{request}.

        It has gone to the system when this returns, not to the server.
        """
        command.flag |= ONEWAY
        frame = self._frame(command)
        await self._ready(self._runtime.monotonic() + seconds)
        self._write(frame)

    def respond(self, response: Command) -> None:
        """Answer a request of the server; nothing if the connection is gone."""
        response.language = LANGUAGE
        if self._link is not None:
            self._write(encode(response, max_bytes=self._max_bytes))

    async def close(self) -> None:
        """Close it for good: what is under way fails, what waits to be written goes."""
        self._closed = True
        self._flush()
        self._drop("it was closed")
        await self._tasks.end()

    def _frame(self, command: Command) -> bytes:
        self._last_opaque = command.opaque = self._last_opaque % _OPAQUES + 1
        command.language = LANGUAGE
        if self._fields:
            command.ext = {**(command.ext or {}), **self._fields}
        credentials = self._terms.credentials
        if credentials is not None:
            command.ext = sign(command.ext, command.body, credentials)
        return encode(command, max_bytes=self._max_bytes)

    async def _ready(self, deadline: float) -> None:
        """Wait until there is a connection that takes more, and it is our turn.

        @raise ConnectionLost: it could not be made.
        @raise RequestTimeout: it does not take any in time.
        """
        rests = self._runtime.monotonic() - self._heard_at >= REST_SECONDS
        line = self._line
        if self._link and not self._congested and not rests and not line:
            return
        place = object()
        line.append(place)
        try:
            if self._link and rests:
                for _ in range(LOOK_TURNS):
                    await self._runtime.sleep(0)
            await self._usable(deadline)
            while line[0] is not place:
                await self._runtime.sleep(0)
                await self._usable(deadline)
        finally:
            line.remove(place)

    async def _usable(self, deadline: float) -> None:
        """Wait until there is a connection that takes more; raises as L{_ready}."""
        while self._link is None or self._congested:
            if self._closed:
                raise ClientClosed(f"the connection to {self.address} was closed")
            left = deadline - self._runtime.monotonic()
            if left <= 0:
                raise RequestTimeout(f"{self.address} took no request in time")
            if self._link is not None:
                await self._uncongested.wait(left)
                continue
            if not self._connecting:
                self._connecting = True
                self._failure = None
                self._tasks.spawn(self._connect(min(left, CONNECT_SECONDS)))
            await self._connected.wait(left)
            if self._failure is not None and not self._connecting:
                raise ConnectionLost(str(self._failure))

    async def _connect(self, seconds: float) -> None:
        events = _Events(self, Connection(self._max_bytes))
        try:
            address, tls = (self._host, self._port), self._terms.tls
            link = await connect(self._runtime, address, seconds, events, tls)
            if events.why_lost is not None:
                raise ConnectionLost(events.why_lost)
        except ConnectionLost as problem:
            self._failure = problem
        else:
            self._link = link
            self._events = events
            self._congested = False
            self._heard_at = self._runtime.monotonic()
            self.connects += 1
            self._made(self)
        finally:
            self._connecting = False
            self._connected.fire()

    # Writing.

    def _write(self, frame: bytes) -> None:
        """Send in the next turn, with all others of this one."""
        if not self._unwritten:
            self._runtime.call_later(0, self._flush)
        self._unwritten.append(frame)

    def _flush(self) -> None:
        frames, self._unwritten = self._unwritten, []
        if frames and self._link is not None:
            self._link.write(frames[0] if len(frames) == 1 else b"".join(frames))

    # Called by the link's events.

    def received(self, events: _Events, commands: list[Command]) -> None:
        """Commands have arrived."""
        if events is not self._events:
            return
        self._heard_at = self._runtime.monotonic()
        for command in commands:
            if not command.is_response:
                self._serve(self, command)
                continue
            pending = self._pending.pop(command.opaque, None)
            if pending is None or pending.answer.done():
                self.dropped += 1
            else:
                pending.answer.set_result(command)

    def congested(self, events: _Events, is_congested: bool) -> None:
        """See L{LinkEvents}."""
        if events is self._events:
            self._congested = is_congested
            if not is_congested:
                self._uncongested.fire()

    def lost(self, events: _Events, why: str) -> None:
        """See L{LinkEvents}."""
        if events is self._events:
            self._drop(why)

    def _drop(self, why: str) -> None:
        """Forget the connection; what is under way fails."""
        link, self._link, self._events = self._link, None, None
        self._unwritten.clear()
        self._congested = False
        self._uncongested.fire()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        pending, self._pending = self._pending, {}
        for request in pending.values():
            if not request.answer.done():
                request.answer.set_exception(
                    ConnectionLost(f"the connection to {self.address} is gone: {why}")
                )
        if link is not None:
            link.close()

    # Time-outs.

    def _look_later(self, deadline: float) -> None:
        """See to it that late requests are looked for when this one is late."""
        if self._expiry is not None:
            if self._expiry_at <= deadline:
                return
            self._expiry.cancel()
        self._expiry_at = deadline
        left = deadline - self._runtime.monotonic()
        self._expiry = self._runtime.call_later(left, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        now = self._runtime.monotonic()
        silent = False
        for request in [*self._pending.values()]:
            if request.deadline <= now and not request.answer.done():
                silent = silent or self._heard_at <= request.sent_at
                request.answer.set_exception(
                    RequestTimeout(f"{self.address} did not answer in time")
                )
        left = [one.deadline for one in self._pending.values() if one.deadline > now]
        if left:
            self._look_later(max(min(left), now + EXPIRY_SECONDS))
        if silent:
            self._drop("a request took too long, and nothing else came")


@final
class _Events:
    """The events of one link, which may come after the connection has another one.

    @ivar why_lost: once it is: why.
    """

    def __init__(self, connection: ServerConnection, incoming: Connection) -> None:
        self._connection = connection
        self._incoming = incoming
        self.why_lost: str | None = None

    def received(self, data: bytes) -> None:
        """See L{LinkEvents}."""
        try:
            commands = self._incoming.receive(data)
        except RemoteProtocolError as problem:
            self._connection.received(self, self._incoming.before_error)
            self._connection.lost(self, str(problem))
            return
        if commands:
            self._connection.received(self, commands)

    def congested(self, is_congested: bool) -> None:
        """See L{LinkEvents}."""
        self._connection.congested(self, is_congested)

    def lost(self, why: str) -> None:
        """See L{LinkEvents}."""
        self.why_lost = why
        self._connection.lost(self, why)
