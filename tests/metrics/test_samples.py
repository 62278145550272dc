"""Tests of families of samples."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics.samples import Samples, constant_labels


class SamplesTests(SynchronousTestCase):
    """One family per name, the common labels on every sample."""

    def test_commonLabelsWin(self) -> None:
        """A label of a sample cannot replace a common one."""
        samples = Samples({"cluster": "c"})
        samples.gauge("g", "words", 1, cluster="other", topic="T")
        samples.gauge("g", "words", 2, topic="U")
        (family,) = samples.families()
        self.assertEqual(
            [(s.name, s.labels, s.value) for s in family.samples],
            [
                ("g", {"cluster": "c", "topic": "T"}, 1),
                ("g", {"cluster": "c", "topic": "U"}, 2),
            ],
        )

    def test_counter(self) -> None:
        """A counter's family has no suffix, its samples have."""
        samples = Samples({})
        samples.counter("in_total", "words", 5)
        (family,) = samples.families()
        self.assertEqual((family.name, family.type), ("in", "counter"))
        self.assertEqual([s.name for s in family.samples], ["in_total"])

    def test_histogram(self) -> None:
        """Classes are added up, the last bucket is the count."""
        samples = Samples({})
        samples.histogram("h", "words", [1, 10], [2, 3, 4], 99.5)
        (family,) = samples.families()
        self.assertEqual(
            [(s.name, s.labels.get("le"), s.value) for s in family.samples],
            [
                ("h_bucket", "1.0", 2),
                ("h_bucket", "10.0", 5),
                ("h_bucket", "+Inf", 9),
                ("h_count", None, 9),
                ("h_sum", None, 99.5),
            ],
        )

    def test_constantLabels(self) -> None:
        """Items of metricsLabel without exactly one colon are skipped."""
        self.assertEqual(
            constant_labels("zone:a, rack : 7 ,bad,x:y:z,"), {"zone": "a", "rack": "7"}
        )
