"""Tests of L{rocketbroker.broker.messages.transaction_messages}: what stands on the
disk."""

from __future__ import annotations

from rocketbroker.broker.messages.transaction_messages import (
    half_at,
    is_lost,
    mark_at,
    mark_of,
    offsets_in,
    parsed_offset,
    root_of,
)
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.store.interfaces import Draft
from tests.broker.rig import HOST
from tests.broker.transactions import TransactionCase


class MessageTests(TransactionCase):
    """Records of the two topics."""

    def put(self, topic: str, properties: bytes, body: bytes = b"x") -> int:
        """Append a record; its position."""
        queue = self.rig.store.queue(topic, 0)
        draft = Draft(queue, body, properties, 0, 0, 0, HOST, 0, 0, None)
        self.rig.store.append([draft])
        return draft.position

    def test_mark(self) -> None:
        """A mark is what 4.9 and 5.x read: a number, the tag d, and no key."""
        queue = self.rig.store.queue(OP_HALF_TOPIC, 0)
        self.rig.store.append([mark_of((12, 777), queue, HOST, 1234)])
        (mark,) = self.rig.records(0, OP_HALF_TOPIC)
        self.assertEqual(mark.body, b"12")
        self.assertEqual(mark.property_bytes, b"TAGS\x01d\x02WAIT\x01true\x02")
        self.assertEqual((mark.born_ms, mark.born_host), (1234, HOST))
        ((position, _, code),) = self.rig.store.entries(queue, 0, 1)
        self.assertEqual(code, java_hash("d"))
        self.assertEqual(mark_at(self.rig.store, position), ([12], 777))

    def test_offsetsIn(self) -> None:
        """Both forms of RocketMQ's are read; what is no number is passed over."""
        self.assertEqual(offsets_in(b"12"), [12])
        self.assertEqual(offsets_in(b"12,"), [12])
        self.assertEqual(offsets_in(b"12,13,27,"), [12, 13, 27])
        self.assertEqual(offsets_in(b"12,x,-1,,\xff,4"), [12, 4])
        self.assertEqual(offsets_in(b""), [])

    def test_noMark(self) -> None:
        """What has another topic or tag, or is no record, marks nothing."""
        for position in (
            self.put("T", b"TAGS\x01d\x02", b"1"),
            self.put(OP_HALF_TOPIC, b"TAGS\x01e\x02", b"1"),
            1 << 40,
        ):
            self.assertEqual(mark_at(self.rig.store, position), ([], 0))

    def test_lost(self) -> None:
        """Lost is what stands nowhere in the log, unless a mark names nothing, or the
        log does not begin there any more."""
        self.put("T", b"")
        position = self.put("T", b"")
        self.assertFalse(is_lost(self.rig.store, 0))
        self.assertFalse(is_lost(self.rig.store, position))
        self.assertTrue(is_lost(self.rig.store, position + 1))

    def test_endLost(self) -> None:
        """Lost is also what has zeros in its properties and no record behind it."""
        self.put("T", b"")
        position = self.put("T", b"a\x01b\0\x02")
        self.assertTrue(is_lost(self.rig.store, position))
        self.put("T", b"")
        self.assertFalse(is_lost(self.rig.store, position))

    def test_noHalf(self) -> None:
        """What has another topic, or does not say where it belongs, is no half."""
        place = b"REAL_TOPIC\x01T\x02REAL_QID\x010\x02"
        store = self.rig.store
        self.assertIsNotNone(half_at(store, self.put(HALF_TOPIC, place)))
        self.assertIsNone(half_at(store, self.put("T", place)))
        self.assertIsNone(half_at(store, self.put(HALF_TOPIC, b"")))
        wrong = place.replace(b"\x01T", b"\x01../T")
        self.assertIsNone(half_at(store, self.put(HALF_TOPIC, wrong)))
        self.assertIsNone(half_at(store, 1 << 40))

    def test_root(self) -> None:
        """A copy names the half that it began with; what is no such offset does not
        count."""
        place = b"REAL_TOPIC\x01T\x02REAL_QID\x010\x02"
        for text, root in (("0", 0), ("9", 1), ("x", 2), ("-1", 3)):
            name = f"TRAN_PREPARED_QUEUE_OFFSET\x01{text}\x02".encode()
            half = half_at(self.rig.store, self.put(HALF_TOPIC, place + name))
            assert half is not None
            self.assertEqual(root_of(half), root)
        self.assertIsNone(parsed_offset("1" * 20))
