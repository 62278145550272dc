# -*- test-case-name: tests.blocking.test_connection -*-
"""One server, and the requests under way to it.

There is no thread that reads: collecting an answer reads until it is there, and keeps
the other answers that come for later. So several requests may be in flight, which hides
the way there and back, and each is collected when its turn comes.

A write costs more than all else of a small request, so many requests can be held until
an answer is waited for that is not there: then all go out at once.

While we send, we read too: a server that is busy sending to us stops reading from us,
and two that both only send would wait for each other for ever.

Requests of the server (consumer ids changed, check of a transaction) are not for such a
client: those that want an answer are refused, the others dropped.

A connection belongs to one thread; another thread may close it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, final

from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.blocking.machine import Machine, Stream
from rocketbroker.blocking.tls_stream import connect
from rocketbroker.config.addresses import split_address
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConnectionLost, RemoteProtocolError, RequestTimeout
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import ONEWAY, Command, response_to
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import MAX_BYTES, encode

#: How long a connection may take to be made.
CONNECT_SECONDS: Final = 3.0

#: A connection that rested for so long is looked at before it is used: the server may
#: have closed it.
IDLE_SECONDS: Final = 1.0

#: How many refusals may wait to be sent; more requests of the server are dropped.
MAX_REFUSALS: Final = 100

#: No more than this is held; it is also what one write moves well.
HELD_BYTES: Final = 65536

#: Opaques are numbers of 32 bits.
_OPAQUES: Final = 0x7FFFFFFF


@final
class ServerConnection:
    """One server. The connection is made with the first request, and again when lost.

    @ivar address: C{host:port}.
    @ivar connects: how many connections have been made.
    @ivar requests: how many requests have been sent.
    @ivar dropped: how many answers came too late, and how many requests the server
        sent.
    """

    def __init__(
        self,
        machine: Machine,
        address: str,
        max_bytes: int = MAX_BYTES,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """
        @param tls: how it speaks TLS; C{None}: it does not.
        @param credentials: sign each request; C{None}: nothing does.
        @raise ConfigurationError: the address is none.
        """
        self.address = address
        self._host, self._port = split_address(address)
        self._machine = machine
        self._max_bytes = max_bytes
        self._tls = tls
        self._credentials = credentials
        self._stream: Stream | None = None
        self._incoming = Connection(max_bytes)
        self._last_opaque = 0
        self._deadlines: dict[int, float] = {}
        self._answers: dict[int, Command] = {}
        self._held: list[bytes] = []
        self._held_size = 0
        self._refusals = 0
        self._why_lost = "it was never open"
        self._used_at = 0.0
        self.connects = 0
        self.requests = 0
        self.dropped = 0

    @property
    def under_way(self) -> int:
        """How many requests wait for their answers."""
        return len(self._deadlines)

    def submit(self, command: Command, seconds: float, hold: bool = False) -> int:
        """Send a request without waiting for the answer.

        @param seconds: within which the answer has to be there.
        @param hold: it may go out later, with others: at the latest when an answer is
            waited for, here and not on another connection.
        @return: the ticket for L{collect}.
        @raise ConnectionLost: there is no connection, or it broke.
        @raise RequestTimeout: the server does not take it.
        @raise LocalProtocolError: the protocol cannot carry it.
        """
        self._last_opaque = opaque = self._last_opaque % _OPAQUES + 1
        command.opaque = opaque
        frame = self._frame(command)
        now = self._machine.monotonic()
        deadline = now + seconds
        self._open(seconds, now)
        self._deadlines[opaque] = deadline
        self.requests += 1
        self._held.append(frame)
        self._held_size += len(frame)
        if not hold or self._held_size >= HELD_BYTES:
            self._write(deadline)
        return opaque

    def _frame(self, command: Command) -> bytes:
        """
        @raise LocalProtocolError: the protocol cannot carry it.
        """
        if self._credentials is not None:
            command.ext = sign(command.ext, command.body, self._credentials)
        return encode(command, max_bytes=self._max_bytes)

    def collect(self, ticket: int) -> Command:
        """Wait for the answer to a request.

        @return: the response, whatever its code.
        @raise ConnectionLost: the connection is gone; so are all requests under way.
        @raise RequestTimeout: it took too long; the connection is closed, because a
            server that is silent may be gone without a word.
        @raise RemoteProtocolError: the server does not speak the protocol; the
            connection is closed.
        """
        while (answer := self._answers.pop(ticket, None)) is None:
            deadline = self._deadlines.get(ticket)
            if deadline is None:
                raise ConnectionLost(
                    f"the connection to {self.address} is gone: {self._why_lost}"
                )
            self._read(deadline)
        return answer

    def invoke(self, command: Command, seconds: float) -> Command:
        """L{submit} and L{collect}."""
        return self.collect(self.submit(command, seconds))

    def oneway(self, command: Command, seconds: float = CONNECT_SECONDS) -> None:
        """Send a request that wants no answer; raises as L{submit}."""
        command.flag |= ONEWAY
        self._last_opaque = command.opaque = self._last_opaque % _OPAQUES + 1
        frame = self._frame(command)
        now = self._machine.monotonic()
        self._open(seconds, now)
        self.requests += 1
        self._held.append(frame)
        self._write(now + seconds)

    def forget(self, ticket: int) -> None:
        """Drop the answer to a request, whenever it comes."""
        self._answers.pop(ticket, None)
        self._deadlines.pop(ticket, None)

    def close(self, why: str = "it was closed") -> None:
        """Close it; what is under way is lost, what has come can be collected."""
        stream = self._stream
        if stream is not None:
            stream.close()
            self._stream = None
            self._why_lost = why
            self._held.clear()
            self._held_size = 0
            self._refusals = 0
            self._deadlines.clear()

    def _open(self, seconds: float, now: float) -> None:
        stream = self._stream
        if stream is not None and now >= self._used_at + IDLE_SECONDS:
            self._look(stream)
        self._used_at = now
        if self._stream is None:
            seconds = min(seconds, CONNECT_SECONDS)
            self._stream = connect(
                self._machine, self._host, self._port, seconds, self._tls
            )
            self._incoming = Connection(self._max_bytes)
            self.connects += 1

    def _look(self, stream: Stream) -> None:
        """Read what has come while nothing was asked; the end of the stream closes it.

        Nothing of the next request has gone out, so it may go over a new connection.
        """
        if self._deadlines or self._held:
            return
        with suppress(ConnectionLost, RemoteProtocolError):  # either has closed it
            if stream.wait(False, 0.0).readable:
                self._receive(stream)

    def _write(self, deadline: float) -> None:
        """Send all that is held."""
        rest = memoryview(b"".join(self._held))
        self._held.clear()
        self._held_size = 0
        self._refusals = 0
        while rest:
            stream = self._stream
            if stream is None:
                raise ConnectionLost(
                    f"the connection to {self.address} is gone: {self._why_lost}"
                )
            try:
                rest = rest[stream.send(rest) :]
            except ConnectionLost as problem:
                raise self._lost(problem) from problem
            if rest:
                self._wait(stream, True, deadline)

    def _read(self, deadline: float) -> None:
        if self._held:
            self._write(deadline)
        stream = self._stream
        if stream is not None:
            self._wait(stream, False, deadline)

    def _wait(self, stream: Stream, to_write: bool, deadline: float) -> None:
        """Wait until there is something to do, and read what has come."""
        left = deadline - self._machine.monotonic()
        if left <= 0:
            self.close("a request took too long")
            raise RequestTimeout(f"{self.address} did not answer in time")
        if stream.wait(to_write, left).readable:
            self._receive(stream)

    def _receive(self, stream: Stream) -> None:
        """Read what has come."""
        try:
            data = stream.receive()
        except ConnectionLost as problem:
            raise self._lost(problem) from problem
        if data:
            self._take(data)
        elif data is not None:
            self.close("the server closed it")

    def _lost(self, problem: ConnectionLost) -> ConnectionLost:
        """Close what has broken; an error that says to which server it was."""
        self.close(str(problem))
        return ConnectionLost(f"the connection to {self.address} is gone: {problem}")

    def _take(self, data: bytes) -> None:
        try:
            commands = self._incoming.receive(data)
        except RemoteProtocolError as problem:
            for command in self._incoming.before_error:
                self._dispatch(command)
            self.close(str(problem))
            raise
        for command in commands:
            self._dispatch(command)

    def _dispatch(self, command: Command) -> None:
        if command.is_response:
            if self._deadlines.pop(command.opaque, None) is None:
                self.dropped += 1
            else:
                self._answers[command.opaque] = command
            return
        self.dropped += 1
        if not command.is_oneway and self._refusals < MAX_REFUSALS:
            # Held, because half of another frame may have been sent.
            refusal = response_to(
                command,
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                f"request type {command.code} not supported",
            )
            self._held.append(encode(refusal))
            self._refusals += 1
