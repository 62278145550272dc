# -*- test-case-name: tests.remoting.test_contract -*-
"""A connection as a channel of commands, however its bytes travel.

Each request goes to its responder, and the answer goes back as a response; each
response goes to the request of ours that waits for it. C{docs/facts/remoting.md} 6:

  - a code without a responder: REQUEST_CODE_NOT_SUPPORTED, the code in the remark;
  - a BrokerError: its code and remark; any other failure: SYSTEM_ERROR, with the class
    of the exception and its words, and the traceback only in our log (and not even
    there when it is an error that we raise on purpose, such as for a body that makes
    no sense: peers could fill the log with them);
  - the opaque is the request's, the response flag is set;
  - to a request with the oneway flag nothing is answered, whatever happened.

This is the general way: one L{Command} per request, and perhaps a Deferred. Hot request
codes, which a broker answers ten thousand times a second, do not come here; see
L{rocketbroker.remoting.hub}.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import classImplements

from rocketbroker.codec.mypyc_types import mypyc_attr
from rocketbroker.config.addresses import is_among
from rocketbroker.errors import (
    BrokerError,
    ConnectionLost,
    LocalProtocolError,
    RemoteProtocolError,
    RocketbrokerError,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.remoting.addresses import PORT_BYTES, address_text, host_bytes
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.response_table import TooManyRequests, WaitingRequest
from rocketbroker.remoting.table import LARGE_ANSWERS, NOT_SERVED
from rocketbroker.wire.command import ONEWAY, RESPONSE, Command, response_to
from rocketbroker.wire.frames import decode, encode
from rocketbroker.wire.other_protocols import ForeignProtocol
from rocketbroker.wire.proxy_header import proxy_header

#: Remarks are cut here, so that no exception's words make an answer of megabytes.
MAX_REMARK: Final = 1024

#: Why a header of the PROXY protocol is refused.
NO_PROXY: Final = (
    "a header of the PROXY protocol, from an address that is not in "
    "rocketbrokerProxyProtocolFrom"
)

#: How RocketMQ begins the remark when a queue of requests is full.
OVERLOAD: Final = "[OVERLOAD]system busy, start flow control for a while"


def error_response(request: Command, error: BaseException) -> Command:
    """The response for an error: its words, without a traceback."""
    if isinstance(error, BrokerError):
        return response_to(request, error.code, error.remark[:MAX_REMARK])
    words = f"{type(error).__name__}: {error}"
    return response_to(request, SystemFailure.code, words[:MAX_REMARK])


@mypyc_attr(allow_interpreted_subclasses=True)
class CommandChannel(ABC):
    """The half of a connection that knows commands; the other half moves bytes.

    @ivar group: all connections of its server or client, and what they share.
    @ivar is_new: whether a header of a proxy may stand at the beginning of its bytes.
    @ivar is_watched: whether its group closes it when nothing moves for too long.
    @ivar last_code: of the last request, -1 before the first and for a response.
    @ivar under_way: general requests whose Deferred has not fired yet.
    @ivar last_moved: when a byte went in or out, by the group's clock.
    """

    __slots__ = (
        "_close_callbacks",
        "closed",
        "congested",
        "group",
        "is_new",
        "is_watched",
        "last_code",
        "last_moved",
        "peer",
        "peer_host",
        "under_way",
        "user",
    )

    _log: ClassVar[Logger] = Logger()

    def __init__(self, group: ConnectionGroup, host: str, port: int) -> None:
        """
        @param host: the address of the other side.
        @param port: the port of the other side.
        """
        self.group = group
        self.peer: str = address_text(host, port)
        self.peer_host: bytes = host_bytes(host, port)
        self.user: str = ""
        self.is_new: bool = True
        self.is_watched: bool = True
        self.closed: bool = False
        self.congested: bool = False
        self.last_code = NOT_SERVED
        self.under_way = 0
        self.last_moved = group.clock.seconds()
        self._close_callbacks: list[Callable[[IConnection], None]] = []

    @property
    def crowded(self) -> bool:
        """Whether so many answers are unread that no large one is to be made."""
        return False

    @property
    def who(self) -> str:
        """User and peer, for lines about what administrators do."""
        return f"{self.user} at {self.peer}" if self.user else self.peer

    # Provided by the half that moves bytes.

    @abstractmethod
    def local_host(self) -> str:
        """See L{IConnection.local_host}."""

    @abstractmethod
    def send(self, frames: bytes, count: int = 1) -> None:
        """Send whole frames, at the end of this turn; nothing once it is closed."""

    def send_now(self, frames: bytes, count: int = 1) -> None:
        """See L{IConnection.send_now}."""
        self.send(frames, count)

    def send_parts(
        self, head: bytes, body: Sequence[bytes | memoryview], size: int
    ) -> None:
        """See L{IConnection.send_parts}."""
        self.send(b"".join([head, *body]))

    @abstractmethod
    def close(self) -> None:
        """Close it; bytes sent before still go out."""

    @abstractmethod
    def abort(self) -> None:
        """Close it at once; unsent bytes are lost."""

    def after_proxy(self, data: bytes) -> bytes | None:
        """The first bytes of the connection, behind a proxy's header if there is one.

        The header's address becomes C{peer}, for logs and tables of clients. In
        messages stays the proxy's, as in RocketMQ. The log is to be believed: so only
        those may send a header whom the operator trusts. In a worker the owner looks.

        @return: C{None} while more bytes are needed to tell.
        @raise RemoteProtocolError: it begins as such a header and is none, or the peer
            may not send one.
        """
        found = proxy_header(data)
        if found is None or found.size:
            group, address = self.group, self.peer_host[:-PORT_BYTES]
            if group.relay is None and not is_among(address, group.limits.proxies):
                raise ForeignProtocol(NO_PROXY)
        if found is None:
            return None
        self.is_new = False
        if found.host:
            self.peer = address_text(found.host, found.port)
        return data[found.size :]

    # Errors.

    def break_off(self, error: RemoteProtocolError) -> None:
        """The peer broke the protocol: count it, log it, close.

        A client of another protocol connects again and again: it gets one line.
        """
        self.group.counts.broken += 1
        if not isinstance(error, ForeignProtocol):
            self._log.info("Closed {peer}: {error}.", peer=self.peer, error=error)
        elif self.group.is_new_foreigner(self.peer_host[:-PORT_BYTES], str(error)):
            self._log.warn("Closed {peer}: {error}.", peer=self.peer, error=error)
        self.close()

    def idle(self) -> None:
        """Nothing moved for too long: close without waiting for the peer."""
        self._log.debug("Closed {peer}: idle.", peer=self.peer)
        self.abort()

    # Requests of ours.

    def request(self, command: Command, timeout: float) -> Deferred[Command]:
        """Send a request over this connection and wait for the answer."""
        if self.closed:
            return fail(ConnectionLost(f"the connection to {self.peer} is closed"))
        try:
            waiting = self.group.responses.open(
                self, timeout, f"request {int(command.code)} to {self.peer}"
            )
        except TooManyRequests as error:
            return fail(error)
        self.request_waiting(command, waiting)
        return waiting.answer

    def request_waiting(self, command: Command, waiting: WaitingRequest) -> None:
        """Send a request whose answer is waited for already."""
        command.opaque = waiting.opaque
        command.flag = 0
        waiting.connection = self
        try:
            frame = encode(command, max_bytes=self.group.limits.frame_bytes)
        except LocalProtocolError as error:
            self.group.responses.fail(waiting, error)
            return
        self.send(frame)

    def oneway(self, command: Command) -> None:
        """Send a request that wants no answer."""
        command.opaque = self.group.responses.next_opaque()
        command.flag = ONEWAY
        self.send(encode(command, max_bytes=self.group.limits.frame_bytes))

    # The end.

    def watch_close(self, callback: Callable[[IConnection], None]) -> None:
        """Call C{callback} once, when it is closed; at once if it is already."""
        if self.closed:
            callback(self)
        else:
            self._close_callbacks.append(callback)

    def was_closed(self) -> None:
        """Call all callbacks of the close; C{closed} is set already."""
        callbacks, self._close_callbacks = self._close_callbacks, []
        self.group.responses.lost(self)
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                self._log.failure("A callback failed: {peer} closed.", peer=self.peer)

    # Commands of the peer.

    def frame_received(self, payload: bytes) -> None:
        """A frame came, without its first word."""
        try:
            command = decode(payload)
        except RemoteProtocolError as error:
            self.break_off(error)
            return
        self.command_received(command)

    def command_received(self, command: Command) -> None:
        """A request or a response came."""
        self.last_code = NOT_SERVED
        if command.flag & RESPONSE:
            if not self.group.responses.answered(self, command):
                self.group.counts.stray += 1
            return
        started = self.group.clock.seconds()
        responder = self.group.table.responders.get(command.code)
        if responder is None:
            error = self.group.table.refusal(command.code)
            self._respond_error(command, started, error)
            return
        self.last_code = command.code
        if self.crowded and command.code in LARGE_ANSWERS:
            self.group.counts.overloaded += 1
            words = f"{OVERLOAD}, unread answers take too much memory"
            self._respond_error(command, started, SystemBusy(words))
            return
        if self.under_way >= self.group.limits.under_way:
            self.group.counts.overloaded += 1
            words = f"{OVERLOAD}, {self.under_way} requests are under way"
            self._respond_error(command, started, SystemBusy(words))
            return
        try:
            answer = responder(self, command)
        except Exception as error:
            self._respond_error(command, started, error)
            return
        if isinstance(answer, Deferred):
            self.under_way += 1
            answer.addCallbacks(
                self._came_later,
                self._failed_later,
                callbackArgs=(command, started),
                errbackArgs=(command, started),
            ).addErrback(self._not_sent)
        elif answer is not None:
            self._respond(command, started, answer)

    def hot_failed(self, payload: bytes, error: Exception) -> None:
        """A hot responder raised: answer as if a general one had.

        @param payload: the frame without its first word.
        """
        try:
            command = decode(payload)
        except RemoteProtocolError as protocol_error:
            self.break_off(protocol_error)
            return
        self._respond_error(command, self.group.clock.seconds(), error)

    def refuse_overdue(self, command: Command, waited: float, remark: str) -> None:
        """Answer a request that was not begun in time.

        @param waited: since when it has waited, in seconds.
        """
        self.group.counts.overdue += 1
        started = self.group.clock.seconds() - waited
        self._respond_error(command, started, SystemBusy(remark))

    def _came_later(
        self, answer: Command | None, command: Command, started: float
    ) -> None:
        self.under_way -= 1
        if answer is not None:
            self._respond(command, started, answer)

    def _failed_later(self, failure: Failure, command: Command, started: float) -> None:
        self.under_way -= 1
        error = failure.value or ConnectionLost("failed without a reason")
        self._respond_error(command, started, error, failure)

    def _not_sent(self, failure: Failure) -> None:
        self._log.failure(
            "An answer to {peer} was not sent.", failure=failure, peer=self.peer
        )

    def _respond_error(
        self,
        command: Command,
        started: float,
        error: BaseException,
        failure: Failure | None = None,
    ) -> None:
        if not isinstance(error, RocketbrokerError):
            self.group.counts.failed += 1
            self._log.failure(
                "Request {code} of {peer} failed.",
                failure=failure,
                code=command.code,
                peer=self.peer,
            )
        self._respond(command, started, error_response(command, error))

    def _respond(self, command: Command, started: float, answer: Command) -> None:
        """Send an answer; one that does not fit becomes one that says so."""
        group = self.group
        if command.flag & ONEWAY:
            return
        answer.opaque = command.opaque
        answer.flag = RESPONSE
        try:
            frame = encode(answer, max_bytes=group.limits.frame_bytes)
        except LocalProtocolError as error:
            group.counts.failed += 1
            self._log.error(
                "The answer to request {code} of {peer} cannot be sent: {error}.",
                code=command.code,
                peer=self.peer,
                error=error,
            )
            answer = response_to(command, SystemFailure.code, f"no answer: {error}")
            frame = encode(answer)
        self.send(frame)
        elapsed = group.clock.seconds() - started
        group.table.answered(command.code, int(answer.code), elapsed)


classImplements(CommandChannel, IConnection)
