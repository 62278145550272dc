"""Offset ids and unique keys."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import hosts, ids
from rocketbroker.records.malformed import Malformed
from tests.examples import examples


def ms(*parts: int) -> int:
    """A moment in UTC, from year, month, day and so on."""
    year, month, day, hour, minute, second = [*parts, 0, 0, 0][:6]
    moment = datetime.datetime(
        year, month, day, hour, minute, second, tzinfo=datetime.UTC
    )
    return int(moment.timestamp() * 1000)


class MonthTests(SynchronousTestCase):
    """When a month began."""

    @examples()
    @given(
        st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2400, 1, 1)),
        st.integers(-14, 14),
    )
    def test_asDatetime(self, moment: datetime.datetime, hours: int) -> None:
        """As the standard library has it, leap years included."""
        moment = moment.replace(tzinfo=datetime.UTC)
        zone = datetime.timezone(datetime.timedelta(hours=hours))
        local = moment.astimezone(zone)
        start = datetime.datetime(local.year, local.month, 1, tzinfo=zone)
        found = ids.month_start_ms(int(moment.timestamp()) * 1000, hours * 3_600_000)
        self.assertEqual(found, int(start.timestamp()) * 1000)


class OffsetIdTests(SynchronousTestCase):
    """Where a message is stored, as text."""

    def test_many(self) -> None:
        """Those of many records are the same, one after the other."""
        for host in (bytes(8), bytes(range(20))):
            for places in ([], [7], [0, 1 << 40, (1 << 63) - 1]):
                single = [ids.offset_id(host, place) for place in places]
                self.assertEqual(ids.offset_ids(host, places), ",".join(single))

    def test_vectors(self) -> None:
        """Both families, as C{docs/facts} has them."""
        for address, position, text in (
            ("10.0.0.1", 123456, "0A00000100002A9F000000000001E240"),
            ("10.0.0.2", 4096, "0A00000200002A9F0000000000001000"),
            (
                "fe80::1",
                123456,
                "FE80000000000000000000000000000100002A9F000000000001E240",
            ),
        ):
            host = hosts.encode(address, 10911)
            self.assertEqual(ids.offset_id(host, position), text)
            self.assertEqual(ids.parse_offset_id(text), (host, position))
            self.assertEqual(ids.parse_offset_id(text.lower()), (host, position))

    @examples()
    @given(st.text())
    def test_anyText(self, text: str) -> None:
        """What is not an id is refused."""
        try:
            ids.parse_offset_id(text)
        except Malformed:
            return
        self.assertIn(len(text), (32, 56))

    def test_cut(self) -> None:
        """Part of an id, or more than one, is none."""
        text = "0A00000100002A9F000000000001E240"
        for size in range(len(text)):
            self.assertRaises(Malformed, ids.parse_offset_id, text[:size])
        self.assertRaises(Malformed, ids.parse_offset_id, text + "00")
        self.assertRaises(Malformed, ids.parse_offset_id, text[:-2] + " 4")


class UniqueKeyTests(SynchronousTestCase):
    """The id that a producer gives."""

    def make(self, first: int = 0, **settings: int) -> ids.UniqueKeys:
        """A source of keys whose clock is C{self.now_ms}."""
        address = bytes([10, 0, 0, 1])
        return ids.UniqueKeys(
            address, 0x12345, 0xCAFEBABE, lambda: self.now_ms, first, **settings
        )

    def test_parts(self) -> None:
        """Address, process, token, time in the month, counter."""
        self.now_ms = ms(2026, 11, 2) + 5
        keys = self.make(first=7)
        self.assertEqual(keys.make(), "0A0000012345CAFEBABE" + "05265C05" + "0007")
        self.assertTrue(keys.make().endswith("05265C050008"))
        self.assertEqual(keys.made, 2)

    def test_wraps(self) -> None:
        """The counter begins again behind its last value."""
        self.now_ms = ms(2026, 11, 2)
        keys = self.make(first=0xFFFF)
        self.assertTrue(keys.make().endswith("FFFF"))
        self.assertTrue(keys.make().endswith("0000"))

    def test_months(self) -> None:
        """The base moves with the month; a clock set back counts as its start."""
        self.now_ms = ms(2026, 11, 30, 23, 59, 59)
        keys = self.make()
        keys.make()
        self.now_ms = ms(2026, 12, 1) + 3
        self.assertEqual(keys.make()[-12:-4], f"{3:08X}")
        self.now_ms = ms(2026, 11, 30, 23, 59, 59)
        self.assertEqual(keys.make()[-12:-4], f"{0:08X}")

    def test_localTime(self) -> None:
        """The month begins by local time."""
        self.now_ms = ms(2026, 11, 30, 23)
        keys = self.make(utc_offset_ms=2 * 3_600_000)
        self.assertEqual(keys.make()[-12:-4], f"{3_600_000:08X}")

    def test_v6(self) -> None:
        """An IPv6 address makes it 56 characters."""
        keys = ids.UniqueKeys(bytes(16), 1, 2, lambda: ms(2026, 1, 1))
        key = "00" * 16 + "0001" + "00000002" + "00000000" + "0000"
        self.assertEqual(keys.make(), key)
