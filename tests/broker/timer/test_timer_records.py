"""Tests of L{rocketbroker.broker.timer.timer_records}."""

from __future__ import annotations

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.broker.messages.timer_messages import out_ms_of
from rocketbroker.broker.timer.timer_records import TimerRecords
from tests.broker.timer.case import TimerCase


class DestinyTests(TimerCase):
    """When a message is due, and where it belongs."""

    def test_remembered(self) -> None:
        """What is remembered of messages says the same as their own properties,
        wherever in these it stands, and however often."""
        topic, out, queue = "REAL_TOPIC=A", "TIMER_OUT_MS=5000", "REAL_QID=3"
        for own in (
            [topic, "UNIQ_KEY=U", out, queue],
            [topic, "UNIQ_KEY=V", out, queue],
            [topic, "REAL_TOPIC=B", out, queue],
            ["REAL_TOPIC=B", topic, out, queue],
            [topic, "REAL_TOPIC=", out, queue],
            ["REAL_TOPIC=", topic, out, queue],
            [topic, out, queue, "REAL_TOPIC=B"],
            [topic, out, queue, "REAL_QID=4"],
            [topic, "TIMER_OUT_MS=7000", out, queue],
            ["UNIQ_KEY=U", topic, out, queue],
            ["UNIQ_KEY=U", out, topic, queue],
            [topic, queue, out],
            [topic, "REAL_QID=4", out],
            [topic, out],
            [out, queue],
            [topic, queue],
            [topic],
            [],
        ):
            text = "".join(f"{each}\x02" for each in own).replace("=", "\x01")
            self.rig.append(properties=text.encode())
        records = TimerRecords(self.rig.store)
        found = self.rig.records()
        wanted = [(out_ms_of(m.property_bytes), destination(m)) for m in found]
        self.assertEqual(wanted[:3], [(5000, ("A", 3))] * 2 + [(5000, ("B", 3))])
        for messages in (found, found[::-1]):
            self.assertEqual(
                [records.destiny(each) for each in messages],
                wanted if messages is found else wanted[::-1],
            )
