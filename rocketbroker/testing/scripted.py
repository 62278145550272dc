# -*- test-case-name: tests.blocking.test_machine -*-
"""Servers in memory for the blocking client: they answer as a script says.

A L{ScriptedMachine} stands for the machine a client runs on. Its clock moves only when
the client sleeps, or waits for something that does not come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, final

from rocketbroker.blocking.machine import Readiness, Stream
from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity
from rocketbroker.errors import ConnectionLost, RemoteProtocolError
from rocketbroker.wire.command import RESPONSE, Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode

#: What a script does with a request: answers, in order, for this request or for earlier
#: ones; none at all; or L{ConnectionLost} raised: the server hangs up. An answer that
#: has no opaque gets the request's; one that is no response is a request of the server.
Script: TypeAlias = Callable[[Command], "Command | Sequence[Command] | None"]


def nothing() -> None:
    """What happens meanwhile, unless a test says more."""


@final
class ScriptedMachine:
    """A machine without sockets and time.

    @ivar servers: what answers, by C{host:port}; who is not here cannot be reached.
    @ivar requests: all requests that servers have got, with the server's address.
    @ivar streams: all connections made, in order.
    @ivar now: the monotonic clock, in seconds.
    @ivar read_size: how many bytes one read brings at most.
    @ivar write_size: how many bytes one write takes at most.
    @ivar slept: how long the client has slept each time.
    @ivar meanwhile: called after each sleep: what happens while the client sleeps.
    """

    def __init__(self, servers: dict[str, Script]) -> None:
        self.servers = servers
        self.requests: list[tuple[str, Command]] = []
        self.streams: list[ScriptedStream] = []
        self.now = 1000.0
        self.read_size = 65536
        self.write_size = 65536
        self.slept: list[float] = []
        self.meanwhile: Callable[[], None] = nothing
        self._watching: list[Forked] = []

    def codes(self, address: str | None = None) -> list[int]:
        """The codes of the requests that one server, or all, have got."""
        return [
            command.code
            for where, command in self.requests
            if address is None or where == address
        ]

    def connect(self, host: str, port: int, seconds: float) -> Stream:
        """See L{rocketbroker.blocking.machine.Machine}."""
        address = f"{host}:{port}"
        if address not in self.servers:
            raise ConnectionLost(f"cannot connect to {address}: nobody is there")
        stream = ScriptedStream(self, address)
        self.streams.append(stream)
        return stream

    def monotonic(self) -> float:
        """See L{rocketbroker.blocking.machine.Machine}."""
        return self.now

    def wall_ms(self) -> int:
        """See L{rocketbroker.blocking.machine.Machine}."""
        return 1_700_000_000_000 + int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        """See L{rocketbroker.blocking.machine.Machine}."""
        self.now += seconds
        self.slept.append(seconds)
        self.meanwhile()

    def identity(self) -> Identity:
        """See L{rocketbroker.blocking.machine.Machine}."""
        return Identity(bytes([10, 0, 0, 1]), 1, 2)

    def watch_fork(self, one: Forked) -> None:
        """See L{rocketbroker.blocking.machine.Machine}; C{fork} tells it."""
        self._watching.append(one)

    def fork(self) -> None:
        """Be a child from now on."""
        for one in self._watching:
            one.forked()


@final
class ScriptedStream:
    """One connection to a scripted server.

    @ivar closed: whether our side has closed it.
    @ivar hung_up: whether the server has.
    """

    def __init__(self, machine: ScriptedMachine, address: str) -> None:
        self._machine = machine
        self._address = address
        self._incoming = Connection()
        self._outgoing = bytearray()
        self.closed = False
        self.hung_up = False

    def push(self, data: bytes) -> None:
        """Let the server send C{data}."""
        self._outgoing += data

    def wait(self, to_write: bool, seconds: float) -> Readiness:
        """See L{Stream}; waiting in vain takes the time it takes."""
        readable = bool(self._outgoing) or self.hung_up
        writable = to_write and not self.hung_up
        if not readable and not writable:
            self._machine.now += seconds
        return Readiness(readable, writable)

    def receive(self) -> bytes | None:
        """See L{Stream}."""
        if self.closed:
            raise ConnectionLost("it is closed")
        if not self._outgoing and not self.hung_up:
            return None
        size = self._machine.read_size
        data = bytes(self._outgoing[:size])
        del self._outgoing[:size]
        return data

    def send(self, data: memoryview) -> int:
        """See L{Stream}."""
        if self.closed or self.hung_up:
            raise ConnectionLost("it is closed")
        taken = bytes(data[: self._machine.write_size])
        try:
            commands = self._incoming.receive(taken)
        except RemoteProtocolError:  # TLS, say, which this server does not speak
            self.hung_up = True
            return len(taken)
        for command in commands:
            self._serve(command)
        return len(taken)

    def _serve(self, command: Command) -> None:
        self._machine.requests.append((self._address, command))
        try:
            answers = self._machine.servers[self._address](command)
        except ConnectionLost:
            self.hung_up = True
            return
        if answers is None:
            return
        for answer in [answers] if isinstance(answers, Command) else answers:
            if answer.flag & RESPONSE and not answer.opaque:
                answer.opaque = command.opaque
            self.push(encode(answer))

    def close(self) -> None:
        """See L{Stream}."""
        self.closed = True


def answer(
    code: int = 0,
    ext: dict[str, str] | None = None,
    body: bytes = b"",
    remark: str | None = None,
    opaque: int = 0,
) -> Command:
    """A response for a script to give; its opaque becomes the request's."""
    return Command(code, ext, body, opaque=opaque, flag=RESPONSE, remark=remark)
