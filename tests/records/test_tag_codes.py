"""The search for tag codes in queue entries."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import FILLED, encode
from rocketbroker.records.tag_codes import TagCodes

ROOM = 1 << 20


def entries(*codes: int, size: int = 100) -> bytes:
    """An entry of each code."""
    return b"".join(encode(n * size, size, code) for n, code in enumerate(codes))


class TagCodesTests(SynchronousTestCase):
    """What is picked, and what is not worth it."""

    def numbers(self, wanted: TagCodes, blob: bytes, most: int = 32) -> list[int]:
        """The numbers of the picked."""
        picked = wanted.pick(blob, most, ROOM)
        assert picked is not None
        numbers, found, passed = picked
        whole = [blob[number * 20 : number * 20 + 20] for number in numbers]
        self.assertEqual(found, b"".join(whole))
        full = len(numbers) == most
        self.assertEqual(passed, numbers[-1] + 1 if full else len(blob) // 20)
        return numbers

    def test_call(self) -> None:
        """Of a code 32 bits count; one that is not known may be wanted."""
        wanted = TagCodes([5, -1])
        for code in (5, -1, 5 + (1 << 32), 0xFFFFFFFF, None):
            self.assertTrue(wanted(code))
        self.assertFalse(wanted(6))
        self.assertFalse(TagCodes(())(0))

    def test_pick(self) -> None:
        """Entries of wanted codes are picked, and not all that look like them."""
        codes = 5, 0x105, 5 + (1 << 32), -1, 0xFFFFFFFF, 0xFF, 7, -251, 5, *range(6, 20)
        for wanted in (TagCodes([5]), TagCodes([5, -1]), TagCodes([9]), TagCodes(())):
            expected = [n for n, code in enumerate(codes) if wanted(code)]
            self.assertEqual(self.numbers(wanted, entries(*codes)), expected)
        self.assertEqual(self.numbers(TagCodes([5]), b""), [])

    def test_elsewhere(self) -> None:
        """The bytes of a code elsewhere in an entry are none."""
        blob = encode(5 << 32, 5, 0) + encode(5, 0x0500, 1)
        self.assertEqual(self.numbers(TagCodes([5]), blob), [])

    def test_most(self) -> None:
        """No more are picked than wanted, and the others not passed."""
        blob = entries(1, 5, 1, 5, 1, 5, 1)
        for most in (1, 2, 3, 4):
            expected = [1, 3, 5][:most]
            self.assertEqual(self.numbers(TagCodes([5]), blob, most), expected)

    def test_many(self) -> None:
        """Nothing is picked where most are wanted, or look so."""
        self.assertIsNone(TagCodes([5]).pick(entries(5, 5, 1), 32, ROOM))
        self.assertIsNone(TagCodes([5]).pick(entries(5, 0x105, 1), 32, ROOM))
        self.assertIsNotNone(TagCodes([5]).pick(entries(5, 5, 1, 1), 32, ROOM))

    def test_room(self) -> None:
        """Nothing is picked where bytes may be the limit: those of the picked and the
        largest other one, as far as its upper bytes tell."""
        wanted = TagCodes([5])
        blob = entries(5, 1, 1, 5, size=1000)
        self.assertIsNone(wanted.pick(blob, 32, 2999))
        self.assertIsNotNone(wanted.pick(blob, 32, 3024))
        for size in (1 << 16, 1 << 24, -1):
            mixed = blob + encode(0, size, 1)
            self.assertIsNone(wanted.pick(mixed, 32, 66_000))
        self.assertIsNotNone(wanted.pick(blob, 32, 66_000))
        self.assertIsNone(wanted.pick(blob, 32, 1999))
        self.assertIsNone(wanted.pick(blob + FILLED, 32, ROOM))
