# -*- test-case-name: tests.app.test_tls -*-
"""TLS of a server: what its settings say, made into contexts of the standard library.

Certificates in files are looked at from time to time; whoever renews one replaces the
files, and no connection is dropped for it. A certificate of our own is made with the
first handshake: most brokers never need one.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final, Protocol, TypeVar, final

import attrs
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.app.certificates import (
    WATCH_SECONDS,
    CertificateFiles,
    NoCryptographyError,
    context_of,
    has_cryptography,
    own_context,
    write_own_by_child,
)
from rocketbroker.config.certificates import show, trust
from rocketbroker.config.tls import (
    DISABLED,
    ENFORCING,
    NONE,
    REQUIRE,
    Identity,
    TlsOptions,
)
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.remoting.tls_port import TlsContexts, TlsPort

#: How a certificate is named in the settings.
_SETTINGS: Final = (
    "tls.test.mode.enable=false, tls.server.certPath and tls.server.keyPath"
)


T = TypeVar("T")


class InThread(Protocol):
    """Runs a function in a thread."""

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """What it returns."""


def server_context(options: TlsOptions) -> ssl.SSLContext:
    """What a server speaks TLS with, of the files in its settings.

    @raise ConfigurationError: one sentence.
    """
    own = options.server
    context = context_of(own.certificate_path, own.key_path, [], own.key_password)
    need = options.server_need_client_auth
    if options.server_auth_client and need != NONE:
        trust(context, own.trust_path)
        is_required = need == REQUIRE
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
    return context


def client_context(options: TlsOptions) -> ssl.SSLContext:
    """What a server speaks TLS with to others. Names of hosts are not compared, as in
    RocketMQ: brokers are known by addresses.

    @raise ConfigurationError: one sentence.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if options.test_mode_enable:
        return context
    own = options.client
    if options.client_auth_server:
        trust(context, own.trust_path)
        context.verify_mode = ssl.CERT_REQUIRED
    if own.certificate_path:
        show(context, own.certificate_path, own.key_path, own.key_password)
    return context


@final
class OwnContexts:
    """A certificate that is made when the first client wants one."""

    def __init__(
        self,
        in_thread: InThread,
        make: Callable[[], ssl.SSLContext] = lambda: own_context(
            [], write_own_by_child
        ),
        can_make: Callable[[], bool] = has_cryptography,
    ) -> None:
        self._in_thread = in_thread
        self._make = make
        self._can_make = can_make
        self._context: ssl.SSLContext | None = None
        self._waiting: list[Deferred[ssl.SSLContext]] = []

    def get(self) -> Deferred[ssl.SSLContext]:
        """See L{TlsContexts.get}. One that could not be made is tried again."""
        if self._context is not None:
            return succeed(self._context)
        if not self._can_make():
            return fail(NoCryptographyError(_SETTINGS))
        waiting: Deferred[ssl.SSLContext] = Deferred()
        self._waiting.append(waiting)
        if len(self._waiting) == 1:
            self._in_thread(self._make).addCallbacks(self._made, self._not_made)
        return waiting

    def _made(self, context: ssl.SSLContext) -> None:
        self._context = context
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(context)

    def _not_made(self, failure: Failure) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.errback(failure)


@final
class FileContexts:
    """The certificate of files."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files

    def get(self) -> Deferred[ssl.SSLContext]:
        """See L{TlsContexts.get}."""
        return succeed(self._files.context)


class LookedAt(Protocol):
    """A file that may be written while the server runs."""

    def look(self) -> None:
        """I{Blocking.} Take what is new.

        @raise ConfigurationError: it is not in order; one sentence.
        """


@attrs.frozen
class PortContexts:
    """TLS of a port that Twisted serves, by the certificate of the server."""

    contexts: TlsContexts
    is_enforcing: bool

    def get(self) -> Deferred[ssl.SSLContext]:
        """See L{TlsContexts.get}."""
        return self.contexts.get()


def files_of(
    own: Identity, make: Callable[[TlsOptions], ssl.SSLContext], options: TlsOptions
) -> CertificateFiles:
    """The files of one side.

    @param make: makes a context of them.
    @raise ConfigurationError: they are not in order; one sentence.
    """
    named = (own.certificate_path, own.key_path, own.trust_path)
    return CertificateFiles([each for each in named if each], lambda: make(options))


@final
class ServerTls:
    """TLS of a server.

    @ivar port: for its ports; C{None}: nobody speaks TLS there.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        options: TlsOptions,
        is_client: bool,
        in_thread: InThread,
    ) -> None:
        """
        @param is_client: whether TLS is spoken to other servers, whatever the options
            say.
        @raise ConfigurationError: there is no certificate as it is asked for; one
            sentence.
        """
        self.port: TlsPort | None = None
        self._files: list[LookedAt] = []
        self._client: CertificateFiles | None = None
        self._options = options
        self._in_thread = in_thread
        if options.server_mode != DISABLED:
            is_enforcing = options.server_mode == ENFORCING
            contexts = self._contexts(options, is_enforcing)
            self.port = TlsPort(clock, contexts, is_enforcing)
        if is_client or options.is_client:
            self._client = self._client_files()
        self._watch = PeriodicCall(clock, "look at certificates", self._look)

    def _contexts(self, options: TlsOptions, is_needed: bool) -> TlsContexts:
        if options.test_mode_enable:
            if is_needed and not has_cryptography():
                raise NoCryptographyError(_SETTINGS)
            return OwnContexts(self._in_thread)
        files = files_of(options.server, server_context, options)
        self._files.append(files)
        return FileContexts(files)

    def _client_files(self) -> CertificateFiles:
        files = files_of(self._options.client, client_context, self._options)
        self._files.append(files)
        return files

    def at_port(self, is_enforcing: bool) -> PortContexts | None:
        """For a port that Twisted serves; C{None}: nobody speaks TLS there.

        @param is_enforcing: whether all must speak it there.
        """
        if self.port is None:
            return None
        return PortContexts(self.port.contexts, is_enforcing)

    def as_client(self) -> Callable[[], ssl.SSLContext]:
        """For connections to others that speak TLS whatever the options say.

        @return: makes what the next one has.
        @raise ConfigurationError: files are not in order; one sentence.
        """
        files = self._client or self._client_files()
        return lambda: files.context

    def look_at(self, file: LookedAt) -> None:
        """Look at another file, too, as often as at certificates."""
        self._files.append(file)

    def client_context(self) -> ssl.SSLContext | None:
        """What connections to other servers speak TLS with; C{None}: they do not."""
        return None if self._client is None else self._client.context

    def _look(self) -> Deferred[None]:
        def look() -> None:
            for each in self._files:
                try:
                    each.look()
                except ConfigurationError as error:
                    self._log.error(
                        "What was read before stays in force: {problem}",
                        problem=str(error),
                    )

        return self._in_thread(look)

    def start(self) -> None:
        """The server runs."""
        if self._files:
            self._watch.start(WATCH_SECONDS)

    def stop(self) -> None:
        """The server stops."""
        self._watch.stop()
