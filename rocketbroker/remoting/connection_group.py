# -*- test-case-name: tests.remoting.test_connection_group -*-
"""The connections of one server, or of one client.

They share the table of responders, the requests that wait for responses, limits and
counters. A connection on which no byte moved in either direction for the idle time is
closed (C{docs/facts/remoting.md} 9); the protocol has no ping.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from rocketbroker.config.addresses import LOOPBACK_NETWORKS
from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.response_table import ResponseTable
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.remoting.tls_port import TlsPort
from rocketbroker.remoting.turns import Turns
from rocketbroker.wire.frames import MAX_BYTES

#: Unsent bytes beyond which a peer is not read until it has read us: a few of the
#: largest pull answers, so that a consumer that keeps up never meets it.
HIGH_WATER: Final = 1024 * 1024

#: Unsent bytes below which it is read again.
LOW_WATER: Final = 256 * 1024

#: General requests of one connection that may be under way at once. One more is
#: answered SYSTEM_BUSY: they hold memory here and nothing else stops a peer.
MAX_UNDER_WAY: Final = 1024

#: Requests of ours that may wait for responses on one connection; one more fails with
#: TooManyRequests. RocketMQ allows 64 (serverAsyncSemaphoreValue) for a whole port, so
#: one consumer that is stopped delays all others. Each costs about a kilobyte, and a
#: client that answers has a few at a time: at 10,000 replies a second this is 0.4
#: seconds in which a client may pause.
MAX_REQUESTS: Final = 4096

#: Addresses, each with a foreign protocol, that the log has named already. With one
#: more they are all forgotten, and named once more: they cost memory for ever
#: otherwise.
MAX_FOREIGNERS: Final = 1024

#: A connection is not looked at for idleness more often than this.
_IDLE_GRAIN_SECONDS: Final = 1.0


def _water_marks(
    options: RemotingServerOptions | RemotingClientOptions,
) -> tuple[int, int]:
    """High and low; 0 means ours, and the low one is never above the high one."""
    high = options.write_buffer_high_water_mark or HIGH_WATER
    return high, min(high, options.write_buffer_low_water_mark or LOW_WATER)


@attrs.frozen(kw_only=True)
class ConnectionLimits:
    """The limits of one connection.

    @ivar frame_bytes: the longest frame, its first word included, both ways; not more
        than the protocol's 16 MiB, which the hub relies on.
    @ivar high_water: unsent bytes beyond which it is not read.
    @ivar low_water: unsent bytes below which it is read again.
    @ivar under_way: general requests at once.
    @ivar requests: requests of ours that wait for responses at once.
    @ivar idle_seconds: how long nothing may move.
    @ivar proxies: the addresses and networks that may send a header of the PROXY
        protocol.
    """

    frame_bytes: int = attrs.field(
        default=MAX_BYTES, validator=attrs.validators.le(MAX_BYTES)
    )
    high_water: int = HIGH_WATER
    low_water: int = LOW_WATER
    under_way: int = MAX_UNDER_WAY
    requests: int = MAX_REQUESTS
    idle_seconds: float = 120.0
    proxies: str = LOOPBACK_NETWORKS

    @classmethod
    def of_server(cls, options: RemotingServerOptions) -> ConnectionLimits:
        """As a server's options say; serverAsyncSemaphoreValue raises C{requests}."""
        high, low = _water_marks(options)
        return cls(
            high_water=high,
            low_water=low,
            requests=max(MAX_REQUESTS, options.server_async_semaphore_value),
            idle_seconds=options.server_channel_max_idle_time_seconds,
            proxies=options.rocketbroker_proxy_protocol_from,
        )

    @classmethod
    def of_client(cls, options: RemotingClientOptions) -> ConnectionLimits:
        """As a client's options say."""
        high, low = _water_marks(options)
        return cls(
            high_water=high,
            low_water=low,
            requests=options.client_async_semaphore_value,
            idle_seconds=options.client_channel_max_idle_time_seconds,
            proxies="",
        )


class Member(Protocol):
    """A connection, as its group uses it."""

    last_moved: float
    under_way: int
    is_watched: bool

    def close(self) -> None:
        """Close it when everything sent is out."""

    def idle(self) -> None:
        """Close it, because nothing moved for too long."""

    def abort(self) -> None:
        """Close it at once; unsent bytes are lost."""


class Relay(Protocol):
    """Takes what data connections bring to another process."""

    def frames(self, connection: Any, data: bytes) -> int:
        """Take the whole frames with which C{data} begins, as many as it can.

        @param connection: the connection of the hub that brought them.
        @return: how many bytes of C{data} are done with.
        """

    def proxy_header(self, connection: Any, header: bytes) -> None:
        """Take the header that a proxy has sent before the first frame."""

    def garbage(self, connection: Any, data: bytes) -> None:
        """Take bytes that break the protocol, and nothing more of this connection."""


@final
class ConnectionGroup:
    """The connections of one server or client, and what they share.

    @ivar table: the responders.
    @ivar limits: the limits of each connection.
    @ivar clock: tells the time and calls later.
    @ivar turns: calls registered functions at the end of each turn.
    @ivar counts: counters of all these connections.
    @ivar responses: our requests that wait for responses.
    @ivar connections: all that are open, and the closed ones that still send.
    @ivar relay: takes frames to another process, which answers them; C{None}: the
        responders of this one do.
    @ivar tls: what clients speak TLS with; C{None}: they may not.
    @ivar max_connections: how many there may be, with those of other ports; 0: nobody
        counts.
    """

    def __init__(
        self,
        clock: IReactorTime,
        table: ResponderTable,
        limits: ConnectionLimits,
        turns: Turns,
    ) -> None:
        self.clock = clock
        self.table = table
        self.limits = limits
        self.turns = turns
        self.counts = Counts()
        self.responses = ResponseTable(clock, limits.requests)
        self.connections: set[Member] = set()
        self.relay: Relay | None = None
        self.tls: TlsPort | None = None
        self.max_connections = 0
        self._timer: IDelayedCall | None = None
        self._foreigners: set[tuple[bytes, str]] = set()
        self._waiting: list[Deferred[None]] = []

    def joined(self, connection: Member) -> None:
        """A connection was made."""
        self.counts.accepted += 1
        self.connections.add(connection)
        if self._timer is None:
            self._watch(self.limits.idle_seconds)

    def left(self, connection: Member) -> None:
        """A connection is gone, and with the last one the timer."""
        self.connections.discard(connection)
        if not self.connections:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            waiting, self._waiting = self._waiting, []
            for empty in waiting:
                empty.callback(None)

    def is_new_foreigner(self, address: bytes, protocol: str) -> bool:
        """Whether no peer at C{address} was known to speak C{protocol}; one is now.

        @param address: 4 or 16 bytes.
        """
        foreigner = address, protocol
        if foreigner in self._foreigners:
            return False
        if len(self._foreigners) >= MAX_FOREIGNERS:
            self._foreigners.clear()
        self._foreigners.add(foreigner)
        return True

    def when_empty(self) -> Deferred[None]:
        """Fires when there is no connection any more; at once if there is none."""
        empty: Deferred[None] = Deferred()
        if self.connections:
            self._waiting.append(empty)
        else:
            empty.callback(None)
        return empty

    def _watch(self, seconds: float) -> None:
        self._timer = self.clock.callLater(seconds, self._sweep)

    def _sweep(self) -> None:
        """Close idle connections; look again when the next one may be idle."""
        self._timer = None
        idle_seconds = self.limits.idle_seconds
        now = self.clock.seconds()
        oldest = now
        for connection in list(self.connections):
            if not connection.is_watched:
                continue
            if connection.last_moved + idle_seconds <= now:
                self.counts.idle += 1
                connection.idle()
            else:
                oldest = min(oldest, connection.last_moved)
        if self.connections and self._timer is None:
            self._watch(max(_IDLE_GRAIN_SECONDS, oldest + idle_seconds - now))
