# -*- test-case-name: tests.client.test_tls_link -*-
"""Certificates in PEM files, and the TLS of clients that use them."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from typing import Final

import attrs

from rocketbroker.errors import ConfigurationError

#: Contexts that are kept, for clients that are made again and again.
_KEPT: Final = 16


def show(
    context: ssl.SSLContext, certificate_path: str, key_path: str, password: str = ""
) -> None:
    """Let a context show the certificate of two PEM files.

    @param password: of the key; empty: it has none.
    @raise ConfigurationError: one sentence.
    """
    _check_readable(certificate_path, key_path)
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate_path, key_path, password)
    except (OSError, ValueError) as error:
        words = getattr(error, "reason", None) or error
        how = "with that password" if password else "without a password"
        raise ConfigurationError(
            f"{certificate_path} and {key_path} are no certificate and its key in PEM, "
            f"{how}: {words}."
        ) from error


def trust(context: ssl.SSLContext, path: str) -> None:
    """Let a context trust certificates that those of a PEM file have signed.

    @param path: empty: those that the system trusts.
    @raise ConfigurationError: one sentence.
    """
    if not path:
        context.load_default_certs()
        return
    _check_readable(path)
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:
        words = getattr(error, "reason", None) or error
        raise ConfigurationError(
            f"{path} has no certificates in PEM: {words}."
        ) from error


def _check_readable(*paths: str) -> None:
    for path in paths:
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be read: {error.strerror}."
            ) from error


@attrs.frozen(kw_only=True)
class ClientTls:
    """How a client speaks TLS; it can be pickled.

    @ivar verify: whether the server's certificate must be signed by somebody who is
        trusted.
    @ivar ca_path: who that is, in PEM; empty: whom the system trusts, and then the
        certificate must be for the name of the server, too. Brokers are known by
        addresses, so that those of a cluster of its own have a file here.
    @ivar certificate_path: what the client shows, in PEM; empty: nothing.
    @ivar key_path: its key.
    @ivar key_password: of that.
    """

    verify: bool = True
    ca_path: str = ""
    certificate_path: str = ""
    key_path: str = ""
    key_password: str = attrs.field(default="", repr=False)

    def __attrs_post_init__(self) -> None:
        """
        @raise ConfigurationError: a key without a certificate, or the other way round.
        """
        if bool(self.certificate_path) != bool(self.key_path):
            raise ConfigurationError("a certificate and its key go together")

    def context(self) -> ssl.SSLContext:
        """With what the next connection is made: files may have been renewed.

        @raise ConfigurationError: a file is not in order; one sentence.
        """
        paths = (self.ca_path, self.certificate_path, self.key_path)
        return _context(self, tuple(map(_mark, paths)))

    def server_name(self, host: str) -> str | None:
        """The name that the certificate of a server must be for; C{None}: any."""
        return host if self.verify and not self.ca_path else None


def _mark(path: str) -> int:
    """What changes when somebody writes the file."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@lru_cache(_KEPT)
def _context(tls: ClientTls, marks: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.server_name("any") is not None
    context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
    if tls.verify:
        trust(context, tls.ca_path)
    if tls.certificate_path:
        show(context, tls.certificate_path, tls.key_path, tls.key_password)
    return context
