"""Tests of L{rocketbroker.store.index.keys}."""

from __future__ import annotations

from itertools import chain, product

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.hashing import index_hash, unsigned_hash
from rocketbroker.store.index.keys import (
    FEW,
    LONGEST,
    MAX_KEYS,
    codes_of,
    keys_of,
    tags_code,
)

TOPICS = ("T", "%RETRY%group")

#: Properties of all shapes: of each, how number C{n} of it looks.
SHAPES = {
    "ordinary": "KEYS\x01k{n:07d}\x02UNIQ_KEY\x017F0000010000{n:08X}\x02TAGS\x01A\x02",
    "lastIsOpen": "TAGS\x01A\x02UNIQ_KEY\x01{n:032d}",
    "onlyKeys": "KEYS\x01order-{n:010d}",
    "none": "TAGS\x01{n:05d}\x02",
    "empty": "KEYS\x01\x02A\x01{n:05d}\x02",
    "lengths": "UNIQ_KEY\x01U{n}\x02KEYS\x01{n}",
    "several": "KEYS\x01a{n:05d} b{n:05d}  c\x02UNIQ_KEY\x01U\x02",
    "same": "KEYS\x01k\x02UNIQ_KEY\x01U\x02A\x01{n:05d}",
    "twice": "KEYS\x01a{n:05d}\x02KEYS\x01b{n:05d}\x02UNIQ_KEY\x01{n:05d}\x02",
    "batch": "UNIQ_KEY\x01{n:05d}\x02WAIT\x01true\x02UNIQ_KEY\x01{n:06d}\x02",
    "endOfLast": "KEYS\x01a{n:05d}\x02X_KEYS\x01b{n:05d}\x02",
    "endOfAnother": "X_KEYS\x01a{n:05d}\x02KEYS\x01b{n:05d}\x02",
    "inAValue": "X\x01a KEYS\x01{n:05d}\x02UNIQ_KEY\x01{n:05d}\x02",
    "notAscii": "KEYS\x01ü{n:05d}\x02UNIQ_KEY\x01{n:05d}\x02",
    "long": "KEYS\x01" + "x" * LONGEST + "{n:05d}\x02",
}


def slowly(topic: str, properties: bytes) -> tuple[int, ...]:
    """What L{codes_of} has to say of a message."""
    return tuple(index_hash(topic, key) for key in keys_of(properties))


class KeysTests(SynchronousTestCase):
    """Keys in a properties string."""

    def test_last(self) -> None:
        """Of two of one name the last counts; another's end is not a name."""
        properties = b"KEYS\x01a\x02KEYS\x01b\x02X_KEYS\x01c\x02"
        self.assertEqual(keys_of(properties), ["b"])

    def test_open(self) -> None:
        """The last property may have no end."""
        self.assertEqual(keys_of(b"UNIQ_KEY\x01u"), ["u"])

    def test_tagsCode(self) -> None:
        """Java's brokers have an entry for all tags together, if there are any."""
        prefix = unsigned_hash("T#")
        code = tags_code(prefix, b"KEYS\x01k\x02TAGS\x01A B\x02")
        self.assertEqual(code, index_hash("T", "T#A B"))
        for properties in (b"KEYS\x01k\x02", b"TAGS\x01\x02", b"X_TAGS\x01A\x02", b""):
            self.assertIsNone(tags_code(prefix, properties))

    def test_none(self) -> None:
        """Without keys there are none."""
        self.assertEqual(keys_of(b"KEYS\x01 \x02UNIQ_KEY\x01\x02"), [])

    def test_many(self) -> None:
        """Not more than a limit."""
        for count in (MAX_KEYS, MAX_KEYS + 1):
            properties = b"KEYS\x01" + b"k " * count + b"\x02"
            self.assertEqual(len(keys_of(properties)), MAX_KEYS)


class CodesTests(SynchronousTestCase):
    """The hashes of the keys of many messages."""

    def check(self, topics: list[str], properties: list[bytes]) -> None:
        """They are those of each message by itself."""
        prefixes = [unsigned_hash(topic + "#") for topic in topics]
        expected = [slowly(*each) for each in zip(topics, properties, strict=True)]
        codes, counts = codes_of(prefixes, properties)
        self.assertEqual(list(codes), list(chain.from_iterable(expected)))
        if isinstance(counts, int):
            counts = [counts] * len(topics)
        self.assertEqual(counts, list(map(len, expected)))

    def test_shapes(self) -> None:
        """Messages of one shape, whether there are many or few."""
        for text in SHAPES.values():
            for count in (1, FEW - 1, FEW, 100):
                rows = [text.format(n=n * 7).encode() for n in range(count)]
                self.check(["T"] * count, rows)

    def test_topics(self) -> None:
        """Messages of several topics."""
        rows = [SHAPES["ordinary"].format(n=n).encode() for n in range(100)]
        self.check([TOPICS[n % 2] for n in range(100)], rows)

    def test_mixed(self) -> None:
        """Messages of all shapes in turn, in their order."""
        texts = list(SHAPES.values())
        rows = [texts[n % len(texts)].format(n=n).encode() for n in range(400)]
        self.check([TOPICS[n % 3 % 2] for n in range(400)], rows)

    def test_equalLengths(self) -> None:
        """Messages of two shapes and one length, as of POP in turn."""
        point, ack = (
            "UNIQ_KEY\x01T@0@{n:06d}@G@ck\x02TAGS\x01ck\x02",
            "UNIQ_KEY\x01T@0@-1@{n}@@ack\x02TAGS\x01bAck\x02",
        )
        rows = [(point, ack)[n % 2].format(n=n % 10).encode() for n in range(400)]
        self.assertEqual(len(set(map(len, rows))), 1)
        self.check([TOPICS[n % 3 % 2] for n in range(400)], rows)

    def test_oneIsOther(self) -> None:
        """A message among many of one shape that has only its length, wherever it
        differs."""
        rows = [SHAPES["ordinary"].format(n=n).encode() for n in range(20)]
        for at in range(len(rows[0])):
            for unit in (b"\x02", b" ", b"\xff", b"K", b"\x01"):
                other = rows[13][:at] + unit + rows[13][at + 1 :]
                self.check(["T"] * 20, [*rows[:13], other, *rows[14:]])

    def test_oneHasAnotherName(self) -> None:
        """A message among many with the same separators that has another name there,
        or the same name where they have others."""
        names = "KEYS", "TAGS", "KEYX", "XEYS"
        text = "{}\x01{n:05d}\x02UNIQ_KEY\x01{n:06d}\x02{}\x01{n:05d}\x02"
        for both, others in product(product(names, repeat=2), repeat=2):
            rows = [text.format(*both, n=n).encode() for n in range(FEW + 1)]
            for at in (0, FEW - 1):
                other = text.format(*others, n=77).encode()
                self.check(["T"] * (FEW + 2), [*rows[:at], other, *rows[at:]])

    def test_acrossRows(self) -> None:
        """The end of one message and the start of the next do not make a name."""
        rows = [b"UNIQ_KEY\x01%05d\x02A\x01KE" % n for n in range(9)]
        rows += [b"UNIQ_KEY\x01%05d\x02YS\x01x" % n for n in range(9)]
        self.check(["T"] * 18, rows)

    def test_nobody(self) -> None:
        """No messages have no keys."""
        self.assertEqual(codes_of([], []), ([], []))
