"""Numbers that are put back into the properties of a record."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.properties import decode
from rocketbroker.store.lostnumbers import with_all_numbers

KNOWN = {"INNER_NUM": 5, "INNER_BASE": 40}
HEAD = b"head"
RIGHT = b"KEYS\x01k\x02INNER_BASE\x0140\x02TAGS\x01a\x02INNER_NUM\x015\x02"


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

    def test_noRoom(self) -> None:
        """Nothing is taken away for them that may be right."""
        text = RIGHT.replace(b"INNER_NUM", b"SOMETHING")
        self.assertIsNone(with_all_numbers(text, 0, KNOWN))
        self.assertIsNone(with_all_numbers(b"", 0, KNOWN))
        self.assertIsNone(with_all_numbers(b"\0" * 20, 0, KNOWN))
