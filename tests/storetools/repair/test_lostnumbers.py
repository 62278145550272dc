"""Numbers that are put back into the properties of a record."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.properties import decode
from rocketbroker.storetools.repair.lostnumbers import (
    with_all_numbers,
    with_right_numbers,
)

KNOWN = {"INNER_NUM": 5, "INNER_BASE": 40}
HEAD = b"head"
RIGHT = b"KEYS\x01k\x02INNER_BASE\x0140\x02TAGS\x01a\x02INNER_NUM\x015\x02"


class RightNumbersTests(SynchronousTestCase):
    """The level of a message that waits."""

    def right(self, properties: bytes, level: int = 12) -> bytes:
        """What becomes of them."""
        record = HEAD + properties
        found = with_right_numbers(
            record, len(HEAD), b"SCHEDULE_TOPIC_XXXX", {"DELAY": level}
        )
        self.assertEqual(len(found), len(record))
        return found[len(HEAD) :]

    def test_other(self) -> None:
        """A number that is another one stays: it may be the queue that is wrong."""
        for text in (b"DELAY\x013\x02", b"DELAY\x0113\x02A\x01b\x02"):
            self.assertEqual(self.right(text), text)

    def test_longer(self) -> None:
        """What is too short for the right one stays, and so does all behind it."""
        for text in (b"DELAY\x01x\x02A\x01b\x02", b"DELAY\x01x"):
            self.assertEqual(self.right(text), text)
            self.assertEqual(self.right(text, 3), text.replace(b"x", b"3"))


class AllNumbersTests(SynchronousTestCase):
    """Properties of an inner batch, whose unit knows its two numbers."""

    def mended(self, properties: bytes) -> dict[str, str]:
        """The properties that are there then, in the same room."""
        record = with_all_numbers(HEAD + properties, len(HEAD), KNOWN)
        assert record is not None
        self.assertEqual(len(record), len(HEAD + properties))
        self.assertTrue(record.startswith(HEAD))
        return decode(record[len(HEAD) :])

    def test_good(self) -> None:
        """What is there already stays as it is."""
        for text in (RIGHT, RIGHT[:-1]):
            self.assertEqual(with_all_numbers(text, 0, KNOWN), text)

    def test_other(self) -> None:
        """So do other numbers than the unit has."""
        text = RIGHT.replace(b"\x015\x02", b"\x016\x02").replace(b"40", b"41")
        self.assertEqual(with_all_numbers(text, 0, KNOWN), text)

    def test_likest(self) -> None:
        """What is no more than two thirds of one is taken for something else."""
        mark = b"INNER_NUM\x015\x02"
        before = RIGHT[: -len(mark)]
        for count in range(1, 10):
            text = before + b"xyzuvwabc"[:count] + mark[count:]
            if count <= 4:
                self.assertEqual(self.mended(text), decode(RIGHT))
            else:
                self.assertIsNone(with_all_numbers(text, 0, KNOWN))

    def test_names(self) -> None:
        """Where bytes of the names are others both are written over; everything else
        stays."""
        wanted = decode(RIGHT)
        for first, second in ((b"_BA", b"xBx"), (b"\x02INNER_B", b"xINNxR_B")):
            for other in (b"INNER_NUM", b"INN\0R_NUM", b"INNER_N\x02M"):
                text = RIGHT.replace(b"INNER_NUM", other).replace(first, second)
                for each in (text, text[:-1]):
                    self.assertEqual(self.mended(each), wanted)

    def test_first(self) -> None:
        """So they are where they stand at the beginning."""
        text = b"XNNER_NUM\x015\x02INNER_BASE\x0140\x02A\x01b\x02"
        self.assertEqual(
            self.mended(text), {"INNER_NUM": "5", "INNER_BASE": "40", "A": "b"}
        )

    def test_rubbish(self) -> None:
        """Where nothing is left of them they take the place of what is none."""
        wanted = decode(RIGHT)
        del wanted["TAGS"]
        size = len(RIGHT)
        for rubbish in (bytes(size), b"\xff\x02" * size):
            for start in range(8):
                text = RIGHT[:start] + rubbish[: size - start]
                found = self.mended(text)
                found.pop("KEYS", None)
                self.assertEqual(found, {"INNER_NUM": "5", "INNER_BASE": "40"})
            text = RIGHT[: -len("TAGS_a_INNER_NUM_5_")] + rubbish[:19]
            self.assertEqual(self.mended(text), wanted)

    def test_room(self) -> None:
        """It has to be large enough for all of them, and the marks between properties
        are not part of it, wherever it stands."""
        long, least = b"K\x01%b\x02" % (b"k" * 40), len(b"INNER_NUM_5_INNER_BASE_40")
        wanted = {"INNER_NUM": "5", "INNER_BASE": "40"}
        for rubbish in (
            b"\0" * 80, b"\xff" * 80, b"k\x01" + b"\0" * 80,
            b"v" * 80, b"\x01" + b"v" * 80,
        ):  # fmt: skip
            for before in (b"", long):
                for behind in (b"", b"\x02", b"\x02A\x01b\x02"):
                    short = before + rubbish[: least - 1] + behind
                    self.assertIsNone(with_all_numbers(short, 0, KNOWN), short)
                    others = decode(before + behind[1:])
                    found = self.mended(before + rubbish[:least] + behind)
                    self.assertEqual(found, wanted | others)

    def test_noRoom(self) -> None:
        """Nothing is taken away for them that may be right."""
        text = RIGHT.replace(b"INNER_NUM", b"SOMETHING")
        self.assertIsNone(with_all_numbers(text, 0, KNOWN))
        self.assertIsNone(with_all_numbers(b"", 0, KNOWN))
        self.assertIsNone(with_all_numbers(b"\0" * 20, 0, KNOWN))
