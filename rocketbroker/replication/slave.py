# -*- test-case-name: tests.replication.test_slave -*-
"""The slave's side of replication: one connection, to the master that it follows.

What comes is stored at once, in whole records; what is left of one waits for the rest
of it. After each delivery of bytes the master is told how far the log is stored, as
sends wait there for that.

Before that, what both logs have at the end of this one is compared:
L{rocketbroker.replication.join}.

C{docs/facts/ha.md} 4.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, ClassVar, Final, cast, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import (
    IAddress,
    IConnector,
    IDelayedCall,
    IProtocol,
    IReactorTime,
    ITCPTransport,
)
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import classImplements

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import (
    BrokerError,
    ConfigurationError,
    RemoteProtocolError,
    StoreError,
)
from rocketbroker.remoting.addresses import split_address
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.replication.interfaces import IMasterLink, ReplicatedStore
from rocketbroker.replication.join import JOIN_BYTES, JOIN_GROWTH, Apart, Join
from rocketbroker.replication.security import NO_SECURITY, HaSecurity, secured_link
from rocketbroker.replication.socket_writer import SocketWriter
from rocketbroker.replication.stop_watch import StopWatch
from rocketbroker.replication.transfer_rate import TransferRate
from rocketbroker.wire.hastream import FrameReader, report

#: From one attempt to follow to the next, and how long one to connect may take.
RETRY_SECONDS: Final = 5.0

#: How often the connection is looked at, at the least.
LOOK_SECONDS: Final = 1.0

#: What may wait for the rest of a record: no frame of the remoting protocol is larger,
#: so no message is.
MAX_RECORD_BYTES: Final = 64 << 20

_SIZE: Final = Struct(
    ">i"  # of a record, or of what is left of a segment
)


@final
class _Stream(Protocol):
    """One connection to the master.

    @ivar has_joined: whether both logs agree at the end of this one.
    """

    def __init__(self, link: MasterLink) -> None:
        self.has_joined = False
        self._link = link
        self._join: Join | None = None
        self._frames = FrameReader(None)
        self._outlet: SocketWriter
        self._rest = bytearray()
        self._wanted = 0
        self._reported = -1
        self._silent = 0.0
        self._wrote_at = link.clock.seconds()

    def connectionMade(self) -> None:
        """Ask for the log, from a little before the end of this one."""
        transport = cast(ITCPTransport, self.transport)
        transport.setTcpNoDelay(True)
        self._outlet = SocketWriter(transport, self._report_more)
        link = self._link
        segment_bytes = link.options.mapped_file_size_commit_log
        join = Join(link.store, segment_bytes, link.join_bytes, link.has_earlier)
        if join.end:
            self._frames = FrameReader(join.begin)
        self._report(join.begin)
        self._join = join
        if join.is_over:
            self._joined()

    def dataReceived(self, data: bytes) -> None:
        """The master sends."""
        link = self._link
        self._silent = 0.0
        link.heard(len(data))
        try:
            log = self._frames.feed(data)
            if self._join is not None:
                log = self._compared(self._join, log)
            if log:
                self._take(log)
        except Apart as error:
            if error.is_before:
                link.join_bytes *= JOIN_GROWTH
                link.has_earlier = error.differs
            where = "before that" if error.is_before else "there"
            link.refused(
                self,
                f"{error}. If the master's messages are the ones to keep, cut this "
                f"broker's log off {where} with `rocketbroker store truncate`, or "
                "empty its store",
            )
        except RemoteProtocolError as error:
            link.refused(self, f"it sent {error}")
        except (StoreError, BrokerError, OSError) as error:
            link.refused(self, str(error).rstrip("."), is_ours=True)

    def _compared(self, join: Join, log: bytes) -> bytes:
        """Compare the bytes of this log that the master sends; what is behind them."""
        if log:
            log = join.take(log)
            if join.is_over:
                self._joined()
        elif self._frames.heartbeats:
            self._frames.heartbeats = 0
            join.heartbeat(self._link.clock.seconds())
        return log

    def _joined(self) -> None:
        """What the master sends from now on belongs behind the end."""
        assert self._join is not None
        end = self._join.end
        self._join = None
        self.has_joined = True
        self._link.joined(end)
        if end > self._reported:
            self._report(end)

    def _take(self, log: bytes) -> None:
        """Store what has come; report how far that is."""
        rest = self._rest
        if rest:
            rest += log
            if len(rest) < self._wanted:
                return
            log = bytes(rest)
            rest.clear()
        link = self._link
        end = self._frames.position
        assert end is not None
        taken = link.store.raw_log.append(end - len(log), log)
        if taken < len(log):
            self._keep(log[taken:])
        if taken:
            position = end - len(log) + taken
            self._report(position)
            link.stored(taken)

    def _keep(self, rest: bytes) -> None:
        """Keep the beginning of a record."""
        self._rest += rest
        size = len(rest)
        self._wanted = _SIZE.size
        if size >= _SIZE.size:
            self._wanted = max(size + 1, _SIZE.unpack_from(rest)[0])
        if self._wanted > MAX_RECORD_BYTES:
            raise RemoteProtocolError(f"a record of {self._wanted} bytes")

    def _report(self, position: int) -> None:
        """Tell how far the log is stored; later, if the last report is on its way."""
        if self._outlet.is_busy:
            return
        self._reported = position
        self._wrote_at = self._link.clock.seconds()
        self._link.wrote()
        self._outlet.write(report(position))

    def _report_more(self) -> None:
        """The last report is on its way: there may be more to tell by now."""
        position = self._link.store.published_position
        if self.has_joined and position > self._reported:
            self._report(position)

    def look(self, seconds: float) -> bool:
        """Once a second: report again; whether the master was heard of late.

        @param seconds: how long it may have been silent since the last look.
        """
        options = self._link.options
        self._silent += seconds
        if self._silent > options.ha_housekeeping_interval / 1000:
            return False
        idle = (
            self._link.clock.seconds() - self._wrote_at
            > options.ha_send_heartbeat_interval / 1000
        )
        if idle and self._join is None:
            # A master whose log is shorter would end the connection, which is as good
            # as mute, where its heartbeats tell what is wrong.
            self._report(self._reported)
        return True

    def close(self) -> None:
        """End it; nothing that comes is stored any more."""
        cast(ITCPTransport, self.transport).abortConnection()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """It is over."""
        words = "" if reason is None else reason.getErrorMessage()
        self._link.ended(self, words)


@final
class _ConnectFactory(ClientFactory):
    """One attempt to reach the master."""

    noisy = False

    def __init__(self, link: MasterLink) -> None:
        self._link = link

    def buildProtocol(  # type: ignore[override]  # any protocol will do
        self, addr: IAddress | None
    ) -> IProtocol | None:
        """The master is there."""
        link = self._link
        if not link.security.is_used_by_slave:
            return link.connected(self)
        return secured_link(
            link.security,
            lambda: link.connected(self),
            lambda reason: link.not_connected(self, reason),
            link.clock,
        )

    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        """It is not."""
        self._link.not_connected(self, reason.getErrorMessage())


@final
class MasterLink:
    """Follows a master, for as long as it runs.

    @ivar join_bytes: how much of the end of this log is to be compared.
    @ivar has_earlier: whether that may begin in an earlier segment.
    """

    _log: ClassVar[Logger] = Logger()

    def __init__(
        self,
        reactor: Any,
        store: ReplicatedStore,
        options: StoreOptions,
        wall_ms: Callable[[], int],
        security: HaSecurity = NO_SECURITY,
    ) -> None:
        """
        @param reactor: connects, and tells the time.
        @param store: an open store, once this has started; nobody else appends to it.
        @param security: how it gets to the master.
        """
        self.clock: IReactorTime = reactor
        self.store = store
        self.options = options
        self.security = security
        self.master: str | None = None
        self.problem = ""
        self.last_read_ms = 0
        self.last_write_ms = 0
        self.received = 0
        self.join_bytes = JOIN_BYTES
        self.has_earlier = False
        self._reactor = reactor
        self._wall_ms = wall_ms
        self._rate = TransferRate(self.clock.seconds)
        self._is_running = False
        self._is_refusing = False
        self._stream: _Stream | None = None
        self._attempt: tuple[_ConnectFactory, IConnector] | None = None
        self._retry: IDelayedCall | None = None
        self._looking = PeriodicCall(self.clock, "look at the master", self._look)
        self._watch = StopWatch(self.clock.seconds)
        self._watchers: list[Callable[[], None]] = []
        self._logged = ""

    @property
    def state(self) -> str:
        """C{"READY"}, C{"TRANSFER"} or C{"SHUTDOWN"}."""
        if not self._is_running:
            return "SHUTDOWN"
        return "READY" if self._stream is None else "TRANSFER"

    @property
    def bytes_per_second(self) -> int:
        """What came in the last whole second."""
        return self._rate.last()

    def start(self) -> None:
        """Follow, as soon as there is an address."""
        if not self._is_running:
            self._is_running = True
            heartbeat = self.options.ha_send_heartbeat_interval / 1000
            self._watch.start()
            self._looking.start(min(LOOK_SECONDS, heartbeat / 2))
            self._connect()

    def follow(self, master: str | None) -> None:
        """The master's HA address is this one from now on."""
        if master == self.master:
            return
        self.master = master
        self._drop()
        self.problem = self._logged = ""
        self._is_refusing = False
        if self._is_running:
            self._connect()

    def watch(self, received: Callable[[], None]) -> None:
        """Call C{received} after each append of what has come."""
        self._watchers.append(received)

    def stop(self) -> Deferred[None]:
        """Let the master go; fires when nothing is stored any more."""
        if self._is_running:
            self._is_running = False
            self._looking.stop()
            self._drop()
        return succeed(None)

    def _drop(self) -> None:
        """End whatever is under way."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt[1].disconnect()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _connect(self) -> None:
        self._retry = None
        if self.master is None:
            return
        try:
            host, port = split_address(self.master)
        except ConfigurationError as error:
            self._cannot(f"The master's HA address cannot be used: {error}")
            return
        connecting = _ConnectFactory(self)
        connector = self._reactor.connectTCP(host, port, connecting, RETRY_SECONDS)
        self._attempt = (connecting, connector)

    def _cannot(self, problem: str) -> None:
        self.problem = problem
        if problem != self._logged:
            self._logged = problem
            self._log.warn("{problem}", problem=problem)

    def _try_again(self) -> None:
        self._retry = self.clock.callLater(RETRY_SECONDS, self._connect)

    def _look(self) -> None:
        seconds = self._watch.lap()
        if self._stream is not None and not self._stream.look(seconds):
            self._cannot(f"The master {self.master} is silent.")
            self._drop()
            self._connect()

    # Called by attempts and connections.

    def _is_current(self, connecting: _ConnectFactory) -> bool:
        attempt = self._attempt
        return attempt is not None and attempt[0] is connecting

    def connected(self, connecting: _ConnectFactory) -> Protocol | None:
        """The master has been reached; nothing if it is not wanted any more."""
        if not self._is_current(connecting):
            return None
        self._attempt = None
        self._stream = _Stream(self)
        return self._stream

    def not_connected(self, connecting: _ConnectFactory, reason: str) -> None:
        """The master could not be reached."""
        if self._is_current(connecting):
            self._attempt = None
            self._is_refusing = False
            self._cannot(f"Cannot connect to the master {self.master}: {reason}")
            self._try_again()

    def joined(self, end: int) -> None:
        """The master's log agrees with this one at its end."""
        self.join_bytes = JOIN_BYTES
        self.has_earlier = False
        if self._is_refusing:
            # Whether the store takes something now is not known before it has.
            return
        self.problem = self._logged = ""
        self._log.info(
            "Following the master {master} from position {end} on.",
            master=self.master,
            end=end,
        )

    def refused(self, stream: _Stream, reason: str, is_ours: bool = False) -> None:
        """What the master sends cannot be stored.

        @param is_ours: whether this broker's store does not take it.
        """
        if stream is self._stream:
            self._is_refusing = is_ours
            self._cannot(
                f"This broker does not follow the master {self.master}: {reason}."
            )
            stream.close()

    def ended(self, stream: _Stream, reason: str) -> None:
        """The connection is over."""
        if stream is not self._stream:
            return
        self._stream = None
        if not self.problem:
            self._cannot(f"The connection to the master {self.master} ended: {reason}")
        self._try_again()

    def heard(self, size: int) -> None:
        """Bytes came."""
        self._rate.add(size)
        self.last_read_ms = self._wall_ms()

    def wrote(self) -> None:
        """A report was sent."""
        self.last_write_ms = self._wall_ms()

    def stored(self, size: int) -> None:
        """Bytes of the log were stored."""
        self.received += size
        if self._is_refusing:
            self._is_refusing = False
            self.joined(self.store.published_position)
        for watcher in self._watchers:
            watcher()


classImplements(MasterLink, IMasterLink)
