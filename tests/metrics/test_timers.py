"""Tests of L{rocketbroker.metrics.timers}."""

from __future__ import annotations

from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.timers import add_timers
from tests.broker.timer.case import TimerCase
from tests.metrics.scraped import existing, parsed


class TimerFamiliesTests(TimerCase):
    """Counters in, samples out."""

    def values(self) -> dict[tuple[str, str], float]:
        """All samples, by name and topic or bound."""
        samples = Samples({"cluster": "c"})
        for _ in add_timers(samples, self.timers, existing(self.rig)):
            pass
        found = [s for family in parsed(samples) for s in family.samples]
        return {
            (s.name, s.labels.get("topic", s.labels.get("timer_bound_s", ""))): s.value
            for s in found
            if "le" not in s.labels
        }

    def test_counts(self) -> None:
        """What waits, came and was delivered, by topic, and how far it all is."""
        for seconds in (2, 3, 40, 100):
            self.send(seconds)
        self.pass_by(5)
        values = self.values()
        for name, topic, value in (
            ("rocketmq_timing_messages", "T", 2),
            ("rocketmq_timer_enqueue_total", "T", 4),
            ("rocketmq_timer_dequeue_total", "T", 2),
            ("rocketmq_delay_message_latency_seconds_count", "T", 4),
            ("rocketmq_delay_message_latency_seconds_sum", "T", 1 + 2 + 39 + 99),
            ("rocketmq_timer_dequeue_lag", "", 2),
            ("rocketmq_timer_enqueue_lag", "", 0),
            ("rocketmq_timer_message_snapshot", "60", 1),
            ("rocketmq_timer_message_snapshot", "300", 1),
            ("rocketbroker_timer_lost_total", "", 0),
        ):
            self.assertEqual(values[name, topic], value, name)

    def test_off(self) -> None:
        """Where timers are switched off there are none."""
        self.begin(timerWheelEnable="false")
        self.assertEqual(self.values(), {})
