"""Tests of the text of a scrape, read with Prometheus's own parsers."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.samples import PIECE_LINES, Samples, constant_labels
from tests.metrics.scraped import parsed


class SamplesTests(SynchronousTestCase):
    """One family per name, the common labels on every sample."""

    def test_commonLabelsWin(self) -> None:
        """A label of a sample cannot replace a common one."""
        samples = Samples({"cluster": "c"})
        samples.gauge("g", "words", 1, cluster="other", topic="T")
        samples.gauge("g", "words", 2.5, topic="U")
        (family,) = parsed(samples)
        self.assertEqual(
            [(s.name, s.labels, s.value) for s in family.samples],
            [
                ("g", {"cluster": "c", "topic": "T"}, 1),
                ("g", {"cluster": "c", "topic": "U"}, 2.5),
            ],
        )

    def test_counter(self) -> None:
        """A counter's family has no suffix in OpenMetrics, its samples have."""
        samples = Samples({})
        samples.counter("in_total", "words", 5)
        (family,) = parsed(samples)
        self.assertEqual((family.name, family.type), ("in", "counter"))
        self.assertEqual([s.name for s in family.samples], ["in_total"])
        self.assertIn(b"# TYPE in_total counter\n", b"".join(samples.pieces(False)))
        self.assertIn(b"# TYPE in counter\n", b"".join(samples.pieces(True)))

    def test_histogram(self) -> None:
        """Classes are added up, the last bucket is the count."""
        for labels in ({}, {"topic": "T"}):
            samples = Samples({})
            samples.histogram("h", "words", [1, 10], [2, 3, 4], 99.5, **labels)
            (family,) = parsed(samples)
            self.assertEqual(
                [(s.name, s.labels, s.value) for s in family.samples],
                [
                    ("h_bucket", {"le": "1.0", **labels}, 2),
                    ("h_bucket", {"le": "10.0", **labels}, 5),
                    ("h_bucket", {"le": "+Inf", **labels}, 9),
                    ("h_count", labels, 9),
                    ("h_sum", labels, 99.5),
                ],
            )

    def test_awkwardLabels(self) -> None:
        """What clients put into names comes back as it was; text that cannot be encoded
        does not break the rest."""
        samples = Samples({"zone": 'a"b'})
        family = samples.gauges("g", "words")
        family.add(samples.labels(topic='a"b\\c\nd'), 3)
        family.add(samples.labels(topic="\udc80"), 4)
        (read,) = parsed(samples)
        self.assertEqual(
            [(s.labels, s.value) for s in read.samples],
            [
                ({"topic": 'a"b\\c\nd', "zone": 'a"b'}, 3),
                ({"topic": "?", "zone": 'a"b'}, 4),
            ],
        )

    def test_families(self) -> None:
        """A family of topics and groups has a sample for each set of labels, and is one
        with totals of its name; one without samples is not shown."""
        samples = Samples({})
        family = samples.counters("in_total", "words")
        samples.counters("out_total", "words")
        samples.histograms("h", "words", [1])
        for number in range(PIECE_LINES + 3):
            family.add(samples.labels(topic=f"T{number}"), number)
        samples.counter("in_total", "words", 7, topic="all")
        (read,) = parsed(samples)
        self.assertEqual(len(read.samples), PIECE_LINES + 4)
        values = {s.labels["topic"]: s.value for s in read.samples}
        self.assertEqual((values["T2"], values["all"]), (2, 7))

    def test_names(self) -> None:
        """Samples are picked by their final names; others are neither shown nor take
        room."""
        names = frozenset(["in_total", "h_count"])
        samples = Samples({}, names, most=2)
        labels = samples.labels(topic="T")
        samples.gauges("g", "words").add(labels, 1)
        samples.counters("in_total", "words").add(labels, 1)
        histograms = samples.histograms("h", "words", [1])
        histograms.add(labels, [1, 2], 5.0)
        samples.histogram("h", "words", [1], [1, 1], 5.0, topic="all")
        text = b"".join(samples.pieces(False)).decode()
        families = text_string_to_metric_families(text)
        found = {(s.name, s.value) for f in families for s in f.samples}
        self.assertEqual(found, {("in_total", 1), ("h_count", 3), ("h_count", 2)})
        self.assertEqual(samples.left_out, 0)

    def test_bound(self) -> None:
        """Beyond the bound samples of topics and groups are left out and counted, a
        histogram as a whole; totals are not."""
        samples = Samples({}, most=3)
        gauges = samples.gauges("g", "words")
        for number in range(2):
            gauges.add(samples.labels(topic=str(number)), number)
        samples.histograms("h", "words", [1]).add(samples.labels(topic="T"), [1, 2], 3)
        self.assertEqual(samples.left_out, 4)
        for number in range(2, 4):
            gauges.add(samples.labels(topic=str(number)), number)
        self.assertEqual(samples.left_out, 5)
        samples.gauge("total", "words", 9)
        read = {f.name: len(f.samples) for f in parsed(samples)}
        self.assertEqual(read, {"g": 3, "total": 1})

    def test_constantLabels(self) -> None:
        """Items of metricsLabel without exactly one colon are skipped, and names that
        Prometheus does not take are changed."""
        self.assertEqual(
            constant_labels("zone:a, rack : 7 ,bad,x:y:z,:n,data-centre:b,1st:c"),
            {"zone": "a", "rack": "7", "data_centre": "b", "_1st": "c"},
        )
