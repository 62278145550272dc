# -*- test-case-name: tests.metrics.test_site -*-
"""The site of the metrics port: `/metrics`, `/healthz` and other pages.

The text is made on the reactor's thread, from counters that the same thread bumps: no
lock, and no half-changed table. prometheus-client is imported with the first scrape; a
broker that nobody scrapes neither waits for it at start nor pays for it in memory.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import Request as AnyRequest
from twisted.web.pages import notFound
from twisted.web.resource import IResource, Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

if TYPE_CHECKING:
    from prometheus_client.core import Metric

#: Reads the parts' counters: the families as they are now.
Collect = Callable[[], "Iterable[Metric]"]

#: Reads in a thread what C{Collect} cannot wait for.
Prepare = Callable[[], Deferred[None]]

#: Why the server cannot do its work, in words; None: it can.
Health = Callable[[], "str | None"]

#: Sentences about what an operator has to mend while the server works.
Troubles = Callable[[], Sequence[str]]

#: A scrape is one short request; a connection idle for so long (in s) is closed.
IDLE_SECONDS: Final = 60


class _Families:
    """Lets prometheus-client see a function as one of its collectors.

    @param names: the samples that are wanted, by their final names; empty: all.
    """

    def __init__(self, collect: Collect, names: frozenset[str]) -> None:
        self._collect = collect
        self._names = names

    def collect(self) -> Iterable[Metric]:
        """The families as they are now."""
        for family in self._collect():
            if self._names:
                family.samples = [s for s in family.samples if s.name in self._names]
            if family.samples:
                yield family

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not collect."""
        return ()


@final
class MetricsResource(Resource):
    """`/metrics` in Prometheus's text format, or OpenMetrics if that is asked for.

    `?name[]=` picks families; the answer is compressed if the scraper takes that.
    """

    isLeaf = True
    _log = Logger()

    def __init__(self, collect: Collect, prepare: Prepare) -> None:
        super().__init__()
        self._collect = collect
        self._prepare = prepare

    def render_GET(self, request: Request) -> int:
        """One scrape."""
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)

        def prepared(_: None) -> None:
            text = self._text(request)
            if not gone:
                request.write(text)
                request.finish()

        def failed(failure: Failure) -> None:
            self._log.failure("A scrape failed.", failure=failure)
            if not gone:
                request.setResponseCode(500)
                request.finish()

        self._prepare().addCallback(prepared).addErrback(failed)
        return NOT_DONE_YET

    def _text(self, request: Request) -> bytes:
        from prometheus_client.exposition import choose_encoder
        from prometheus_client.registry import CollectorRegistry

        accepted = (request.getHeader(b"Accept") or b"").decode("latin-1")
        encode, kind = choose_encoder(accepted)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self._collect, wanted_names(request)))
        text = encode(registry)
        request.setHeader(b"Content-Type", kind.encode())
        if b"gzip" in (request.getHeader(b"Accept-Encoding") or b""):
            request.setHeader(b"Content-Encoding", b"gzip")
            text = gzip.compress(text, 1)
        return text


def wanted_names(request: Request) -> frozenset[str]:
    """The values of `name[]` in the query."""
    arguments: dict[bytes, list[bytes]] = request.args or {}
    return frozenset(n.decode("utf-8", "replace") for n in arguments.get(b"name[]", []))


@final
class HealthResource(Resource):
    """`/healthz`: 200 `ok`, or 503 and the reason.

    A server that works may still have something to mend: a line for each such thing
    follows, and the status stays 200, so that nobody takes the server away.
    """

    isLeaf = True

    def __init__(self, health: Health, troubles: Troubles) -> None:
        super().__init__()
        self._health = health
        self._troubles = troubles

    def render_GET(self, request: Request) -> bytes:
        """One look."""
        request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
        reason = self._health()
        if reason is not None:
            request.setResponseCode(503)
        lines = [reason or "ok", *self._troubles()]
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


class _QuietSite(Site):
    """A site that does not write a line for each scrape."""

    noisy = False

    def log(self, request: AnyRequest) -> None:
        """Nothing: Prometheus asks every few seconds."""


def metrics_site(
    collect: Collect,
    prepare: Prepare,
    health: Health,
    troubles: Troubles,
    pages: Mapping[bytes, IResource] | None = None,
) -> Site:
    """The site to listen with on the metrics port.

    @param pages: other pages, by name.
    """
    root = _Root()
    root.putChild(b"metrics", MetricsResource(collect, prepare))
    root.putChild(b"healthz", HealthResource(health, troubles))
    for name, resource in (pages or {}).items():
        root.putChild(name, resource)
    site = _QuietSite(root)
    site.timeOut = IDLE_SECONDS
    return site
