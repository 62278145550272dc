"""Tests of what the metrics port answers, read with Prometheus's own parser."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.site import metrics_site


def families() -> Iterable[Metric]:
    """Two families, one of them with an awkward label."""
    counter = CounterMetricFamily("rocketmq_messages_in", "in", labels=["topic"])
    counter.add_metric(['a"b\\c\nd'], 3)
    yield counter
    yield GaugeMetricFamily("rocketmq_topic_number", "topics", value=7)


class SiteTests(SynchronousTestCase):
    """Requests as Prometheus and load balancers send them."""

    reason: str | None = None
    troubles: Sequence[str] = ()
    prepared: Deferred[None] | None = None

    def get(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[bytes, bytes]:
        """Head and body of the answer to a request."""
        site = metrics_site(
            families,
            lambda: self.prepared or succeed(None),
            lambda: self.reason,
            lambda: self.troubles,
        )
        site.startFactory()
        self.addCleanup(site.stopFactory)
        channel = site.buildProtocol(None)
        assert channel is not None
        transport = StringTransport()
        channel.makeConnection(transport)
        lines = [f"{method} {path} HTTP/1.0", "Host: x"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
        channel.dataReceived(("\r\n".join(lines) + "\r\n\r\n").encode())
        if "leave" in headers:
            channel.connectionLost(Failure(ConnectionDone()))
        head, _, body = transport.value().partition(b"\r\n\r\n")
        return head, body

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
        self.assertIn(b"rocketmq_topic_number 7.0", gzip.decompress(body))

    def test_picked(self) -> None:
        """name[] picks samples by their final name."""
        _, body = self.get("/metrics?name[]=rocketmq_topic_number")
        self.assertIn(b"rocketmq_topic_number 7.0", body)
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
        """A scrape that cannot be prepared is an error of the server, and logged."""
        self.prepared = fail(OSError("the disk is gone"))
        head, _ = self.get("/metrics")
        self.assertIn(b"500", head)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)

    def test_gone(self) -> None:
        """A scraper that leaves before the text is ready is not written to."""
        waiting: Deferred[None] = Deferred()
        self.prepared = waiting
        head, _ = self.get("/metrics", leave="yes")
        waiting.callback(None)
        self.assertEqual(head, b"")
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_elsewhere(self) -> None:
        """Any other path does not exist."""
        head, _ = self.get("/secret")
        self.assertIn(b"404", head)
