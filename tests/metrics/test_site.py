"""Tests of what the metrics port answers, read with Prometheus's own parser."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any, cast

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.server import Site

from rocketbroker.metrics.samples import PIECE_LINES, Samples
from rocketbroker.metrics.site import MAX_ANSWERS, metrics_site
from rocketbroker.remoting.plain_port import FewConnections
from rocketbroker.testing.threads import Threads, at_once


def filled(samples: Samples) -> Samples:
    """Two families, one of them with an awkward label."""
    labels = samples.labels(topic='a"b\\c\nd')
    samples.counters("rocketmq_messages_in_total", "in").add(labels, 3)
    samples.gauge("rocketmq_topic_number", "topics", 7)
    return samples


class Scraper(StringTransport):
    """One connection of a scraper, which may stop to read."""

    def __init__(self, site: Site | FewConnections) -> None:
        super().__init__()
        channel = site.buildProtocol(None)
        assert channel is not None
        self.channel = channel
        channel.makeConnection(self)
        self.reads = True

    def ask(self, path: str = "/metrics", method: str = "GET", **headers: str) -> None:
        """Send a request."""
        lines = [f"{method} {path} HTTP/1.0", "Host: x"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
        self.channel.dataReceived(("\r\n".join(lines) + "\r\n\r\n").encode())

    def write(self, data: bytes) -> None:
        """Take what is sent; a socket that is full asks for a pause."""
        super().write(data)
        if not self.reads and self.producer is not None:
            self.producer.pauseProducing()

    def read(self) -> None:
        """Read what has come, so that there is room for more."""
        if self.producer is not None:
            self.producer.resumeProducing()

    def leave(self) -> None:
        """Close the connection."""
        self.channel.connectionLost(Failure(ConnectionDone()))

    def answer(self) -> tuple[bytes, bytes]:
        """Head and body of what has come by now."""
        head, _, body = self.value().partition(b"\r\n\r\n")
        return head, body


class SiteTests(SynchronousTestCase):
    """Requests as Prometheus and load balancers send them."""

    reason: str | None = None
    not_ready: str | None = None
    troubles: Sequence[str] = ()
    collected: Deferred[Samples] | None = None

    def collect(self, names: frozenset[str]) -> Deferred[Samples]:
        """What the server shows."""
        return self.collected or succeed(filled(Samples({}, names)))

    def get(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[bytes, bytes]:
        """Head and body of the answer to a request."""
        site = metrics_site(
            self.collect,
            at_once,
            lambda: self.reason,
            lambda: self.troubles,
            lambda: self.not_ready,
        )
        site.startFactory()
        self.addCleanup(site.stopFactory)
        scraper = Scraper(site)
        scraper.ask(path, method, **headers)
        return scraper.answer()

    def test_metrics(self) -> None:
        """Prometheus's parser reads back each family and each label."""
        head, body = self.get("/metrics")
        self.assertIn(b"200 OK", head)
        samples = {
            sample.name: (sample.labels, sample.value)
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }
        self.assertEqual(
            samples,
            {
                "rocketmq_messages_in_total": ({"topic": 'a"b\\c\nd'}, 3.0),
                "rocketmq_topic_number": ({}, 7.0),
            },
        )

    def test_openMetrics(self) -> None:
        """Who asks for OpenMetrics gets it."""
        head, body = self.get("/metrics", Accept="application/openmetrics-text")
        self.assertIn(b"application/openmetrics-text", head)
        found = list(openmetrics.text_string_to_metric_families(body.decode()))
        self.assertEqual(len(found), 2)

    def test_compressed(self) -> None:
        """A scraper that takes gzip gets gzip."""
        head, body = self.get("/metrics", Accept_Encoding="gzip")
        self.assertIn(b"Content-Encoding: gzip", head)
        self.assertIn(b"rocketmq_topic_number 7\n", gzip.decompress(body))

    def test_picked(self) -> None:
        """name[] picks samples by their final name."""
        _, body = self.get("/metrics?name[]=rocketmq_topic_number")
        self.assertIn(b"rocketmq_topic_number 7\n", body)
        self.assertNotIn(b"messages_in", body)

    def test_healthy(self) -> None:
        """A server that can work says ok."""
        head, body = self.get("/healthz")
        self.assertIn(b"200 OK", head)
        self.assertEqual(body, b"ok\n")

    def test_unhealthy(self) -> None:
        """One that cannot gives the reason, and a status that balancers know."""
        self.reason = "disk full: /store"
        head, body = self.get("/healthz")
        self.assertIn(b"503", head)
        self.assertEqual(body, b"disk full: /store\n")

    def test_troubles(self) -> None:
        """What is to be mended is told, whether the server can work or not."""
        self.troubles = ["a table is damaged", "the limit is reached"]
        head, body = self.get("/healthz")
        self.assertIn(b"200 OK", head)
        self.assertEqual(body, b"ok\na table is damaged\nthe limit is reached\n")
        self.reason = "disk full"
        head, body = self.get("/healthz")
        self.assertIn(b"503", head)
        self.assertTrue(body.startswith(b"disk full\na table"))
        self.troubles = ["disk full"]
        self.assertEqual(self.get("/healthz")[1], b"disk full\n")

    def test_live(self) -> None:
        """A server that answers lives, whatever else; one that clients cannot use is
        not ready."""
        self.reason, self.not_ready = "disk full", "no name server knows it"
        head, body = self.get("/healthz/live")
        self.assertIn(b"200 OK", head)
        self.assertEqual(body, b"ok\n")
        head, body = self.get("/healthz/ready")
        self.assertIn(b"503", head)
        self.assertEqual(body, b"no name server knows it\n")
        self.not_ready = None
        self.assertIn(b"200 OK", self.get("/healthz/ready")[0])
        self.assertIn(b"404", self.get("/healthz/other")[0])

    def test_connectionIsOfUseFromWholeRequestToEndOfAnswer(self) -> None:
        """Neither the begin of a head nor the pause after an answer keeps it open."""
        self.collected = Deferred()
        site = metrics_site(self.collect, at_once, lambda: None, tuple, lambda: None)
        clock = Clock()
        connections = FewConnections(cast(Any, clock), site, "metrics", 60, 3)
        connections.doStart()
        self.addCleanup(connections.doStop)
        begun, asking, idle = (Scraper(connections) for _ in range(3))
        begun.channel.dataReceived(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
        clock.advance(30)
        asking.channel.dataReceived(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        idle.channel.dataReceived(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(len(connections.engaged), 1)
        begun.channel.dataReceived(b"x")
        clock.advance(30)
        closed = [each.disconnected for each in (begun, asking, idle)]
        self.assertEqual(closed, [True, False, False])
        clock.advance(30)
        closed = [each.disconnected for each in (begun, asking, idle)]
        self.assertEqual(closed, [True, False, True])
        self.collected.callback(filled(Samples({}, frozenset())))
        self.assertEqual(connections.engaged, set())
        self.assertIn(b"200 OK", asking.answer()[0])

    def test_head(self) -> None:
        """A probe with HEAD gets the status alone, and nothing is logged."""
        for reason, status in ((None, b"200 OK"), ("disk full", b"503")):
            self.reason = reason
            with capturedLogs() as events:
                head, body = self.get("/healthz", "HEAD")
            self.assertIn(status, head)
            self.assertEqual(body, b"")
            self.assertEqual([formatEvent(event) for event in events], [])

    def test_failed(self) -> None:
        """A scrape that cannot be made is an error of the server, and logged."""
        self.collected = fail(OSError("the disk is gone"))
        head, _ = self.get("/metrics")
        self.assertIn(b"500", head)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)

    def test_stopped(self) -> None:
        """One that a stopping server drops is not logged."""
        self.collected = fail(CancelledError())
        head, _ = self.get("/metrics")
        self.assertIn(b"500", head)

    def test_elsewhere(self) -> None:
        """Any other path does not exist."""
        head, _ = self.get("/secret")
        self.assertIn(b"404", head)


class ManyScrapersTests(SynchronousTestCase):
    """Several scrapers, and slow ones: memory has a bound."""

    def setUp(self) -> None:
        """A site whose scrapes take a while, and are larger than one piece."""
        self.under_way: list[Deferred[Samples]] = []
        self.site = metrics_site(
            self.collect, at_once, lambda: None, tuple, lambda: None
        )
        self.site.startFactory()
        self.addCleanup(self.site.stopFactory)

    def collect(self, names: frozenset[str]) -> Deferred[Samples]:
        """Begin one scrape."""
        self.under_way.append(Deferred())
        return self.under_way[-1]

    def end(self, value: int = 7) -> None:
        """End the one scrape that is under way."""
        samples = Samples({})
        family = samples.gauges("g", "words")
        for number in range(3 * PIECE_LINES):
            family.add(samples.labels(number=str(number)), value)
        (scrape,) = self.under_way
        self.under_way.clear()
        scrape.callback(samples)

    def scraper(self, **headers: str) -> Scraper:
        """One that has asked."""
        scraper = Scraper(self.site)
        scraper.ask(**headers)
        return scraper

    def test_shared(self) -> None:
        """Who asks for the same while a scrape is made shares it; the next one is made
        anew."""
        scrapers = [self.scraper() for _ in range(3)]
        self.end()
        self.assertEqual(self.under_way, [])
        bodies = {scraper.answer()[1] for scraper in scrapers}
        self.assertEqual(len(bodies), 1)
        self.assertIn(b'g{number="0"} 7\n', bodies.pop())
        later = self.scraper()
        self.end(8)
        self.assertIn(b'g{number="0"} 8\n', later.answer()[1])

    def test_others(self) -> None:
        """Who asks for something else waits until the first is made."""
        first = self.scraper()
        second = self.scraper(Accept_Encoding="gzip")
        self.assertEqual(len(self.under_way), 1)
        self.end(1)
        self.assertIn(b'g{number="0"} 1\n', first.answer()[1])
        self.assertEqual(second.answer()[1], b"")
        self.end(2)
        self.assertIn(b'g{number="0"} 2\n', gzip.decompress(second.answer()[1]))

    def test_failedForAll(self) -> None:
        """A scrape that fails fails for all that wait for it, and the next is made."""
        scrapers = [self.scraper() for _ in range(2)]
        self.under_way.pop().errback(OSError("the disk is gone"))
        for scraper in scrapers:
            self.assertIn(b"500", scraper.answer()[0])
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 2)
        later = self.scraper()
        self.end()
        self.assertIn(b"200 OK", later.answer()[0])

    def test_gone(self) -> None:
        """A scraper that leaves before the text is ready is not written to."""
        scraper = self.scraper()
        scraper.leave()
        self.end()
        self.assertEqual(scraper.value(), b"")
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_slow(self) -> None:
        """A scraper is written to as fast as it reads, and told how much it will be."""
        scraper = self.scraper()
        scraper.reads = False
        self.end()
        head, body = scraper.answer()
        sizes = [len(body)]
        for _ in range(4):
            scraper.read()
            sizes.append(len(scraper.answer()[1]))
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreater(len(set(sizes)), 3)
        self.assertIn(b"Content-Length: %d\r\n" % sizes[-1], head + b"\r\n")
        self.assertTrue(scraper.value().endswith(b" 7\n"))

    def test_cut(self) -> None:
        """Of too many answers that nobody reads the oldest is cut; one that was read
        does not count."""
        scrapers = []
        for number in range(MAX_ANSWERS + 2):
            scraper = self.scraper()
            scraper.reads = number == 0
            self.end()
            scrapers.append(scraper)
        cut = [scraper.disconnected for scraper in scrapers]
        self.assertEqual(cut, [False, True, *(False for _ in scrapers[2:])])
        for _ in range(5):
            scrapers[-1].read()
        self.assertTrue(scrapers[-1].value().endswith(b" 7\n"))

    def test_thread(self) -> None:
        """What a scraper accepts and the compression are worked out in threads."""
        threads = Threads()
        site = metrics_site(
            lambda names: succeed(filled(Samples({}))),
            threads,
            lambda: None,
            tuple,
            lambda: None,
        )
        site.startFactory()
        self.addCleanup(site.stopFactory)
        scraper = Scraper(site)
        scraper.ask(Accept_Encoding="gzip")
        for _ in range(2):
            self.assertEqual(scraper.value(), b"")
            threads.run()
        self.assertIn(b"Content-Encoding: gzip", scraper.answer()[0])
