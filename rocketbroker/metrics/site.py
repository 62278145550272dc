# -*- test-case-name: tests.metrics.test_site -*-
"""The site of the metrics port: `/metrics`, `/healthz` and other pages.

`/healthz/live` fails only where nothing answers any more: a supervisor may start the
server again. `/healthz/ready` says whether clients can use it.

A large broker's text takes a while and some megabytes. So one scrape is made at a time:
those who ask for the same meanwhile share it, others wait. The answer is sent piece by
piece, as fast as it is read, and beyond some answers that nobody reads the oldest is
cut.

The text is made in the reactor's thread, from counters that the same thread bumps: no
lock, and no half-changed counter. prometheus-client, which knows what a scraper
accepts, is imported with the first scrape; a broker that nobody scrapes neither waits
for it at start nor pays for it in memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import attrs
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.internet.interfaces import IPushProducer
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request as AnyRequest
from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request, Site
from zope.interface import implementer

from rocketbroker.broker.background_work import InThread
from rocketbroker.metrics.page_guard import GuardedResource, PageGuard
from rocketbroker.metrics.samples import Samples
from rocketbroker.remoting.plain_port import connection_below

#: Reads the parts' counters: the samples of these names as they are now; no name: all.
Collect = Callable[[frozenset[str]], Deferred[Samples]]

#: Why the server cannot do its work, in words; None: it can.
Health = Callable[[], "str | None"]

#: Sentences about what an operator has to mend while the server works.
Troubles = Callable[[], Sequence[str]]

#: So many answers may be on their way. Each may be of some megabytes, for as long as
#: its reader takes.
MAX_ANSWERS: Final = 4


@attrs.frozen
class Form:
    """What a scraper wants.

    @ivar kind: the content type.
    @ivar names: the samples that are wanted, by their final names; empty: all.
    @ivar compressed: with gzip.
    """

    kind: str
    names: frozenset[str]
    compressed: bool


def content_type(accepted: str) -> str:
    """I{Blocking the first time.} The content type of the answer to a scraper."""
    from prometheus_client.exposition import choose_encoder

    return choose_encoder(accepted)[1]


def compress(pieces: Sequence[bytes]) -> list[bytes]:
    """I{Blocking.} The pieces of one text with gzip."""
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    found = [squeeze.compress(piece) for piece in pieces]
    return [piece for piece in (*found, squeeze.flush()) if piece]


@final
class Scrapes:
    """Makes the texts, one at a time.

    @ivar made: how many were made.
    """

    def __init__(self, collect: Collect, in_thread: InThread) -> None:
        self.made = 0
        self._collect = collect
        self._in_thread = in_thread
        self._lock = DeferredLock()
        self._waiting: dict[Form, list[Deferred[Sequence[bytes]]]] = {}

    def get(self, form: Form) -> Deferred[Sequence[bytes]]:
        """The text, in pieces, which others may get, too."""
        waiter: Deferred[Sequence[bytes]] = Deferred()
        waiting = self._waiting.setdefault(form, [])
        waiting.append(waiter)
        if len(waiting) == 1:
            made: Deferred[Sequence[bytes]] = self._lock.run(self._make, form)
            made.addBoth(self._hand_out, form)
        return waiter

    def _make(self, form: Form) -> Deferred[Sequence[bytes]]:
        return Deferred.fromCoroutine(self._made(form))

    async def _made(self, form: Form) -> Sequence[bytes]:
        self.made += 1
        samples = await self._collect(form.names)
        pieces = samples.pieces(form.kind.startswith("application/openmetrics-text"))
        if form.compressed:
            pieces = await self._in_thread(lambda: compress(pieces))
        return pieces

    def _hand_out(self, result: Sequence[bytes] | Failure, form: Form) -> None:
        for waiter in self._waiting.pop(form):
            if isinstance(result, Failure):
                waiter.errback(result)
            else:
                waiter.callback(result)


@final
@implementer(IPushProducer)
class Answer:
    """One answer on its way, as fast as it is read."""

    def __init__(self, request: Request, pieces: Sequence[bytes]) -> None:
        self._request = request
        self._pieces: Iterator[bytes] = iter(pieces)
        self._is_paused = False

    def begin(self) -> None:
        """Send what the connection takes now."""
        self._request.registerProducer(self, True)
        self.resumeProducing()

    def resumeProducing(self) -> None:
        """The connection takes more."""
        self._is_paused = False
        while not self._is_paused:
            piece = next(self._pieces, None)
            if piece is None:
                self._request.unregisterProducer()
                self._request.finish()
                return
            self._request.write(piece)

    def pauseProducing(self) -> None:
        """The connection takes no more for now."""
        self._is_paused = True

    def stopProducing(self) -> None:
        """The scraper has left."""
        self._is_paused = True

    def cut(self) -> None:
        """Give the scraper up."""
        transport: Any = self._request.transport
        transport.abortConnection()


@final
class MetricsResource(Resource):
    """`/metrics` in Prometheus's text format, or OpenMetrics if that is asked for.

    `?name[]=` picks samples; the answer is compressed if the scraper takes that.
    """

    isLeaf = True
    _log = Logger()

    def __init__(self, collect: Collect, in_thread: InThread) -> None:
        super().__init__()
        self._scrapes = Scrapes(collect, in_thread)
        self._in_thread = in_thread
        self._answers: dict[Answer, None] = {}

    def render_GET(self, request: Request) -> int:
        """One scrape."""
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)
        accepted = (request.getHeader(b"Accept") or b"").decode("latin-1")
        names = wanted_names(request)
        compressed = b"gzip" in (request.getHeader(b"Accept-Encoding") or b"")

        def ask(kind: str) -> Deferred[Sequence[bytes]]:
            request.setHeader(b"Content-Type", kind.encode())
            return self._scrapes.get(Form(kind, names, compressed))

        def answer(pieces: Sequence[bytes]) -> None:
            if gone:
                return
            if compressed:
                request.setHeader(b"Content-Encoding", b"gzip")
            self._send(request, pieces)

        def failed(failure: Failure) -> None:
            # A server that stops drops what it was at.
            if not failure.check(CancelledError):
                self._log.failure("A scrape failed.", failure=failure)
            if not gone:
                request.setResponseCode(500)
                request.finish()

        kind = self._in_thread(lambda: content_type(accepted))
        kind.addCallback(ask).addCallback(answer).addErrback(failed)
        return NOT_DONE_YET

    def _send(self, request: Request, pieces: Sequence[bytes]) -> None:
        request.setHeader(b"Content-Length", b"%d" % sum(map(len, pieces)))
        if len(self._answers) >= MAX_ANSWERS:
            oldest = next(iter(self._answers))
            del self._answers[oldest]
            oldest.cut()
        answer = Answer(request, pieces)
        self._answers[answer] = None
        request.notifyFinish().addBoth(lambda _: self._answers.pop(answer, None))
        answer.begin()


def wanted_names(request: Request) -> frozenset[str]:
    """The values of `name[]` in the query."""
    arguments: dict[bytes, list[bytes]] = request.args or {}
    return frozenset(n.decode("utf-8", "replace") for n in arguments.get(b"name[]", []))


@final
class HealthResource(Resource):
    """`/healthz` and what is below it: 200 `ok`, or 503 and the reason.

    A server that works may still have something to mend: a line for each such thing
    follows, and the status stays 200, so that nobody takes the server away.
    """

    def __init__(self, health: Health, troubles: Troubles) -> None:
        super().__init__()
        self._health = health
        self._troubles = troubles

    def getChild(self, path: bytes, request: AnyRequest) -> IResource:
        """Any other path: 404."""
        return notFound()

    def render_GET(self, request: Request) -> bytes:
        """One look."""
        request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
        reason = self._health()
        if reason is not None:
            request.setResponseCode(503)
        lines = dict.fromkeys([reason or "ok", *self._troubles()])
        return "".join(f"{line}\n" for line in lines).encode()

    def render_HEAD(self, request: Request) -> bytes:
        """The same without the text, which Twisted would warn of."""
        request.setHeader(b"Content-Length", b"%d" % len(self.render_GET(request)))
        return b""


class _Root(Resource):
    """Nothing but the children that it is given."""

    def getChild(self, path: bytes, request: AnyRequest) -> IResource:
        """Any other path: 404."""
        return notFound()


class _PageRequest(Request):
    """A request that engages its connection until it is answered."""

    def process(self) -> None:
        """All of it has come."""
        connection = connection_below(self.transport)
        if connection is not None:
            connection.engage()
            self.notifyFinish().addBoth(lambda _: connection.disengage())
        super().process()


class _QuietSite(Site):
    """A site that does not write a line for each scrape.

    Its connections are closed by L{rocketbroker.remoting.plain_port} when they are
    idle: Twisted's time-out begins again with each byte.
    """

    noisy = False

    def log(self, request: AnyRequest) -> None:
        """Nothing: Prometheus asks every few seconds."""


def metrics_site(
    collect: Collect,
    in_thread: InThread,
    health: Health,
    troubles: Troubles,
    ready: Health,
    pages: Mapping[bytes, Resource] | None = None,
    guard: PageGuard | None = None,
) -> Site:
    """The site to listen with on the metrics port.

    @param in_thread: runs what takes long, or waits for the disk.
    @param ready: why clients cannot use the server, though it may be well itself.
    @param pages: other pages, by name.
    @param guard: says who sees them; C{None}: everybody does. All see whether the
        server lives and is ready.
    """
    healthz = HealthResource(health, troubles)
    healthz.putChild(b"live", HealthResource(lambda: None, tuple))
    healthz.putChild(b"ready", HealthResource(ready, tuple))
    metrics = MetricsResource(collect, in_thread)
    root = _Root()
    shown = {b"metrics": metrics, b"healthz": healthz, **(pages or {})}
    for name, page in shown.items():
        root.putChild(name, page if guard is None else GuardedResource(page, guard))
    site = _QuietSite(root, _PageRequest)
    site.timeOut = None
    return site
