# -*- test-case-name: tests.workers.test_worker -*-
"""The payloads of START and LOAD, by which an owner and a worker describe
themselves."""

from __future__ import annotations

import json
from typing import Final, Self, final

import attrs

from rocketbroker.config.tls import TlsOptions
from rocketbroker.remoting.connection_group import ConnectionLimits

#: A worker's buffers are not smaller: they have to hold one of the longest frames, and
#: as much for answers.
MIN_BUFFER_BYTES: Final = 32 << 20


@final
@attrs.frozen
class WorkerSettings:
    """What a worker has to know.

    @ivar limits: the limits of each connection.
    @ivar buffer_bytes: the budget of memory for what waits in all of them.
    @ivar tls: what it speaks TLS with; each does so itself.
    """

    limits: ConnectionLimits
    buffer_bytes: int
    tls: TlsOptions = attrs.field(factory=TlsOptions)

    @classmethod
    def share(
        cls, limits: ConnectionLimits, buffer_bytes: int, tls: TlsOptions, count: int
    ) -> Self:
        """The settings of one of C{count} workers that share the owner's budget."""
        return cls(limits, max(MIN_BUFFER_BYTES, buffer_bytes // count), tls)

    def to_json(self) -> bytes:
        """As the payload of START."""
        return json.dumps(attrs.asdict(self)).encode()

    @classmethod
    def from_json(cls, payload: bytes) -> Self:
        """Of the payload of START."""
        found = json.loads(payload)
        limits, tls = ConnectionLimits(**found["limits"]), TlsOptions(**found["tls"])
        return cls(limits, found["buffer_bytes"], tls)


@final
@attrs.frozen
class WorkerLoad:
    """What a worker says of itself.

    @ivar connections: how many are open.
    @ivar frames_in: frames of clients that it has relayed.
    @ivar sends: sends that it has appended itself.
    @ivar pulls: pulls that it has answered itself.
    @ivar held: pulls that wait in it for messages.
    @ivar bytes_in: bytes that it has received from clients.
    @ivar bytes_out: bytes that clients' kernels have taken.
    @ivar cpu_seconds: of the process.
    @ivar resident_bytes: the memory of the process.
    @ivar pauses: how often a connection waited for memory.
    @ivar busy: the share of one core that the last second took.
    """

    connections: int = 0
    frames_in: int = 0
    sends: int = 0
    pulls: int = 0
    held: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    cpu_seconds: float = 0.0
    resident_bytes: int = 0
    pauses: int = 0
    busy: float = 0.0

    def to_json(self) -> bytes:
        """As the payload of LOAD."""
        return json.dumps(attrs.asdict(self)).encode()

    @classmethod
    def from_json(cls, payload: bytes) -> Self:
        """Of the payload of LOAD."""
        return cls(**json.loads(payload))

    def and_then(self, last: WorkerLoad) -> WorkerLoad:
        """The counters of this one, and of another that came after it."""
        return WorkerLoad(
            frames_in=self.frames_in + last.frames_in,
            sends=self.sends + last.sends,
            pulls=self.pulls + last.pulls,
            bytes_in=self.bytes_in + last.bytes_in,
            bytes_out=self.bytes_out + last.bytes_out,
            cpu_seconds=self.cpu_seconds + last.cpu_seconds,
            pauses=self.pauses + last.pauses,
        )
