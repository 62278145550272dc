"""How long messages took to be stored."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.stats.store_latency import BOUNDS, SHOWN, StoreLatency


class PutTimesTests(SynchronousTestCase):
    """Classes of times, and the worst of hundred."""

    def setUp(self) -> None:
        """No times yet."""
        self.times = StoreLatency()

    def shown(self) -> dict[str, int]:
        """The distribution, by class."""
        text = self.times.distribution()
        self.assertTrue(text.endswith(" "), text)
        pairs = [part.rpartition(":") for part in text.split()]
        return {name.strip("[]"): int(count) for name, _, count in pairs}

    def test_bounds(self) -> None:
        """The classes reach to ten seconds, and those that are shown end at bounds."""
        self.assertEqual((BOUNDS[0], BOUNDS[-1], len(BOUNDS)), (1, 10_000, 75))
        self.assertLess({bound for _, bound in SHOWN if bound}, set(BOUNDS))

    def test_beforeTheFirstMinute(self) -> None:
        """Until a minute is over there is nothing to show, and tools expect null."""
        self.times.add(3.0, 5)
        self.assertEqual(self.times.distribution(), "null")
        self.assertEqual(self.times.quantile_ms(0.99), 0.0)

    def test_text(self) -> None:
        """The text is the one that exporters cut up."""
        self.times.add(0.2, 7)
        self.times.add(1234.0, 1)
        self.times.end_minute()
        self.assertEqual(
            self.times.distribution(),
            "[<=0ms]:7 [0~10ms]:0 [10~50ms]:0 [50~100ms]:0 [100~200ms]:0 "
            "[200~500ms]:0 [500ms~1s]:0 [1~2s]:1 [2~3s]:0 [3~4s]:0 [4~5s]:0 "
            "[5~10s]:0 [10s~]:0 ",
        )

    def test_edges(self) -> None:
        """A time at a bound belongs to the class that begins there."""
        for ms in (0, 0.999, 1, 9.99, 10, 50, 100, 200, 500, 1000, 5000, 10_000, 1e9):
            self.times.add(ms, 1)
        self.times.end_minute()
        shown = self.shown()
        self.assertEqual(shown["<=0ms"], 2)
        self.assertEqual(shown["0~10ms"], 2)
        self.assertEqual(shown["10~50ms"], 1)
        self.assertEqual(shown["50~100ms"], 1)
        self.assertEqual(shown["500ms~1s"], 1)
        self.assertEqual(shown["1~2s"], 1)
        self.assertEqual(shown["5~10s"], 1)
        self.assertEqual(shown["10s~"], 2)
        self.assertEqual(sum(shown.values()), 13)

    def test_minutes(self) -> None:
        """Each minute shows the one before; the longest is that since the start."""
        self.times.add(700.0, 1)
        self.times.end_minute()
        self.times.add(3.0, 2)
        self.assertEqual(self.shown()["500ms~1s"], 1)
        self.times.end_minute()
        self.assertEqual(self.shown()["500ms~1s"], 0)
        self.assertEqual(self.shown()["0~10ms"], 2)
        self.assertEqual(self.times.longest_ms, 700.0)

    def test_quantiles(self) -> None:
        """The share is cut inside of its class, as if times were spread evenly."""
        self.times.add(0.5, 90)
        self.times.add(60.0, 10)
        self.times.end_minute()
        self.assertEqual(self.times.quantile_ms(0.9), 1.0)
        self.assertEqual(self.times.quantile_ms(0.95), 62.5)
        self.times.add(20_000.0, 1)
        self.times.end_minute()
        self.assertEqual(self.times.quantile_ms(0.99), 10_000.0)

    def test_backwards(self) -> None:
        """A clock that was set back counts as no time."""
        self.times.add(-5.0, 1)
        self.times.end_minute()
        self.assertEqual(self.shown()["<=0ms"], 1)
        self.assertEqual(self.times.longest_ms, 0.0)
