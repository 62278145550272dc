# -*- test-case-name: tests.cli.cluster.doctor.test_certificates -*-
"""The certificate of a server, as anybody who asks for TLS is shown it.

The standard library decodes only certificates that it trusts, so what is wanted of
others is read here (X.509, RFC 5280, 4.1)::

    Certificate    SEQUENCE { TBSCertificate, algorithm, signature }
    TBSCertificate SEQUENCE { [0] version, serial, algorithm, issuer,
                              Validity SEQUENCE { notBefore, notAfter }, subject, ... }
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from rocketbroker.blocking.machine import Machine
from rocketbroker.blocking.tls_stream import TlsStream
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConnectionLost, RemoteProtocolError
from rocketbroker.wire.tls_layer import TlsLayer

#: The tags of what stands in a certificate.
VERSION: Final = 0xA0
UTC_TIME: Final = 0x17

#: Lengths of 128 bytes and more have their own length in the first byte.
LONG: Final = 0x80

#: A year of two digits is of this century below it, and of the last one from it on.
PIVOT: Final = 50


class Certificate(NamedTuple):
    """What is wanted of a certificate.

    @ivar is_own: whether nobody else has signed it.
    @ivar ends_ms: until when it is valid.
    """

    is_own: bool
    ends_ms: int


def values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The values that stand one behind the other: tag and content.

    @raise RemoteProtocolError: they are cut off.
    """
    position = 0
    while position < len(data):
        if position + 2 > len(data):
            raise RemoteProtocolError("a certificate is cut off")
        tag, size = data[position], data[position + 1]
        position += 2
        if size & LONG:
            end = position + (size & ~LONG)
            size = int.from_bytes(data[position:end], "big")
            position = end
        if position + size > len(data):
            raise RemoteProtocolError("a certificate is cut off")
        yield tag, data[position : position + size]
        position += size


def read(der: bytes) -> Certificate:
    """What is wanted of a certificate.

    @raise RemoteProtocolError: it is none.
    """
    try:
        (_, whole), *_ = values(der)
        (_, body), *_ = values(whole)
        fields = [each for each in values(body) if each[0] != VERSION]
        _, _, issuer, (_, validity), subject, *_ = fields
        _, (tag, text) = values(validity)
        return Certificate(issuer == subject, _time_ms(tag, text.decode("ascii")))
    except ValueError as error:
        raise RemoteProtocolError("what the server shows is no certificate") from error


def _time_ms(tag: int, text: str) -> int:
    if tag == UTC_TIME:
        text = ("20" if int(text[:2]) < PIVOT else "19") + text
    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def certificate_of(
    machine: Machine, host: str, port: int, seconds: float
) -> Certificate | None:
    """The certificate that a server shows; C{None}: it speaks no TLS.

    @raise RemoteProtocolError: it shows something else.
    """
    until = machine.monotonic() + seconds
    context = ClientTls(verify=False).context()
    layer = TlsLayer(context, is_server=False)
    try:
        stream = machine.connect(host, port, seconds)
        with contextlib.closing(stream):
            TlsStream(stream, layer).shake(machine, until)
    except ConnectionLost:
        return None
    der = layer.peer_certificate()
    return read(der) if der else None
