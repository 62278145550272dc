# -*- test-case-name: tests.app.test_certificates -*-
"""The certificate of a server: read from files that may change, or made by a child.

A certificate that nobody has signed is enough for clients that check none, as those of
RocketMQ for Java and Go (docs/facts/proxy.md 3.2). It needs the extra C{tls}.

What makes one, cryptography, takes 10 MB that a process does not give back. So a child
makes it, which is this module as a program, and ends::

    python -m rocketbroker.app.certificates DIRECTORY
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.config.certificates import show
from rocketbroker.errors import ConfigurationError

#: How often files are looked at; whoever renews one waits no longer for it.
WATCH_SECONDS: Final = 10.0

#: For so long a certificate is valid that we have made: longer than a server runs.
VALID_DAYS: Final = 3650

#: By so much the clock of a client may be behind ours.
CLOCK_DAYS: Final = 1

#: A child that makes a certificate takes half a second, and more on a busy machine; one
#: that takes so long hangs.
CHILD_SECONDS: Final = 15.0

#: The files in the directory of a certificate of our own.
_FILES: Final = ("certificate", "key")

#: Names of this machine to itself.
_OWN_NAMES: Final = ("localhost", "127.0.0.1", "::1")


class NoCryptographyError(ConfigurationError):
    """No certificate can be made here."""

    def __init__(self, settings: str) -> None:
        """
        @param settings: that name a certificate.
        """
        super().__init__(
            "A certificate of its own needs cryptography: pip install "
            f"'rocketbroker[tls]', or name one with {settings}."
        )


def has_cryptography() -> bool:
    """Whether a certificate of our own can be made here."""
    return find_spec("cryptography") is not None


def empty_context(protocols: Sequence[str]) -> ssl.SSLContext:
    """A context of a server without a certificate; clients are asked for none.

    @param protocols: what is spoken above TLS, by ALPN.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(list(protocols))
    return context


def context_of(
    certificate_path: str,
    key_path: str,
    protocols: Sequence[str],
    password: str = "",
) -> ssl.SSLContext:
    """A context with the certificate of two PEM files.

    @param password: of the key; empty: it has none.
    @raise ConfigurationError: one sentence.
    """
    context = empty_context(protocols)
    show(context, certificate_path, key_path, password)
    return context


def self_signed(names: Sequence[str]) -> tuple[bytes, bytes]:
    """A certificate that nobody has signed, and its key, in PEM.

    @param names: of hosts, and addresses; the first is its subject.
    @raise NoCryptographyError: cryptography is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise NoCryptographyError("tls.server.certPath") from error

    def general(name: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0][:64])])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(CLOCK_DAYS))
        .not_valid_after(now + datetime.timedelta(VALID_DAYS))
        .add_extension(
            x509.SubjectAlternativeName([general(name) for name in names]), False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    return certificate.public_bytes(pem), secret


def write_own(folder: str) -> None:
    """Write a certificate for the names of this machine, made now, and its key.

    @param folder: the directory; nobody else reads it.
    @raise NoCryptographyError: cryptography is not installed.
    """
    host = socket.gethostname()
    names = (host, *_OWN_NAMES) if host.isascii() and host else _OWN_NAMES
    for name, content in zip(_FILES, self_signed(names), strict=True):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


def write_own_by_child(folder: str) -> None:
    """Let a process of its own do what L{write_own} does; it is waited for.

    @raise ConfigurationError: it fails; one sentence.
    """
    try:
        ended = subprocess.run(
            [sys.executable, "-m", __name__, folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=CHILD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"It cannot be made: {error}.") from error
    if ended.returncode:
        words = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ConfigurationError(
            f"The child that makes it ended with {ended.returncode}: {words}"
        )


def own_context(
    protocols: Sequence[str], write: Callable[[str], None]
) -> ssl.SSLContext:
    """A context with a certificate that is made now, for the names of this machine.

    @param write: L{write_own} or L{write_own_by_child}.
    @raise ConfigurationError: it cannot be made; one sentence.
    """
    with tempfile.TemporaryDirectory(prefix="rocketbroker-") as folder:
        # ssl reads from files only; this directory is ours alone.
        write(folder)
        certificate, key = (os.path.join(folder, name) for name in _FILES)
        return context_of(certificate, key, protocols)


@final
class CertificateFiles:
    """Files with a certificate, its key, and whom to trust, which may be renewed.

    @ivar context: has what was in them when they were last in order.
    """

    _log = Logger()

    def __init__(
        self, paths: Sequence[str], make: Callable[[], ssl.SSLContext]
    ) -> None:
        """
        @param paths: of the files; the first names them in the log.
        @param make: makes a context of them.
        @raise ConfigurationError: they are not in order.
        """
        self._paths = paths
        self._make = make
        self._marks = self._marked()
        self.context = make()

    def look(self) -> None:
        """Take what is new, for handshakes from now on; what is bad changes nothing."""
        marks = self._marked()
        if marks == self._marks:
            return
        self._marks = marks
        try:
            self.context = self._make()
        except ConfigurationError as error:
            self._log.error(
                "The certificate stays as it was: {problem}", problem=str(error)
            )
        else:
            self._log.info("The certificate of {path} is renewed.", path=self._paths[0])

    def _marked(self) -> list[tuple[int, int, int] | None]:
        """What changes when somebody writes the files."""
        found: list[tuple[int, int, int] | None] = []
        for path in self._paths:
            try:
                state = os.stat(path)
            except OSError:
                found.append(None)
            else:
                found.append((state.st_ino, state.st_size, state.st_mtime_ns))
        return found


if __name__ == "__main__":
    write_own(sys.argv[1])
