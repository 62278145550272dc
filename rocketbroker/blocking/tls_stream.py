# -*- test-case-name: tests.blocking.test_tls_stream -*-
"""A stream with TLS: it encrypts what goes over another one."""

from __future__ import annotations

from typing import final

from rocketbroker.blocking.machine import Machine, Readiness, Stream
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError, ConnectionLost
from rocketbroker.wire.tls_layer import TlsError, TlsLayer


def connect(
    machine: Machine, host: str, port: int, seconds: float, tls: ClientTls | None
) -> Stream:
    """Connect, with TLS if that is wanted.

    @raise ConnectionLost: it could not be done in that time.
    """
    if tls is None:
        return machine.connect(host, port, seconds)
    deadline = machine.monotonic() + seconds
    try:
        context, name = tls.context(), tls.server_name(host)
    except ConfigurationError as problem:
        raise ConnectionLost(f"no TLS with {host}:{port}: {problem}") from problem
    stream = machine.connect(host, port, seconds)
    secured = TlsStream(stream, TlsLayer(context, is_server=False, server_name=name))
    try:
        secured.shake(machine, deadline)
    except ConnectionLost as problem:
        stream.close()
        raise ConnectionLost(f"no TLS with {host}:{port}: {problem}") from problem
    return secured


@final
class TlsStream:
    """See L{Stream}."""

    def __init__(self, stream: Stream, layer: TlsLayer) -> None:
        self._stream = stream
        self._layer = layer
        self._said = b""

    def shake(self, machine: Machine, deadline: float) -> None:
        """Shake hands.

        @raise ConnectionLost: the two sides do not come to terms, or not in time.
        """
        self._take(b"")
        while not self._layer.is_open:
            left = deadline - machine.monotonic()
            if left <= 0:
                raise ConnectionLost("no handshake in time")
            self._stream.wait(bool(self._layer.untaken), left)
            data = self._stream.receive()
            if data == b"":
                raise ConnectionLost("the server closed it")
            self._take(data or b"")

    def _take(self, data: bytes) -> None:
        layer = self._layer
        try:
            self._said += layer.receive(data)
        except TlsError as problem:
            layer.push(self._give)  # the words of the protocol for it
            raise ConnectionLost(str(problem)) from problem
        layer.push(self._give)

    def _give(self, data: bytes) -> int:
        return self._stream.send(memoryview(data))

    def wait(self, to_write: bool, seconds: float) -> Readiness:
        """See L{Stream.wait}."""
        if self._said:
            return Readiness(True, False)
        return self._stream.wait(to_write or bool(self._layer.untaken), seconds)

    def receive(self) -> bytes | None:
        """See L{Stream.receive}."""
        data = self._stream.receive()
        if data == b"" and not self._said:
            return b""
        self._take(data or b"")
        said, self._said = self._said, b""
        if said or self._layer.has_ended:
            return said
        return None

    def send(self, data: memoryview) -> int:
        """See L{Stream.send}."""
        try:
            return self._layer.send_through(data, self._give)
        except TlsError as problem:
            raise ConnectionLost(str(problem)) from problem

    def close(self) -> None:
        """See L{Stream.close}."""
        self._stream.close()
