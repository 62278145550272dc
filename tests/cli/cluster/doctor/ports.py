"""A machine whose ports answer as a test says."""

from __future__ import annotations

from typing import final

from rocketbroker.blocking.machine import Readiness, Stream
from rocketbroker.cli.cluster.doctor.grpc_health import (
    DATA,
    END_HEADERS,
    HEADERS,
    SETTINGS,
    frame,
)
from rocketbroker.config.forks import Forked
from rocketbroker.config.machine import Identity
from rocketbroker.errors import ConnectionLost
from rocketbroker.testing.scripted import ScriptedMachine

#: Of each server of HTTP/2 the first that comes.
FIRST = frame(SETTINGS, 0, 0, bytes(6))


def message(status: int) -> bytes:
    """The frames of an answer with this status of C{HealthCheckResponse}."""
    payload = bytes((8, status)) if status else b""
    prefix = b"\0" + len(payload).to_bytes(4, "big")
    head = frame(HEADERS, END_HEADERS, 1, b"\x88")
    return FIRST + head + frame(DATA, 0, 1, prefix + payload)


@final
class Ports:
    """A machine; its time moves when somebody waits in vain.

    @ivar sent: what each connection got.
    """

    def __init__(self, answers: dict[str, list[list[bytes]]]) -> None:
        """
        @param answers: what comes on each connection to C{host:port}, in pieces; an
            empty one is the end, and without it nothing more comes.
        """
        self._answers = {
            address: [list(pieces) for pieces in connections]
            for address, connections in answers.items()
        }
        self.sent: list[bytes] = []
        self._rest = ScriptedMachine({})

    def connect(self, host: str, port: int, seconds: float) -> Stream:
        """See L{rocketbroker.blocking.machine.Machine}."""
        waiting = self._answers.get(f"{host}:{port}")
        if not waiting:
            raise ConnectionLost(f"cannot connect to {host}:{port}: nobody is there")
        self.sent.append(b"")
        return Canned(self, waiting.pop(0))

    def monotonic(self) -> float:
        """See L{rocketbroker.blocking.machine.Machine}."""
        return self._rest.now

    def wall_ms(self) -> int:
        """See L{rocketbroker.blocking.machine.Machine}."""
        return self._rest.wall_ms()

    def sleep(self, seconds: float) -> None:
        """See L{rocketbroker.blocking.machine.Machine}."""
        self._rest.sleep(seconds)

    def identity(self) -> Identity:
        """See L{rocketbroker.blocking.machine.Machine}."""
        return self._rest.identity()

    def watch_fork(self, one: Forked) -> None:
        """See L{rocketbroker.blocking.machine.Machine}."""


@final
class Canned:
    """A connection whose answer is known before; a send takes ten bytes."""

    def __init__(self, ports: Ports, pieces: list[bytes]) -> None:
        self._ports = ports
        self._pieces = pieces

    def wait(self, to_write: bool, seconds: float) -> Readiness:
        """See L{Stream}."""
        if not to_write and not self._pieces:
            self._ports.sleep(seconds)
        return Readiness(not to_write and bool(self._pieces), to_write)

    def receive(self) -> bytes | None:
        """See L{Stream}."""
        return self._pieces.pop(0) if self._pieces else None

    def send(self, data: memoryview) -> int:
        """See L{Stream}."""
        taken = bytes(data[:10])
        self._ports.sent[-1] += taken
        return len(taken)

    def close(self) -> None:
        """See L{Stream}."""
