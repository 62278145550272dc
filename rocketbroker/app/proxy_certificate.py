# -*- test-case-name: tests.app.test_proxy_certificate -*-
"""The certificate of a proxy: that of two files, or one of its own.

One of its own is made for the first client that speaks TLS, off the thread of the loop:
a proxy that only speaks plain text never pays for it. Clients that come meanwhile wait
for the same one, as long as a handshake may take.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import final

from twisted.logger import Logger

from rocketbroker.app.certificates import (
    CertificateFiles,
    NoCryptographyError,
    context_of,
    has_cryptography,
    own_context,
    write_own_by_child,
)
from rocketbroker.config.paths import resolved
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.front import ALPN
from rocketbroker.proxy.settings import DISABLED, ENFORCING, MODE, ProxySettings


def made_by_child() -> ssl.SSLContext:
    """A context with a certificate of the proxy's own, after a while.

    @raise ConfigurationError: it cannot be made; one sentence.
    """
    return own_context([ALPN], write_own_by_child)


@final
class ProxyCertificate:
    """What a proxy speaks TLS with, as its settings say.

    @ivar files: what is looked at from time to time; C{None}: there are none.
    @ivar warning: what the operator should know, C{None}: nothing.
    """

    _log = Logger()

    def __init__(
        self,
        settings: ProxySettings,
        can_make: Callable[[], bool] = has_cryptography,
        make: Callable[[], ssl.SSLContext] = made_by_child,
    ) -> None:
        """
        @param can_make: whether there is what C{make} needs.
        @param make: makes a certificate, and blocks meanwhile.
        @raise ConfigurationError: it cannot be had as it is asked for.
        """
        self.files: CertificateFiles | None = None
        self.warning: str | None = None
        self._make = make
        self._makes_own = False
        self._own: asyncio.Future[ssl.SSLContext] | None = None
        paths = settings.tls_cert_path, settings.tls_key_path
        if settings.tls_server_mode == DISABLED:
            return
        if not settings.tls_test_mode_enable:
            if not all(paths):
                raise ConfigurationError(
                    "tlsTestModeEnable=false needs both tlsCertPath and tlsKeyPath."
                )
            files = resolved(paths[0]), resolved(paths[1])
            self.files = CertificateFiles(files, lambda: context_of(*files, [ALPN]))
            return
        if any(paths):
            self.warning = (
                "tlsCertPath and tlsKeyPath have no effect: tlsTestModeEnable is true, "
                "so the certificate is one of our own."
            )
        self._makes_own = can_make()
        if not self._makes_own:
            problem = NoCryptographyError(
                "tlsTestModeEnable=false, tlsCertPath and tlsKeyPath"
            )
            if settings.tls_server_mode == ENFORCING:
                raise problem
            self.warning = (
                f"Only plain text is served, no TLS: {problem} {MODE}={DISABLED} says "
                "that this is wanted."
            )

    async def context(self) -> ssl.SSLContext | None:
        """What the next handshake has; C{None}: there is no certificate."""
        if self.files is not None:
            return self.files.context
        if not self._makes_own:
            return None
        if self._own is None:
            self._own = asyncio.ensure_future(asyncio.to_thread(self._make))
        own = self._own
        try:
            # A client that leaves does not take it from the others.
            return await asyncio.shield(own)
        except (ConfigurationError, OSError) as error:
            if self._own is own:
                self._own = None  # the next client tries it again
                self._log.error("No certificate: {problem}", problem=str(error))
            return None
