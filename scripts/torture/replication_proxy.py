"""A TCP proxy between a slave and its master, which does to them what networks do."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator
from threading import Thread
from typing import Final, NamedTuple

#: So much is taken from a side ahead of what the other one was given.
AHEAD_BYTES: Final = 1 << 20

#: So much is read at once.
READ_BYTES: Final = 64 << 10

#: How often is looked for what is due, in seconds.
TICK: Final = 0.005


class Weather(NamedTuple):
    """What the network is like.

    @ivar is_cut: connections end, and new ones end at once.
    @ivar to_slave_stalls: nothing comes through from the master to the slave.
    @ivar to_master_stalls: nor from the slave to the master.
    @ivar delay: each byte takes so many seconds.
    @ivar rate: so many bytes come through in a second, in each direction; 0: all.
    """

    is_cut: bool = False
    to_slave_stalls: bool = False
    to_master_stalls: bool = False
    delay: float = 0.0
    rate: float = 0.0


FAIR: Final = Weather()


class Way:
    """One direction of a connection.

    @ivar waiting: what was read and not yet passed on, and since when.
    """

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source = source
        self.sink = sink
        self.waiting: deque[tuple[float, bytes]] = deque()
        self.size = 0
        self.is_over = False
        self._allowed = 0.0
        self._looked = time.monotonic()

    def take(self) -> None:
        """Read what has come."""
        with contextlib.suppress(BlockingIOError):
            data = self.source.recv(READ_BYTES)
            if data:
                self.waiting.append((time.monotonic(), data))
                self.size += len(data)
            else:
                self.is_over = True

    def give(self, weather: Weather) -> None:
        """Pass on what is due."""
        now = time.monotonic()
        elapsed, self._looked = now - self._looked, now
        if weather.rate:
            self._allowed = min(self._allowed + elapsed * weather.rate, READ_BYTES)
        with contextlib.suppress(BlockingIOError):
            while self.waiting and self.waiting[0][0] + weather.delay <= now:
                since, data = self.waiting.popleft()
                most = int(self._allowed) if weather.rate else len(data)
                try:
                    count = self.sink.send(data[:most]) if most else 0
                except BlockingIOError:
                    count = 0
                self.size -= count
                self._allowed -= count
                if count < len(data):
                    self.waiting.appendleft((since, data[count:]))
                    break


class Proxy:
    """Listens for slaves, and connects each with the master.

    @ivar port: where it listens.
    @ivar weather: may be set at any time.
    """

    def __init__(self, target: int) -> None:
        """
        @param target: the master's port.
        """
        self.weather = FAIR
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self._pairs: list[tuple[Way, Way]] = []
        self._is_over = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, and all connections."""
        self._is_over = True
        self._thread.join()
        self._end(self._pairs)
        self._listening.close()

    def _run(self) -> None:
        while not self._is_over:
            weather = self.weather
            if weather.is_cut:
                self._end(self._pairs)
            self._look(weather)
            for pair in self._pairs:
                self._turn(pair, weather)
            self._end([p for p in self._pairs if any(w.is_over for w in p)])

    def _look(self, weather: Weather) -> None:
        """Wait a moment for what comes, and read it."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listening, selectors.EVENT_READ)
            for pair in self._pairs:
                for way, stalls in zip(pair, stalled(weather), strict=True):
                    if not stalls and way.size < AHEAD_BYTES:
                        selector.register(way.source, selectors.EVENT_READ, way)
            for key, _ in selector.select(TICK):
                if key.data is None:
                    self._accept(weather)
                else:
                    with guarded(key.data):
                        key.data.take()

    def _accept(self, weather: Weather) -> None:
        slave, _ = self._listening.accept()
        if weather.is_cut:
            slave.shutdown(socket.SHUT_RDWR)
            slave.close()
            return
        try:
            master = socket.create_connection(("127.0.0.1", self._target), 1.0)
        except OSError:
            slave.shutdown(socket.SHUT_RDWR)
            slave.close()
            return
        for each in (slave, master):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setblocking(False)
        self._pairs.append((Way(master, slave), Way(slave, master)))

    def _turn(self, pair: tuple[Way, Way], weather: Weather) -> None:
        for way, stalls in zip(pair, stalled(weather), strict=True):
            if not stalls:
                with guarded(way):
                    way.give(weather)

    def _end(self, pairs: list[tuple[Way, Way]]) -> None:
        for pair in list(pairs):
            self._pairs.remove(pair)
            for way in pair:
                # Closing is not enough: processes that were forked have it, too.
                with contextlib.suppress(OSError):
                    way.source.shutdown(socket.SHUT_RDWR)
                way.source.close()


def stalled(weather: Weather) -> tuple[bool, bool]:
    """Whether each direction stalls: to the slave, and to the master."""
    return weather.to_slave_stalls, weather.to_master_stalls


@contextlib.contextmanager
def guarded(way: Way) -> Iterator[None]:
    """A connection that breaks is over."""
    try:
        yield
    except OSError:
        way.is_over = True
