"""Tests of L{rocketbroker.broker.messages.outer_batch}."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.outer_batch import (
    MAX_MESSAGES,
    MAX_PROPERTIES_BYTES,
    split,
    tag_code_of,
)
from rocketbroker.errors import MessageIllegal
from rocketbroker.records.batches import encode_part
from rocketbroker.records.hashing import java_hash

SHARED = b"WAIT\x01true\x02"


class SplitTests(SynchronousTestCase):
    """A batch is cut into its messages."""

    def test_messages(self) -> None:
        """Each message has its flag, body, tag code and properties."""
        body = encode_part(1, b"one", b"TAGS\x01A\x02") + encode_part(
            -2, b"", b"KEYS\x01k"
        )
        self.assertEqual(
            split(body, SHARED),
            [
                (1, b"one", SHARED + b"TAGS\x01A\x02", java_hash("A")),
                (-2, b"", SHARED + b"KEYS\x01k\x02", 0),
            ],
        )

    def test_ownPropertiesCount(self) -> None:
        """Of two equal names the message's own stands last, and so is what is read."""
        shared = b"UNIQ_KEY\x01batch\x02TAGS\x01S\x02"
        parts = split(encode_part(0, b"x", b"UNIQ_KEY\x01own\x02TAGS\x01O"), shared)
        self.assertEqual(parts[0][2], shared + b"UNIQ_KEY\x01own\x02TAGS\x01O\x02")
        self.assertEqual(parts[0][3], java_hash("O"))

    def test_withoutProperties(self) -> None:
        """A message without properties has those of the request."""
        shared = b"TAGS\x01S\x02"
        self.assertEqual(
            split(encode_part(0, b"x", b""), shared),
            [(0, b"x", shared, java_hash("S"))],
        )
        ((_, _, _, code),) = split(encode_part(0, b"x", b"KEYS\x01k"), shared)
        self.assertEqual(code, java_hash("S"))

    def test_cut(self) -> None:
        """A batch that ends too early, at whatever byte, is illegal."""
        first = encode_part(0, b"one", b"A\x01b\x02")
        body = first + encode_part(0, b"two", b"A\x01b\x02")
        for size in range(len(body)):
            if size == len(first):
                continue
            with self.assertRaises(MessageIllegal):
                split(body[:size], SHARED)

    def test_leftOver(self) -> None:
        """Bytes behind the last message are illegal."""
        with self.assertRaises(MessageIllegal):
            split(encode_part(0, b"one", b"") + b"\0", SHARED)

    def test_wrongLengths(self) -> None:
        """Lengths that contradict one another are illegal, negative ones too."""
        good = encode_part(0, b"body", b"A\x01b\x02")
        for at, code, value in (
            (0, ">i", len(good) - 1),
            (0, ">i", -1),
            (0, ">i", 0),
            (16, ">i", -1),
            (16, ">i", 5),
            (16, ">i", 0x7FFFFFFF),
            (24, ">h", -1),
            (24, ">h", 3),
        ):
            body = bytearray(good)
            struct.pack_into(code, body, at, value)
            with self.assertRaises(MessageIllegal):
                split(bytes(body), SHARED)

    def test_mostProperties(self) -> None:
        """Properties fit into 32767 bytes with those of the request, or are illegal."""
        room = MAX_PROPERTIES_BYTES - len(SHARED)
        fits = b"A\x01" + b"x" * (room - 3)
        (part,) = split(encode_part(0, b"", fits), SHARED)
        self.assertEqual(len(part[2]), MAX_PROPERTIES_BYTES)
        with self.assertRaises(MessageIllegal):
            split(encode_part(0, b"", fits + b"x"), SHARED)

    def test_mostMessages(self) -> None:
        """A batch may have so many messages and no more."""
        one = encode_part(0, b"", b"")
        self.assertEqual(len(split(one * MAX_MESSAGES, SHARED)), MAX_MESSAGES)
        with self.assertRaises(MessageIllegal):
            split(one * (MAX_MESSAGES + 1), SHARED)


class TagTests(SynchronousTestCase):
    """The tag code of a properties string."""

    def test_position(self) -> None:
        """The property counts wherever it stands, with or without an end."""
        code = java_hash("TagA")
        for text in (
            b"TAGS\x01TagA",
            b"TAGS\x01TagA\x02",
            b"K\x01v\x02TAGS\x01TagA\x02X\x01y\x02",
        ):
            self.assertEqual(tag_code_of(text), code)

    def test_otherNames(self) -> None:
        """A name or value that only ends in the letters is not the property."""
        self.assertEqual(tag_code_of(b"MYTAGS\x01A\x02"), 0)
        self.assertEqual(tag_code_of(b"XTAGS\x01A\x02TAGS\x01B\x02"), java_hash("B"))
        self.assertEqual(tag_code_of(b"TAGS\x01B\x02XTAGS\x01A\x02"), java_hash("B"))
        self.assertEqual(tag_code_of(b""), 0)

    def test_last(self) -> None:
        """Of several the last counts."""
        self.assertEqual(tag_code_of(b"TAGS\x01A\x02TAGS\x01B\x02"), java_hash("B"))
