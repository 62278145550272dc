"""What consumers know of popped messages, as text."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.malformed import Malformed
from rocketbroker.records.receipt_handle import (
    ReceiptHandle,
    kind_of,
    message_offset_info,
    order_count_info,
    start_offset_info,
)

HANDLE = "10 1700000000000 30000 2 0 b-a 3 11"


class HandleTests(SynchronousTestCase):
    """The property POP_CK."""

    def test_text(self) -> None:
        """It has eight parts, or seven without the offset."""
        handle = ReceiptHandle(10, 1_700_000_000_000, 30_000, 2, "0", "b-a", 3, 11)
        self.assertEqual(handle.text(), HANDLE)
        handle.offset = None
        self.assertEqual(handle.text(), HANDLE[:-3])

    def test_parse(self) -> None:
        """What was written is read."""
        self.assertEqual(ReceiptHandle.parse(HANDLE).text(), HANDLE)
        self.assertEqual(ReceiptHandle.parse(HANDLE[:-3]).offset, None)

    def test_nonsense(self) -> None:
        """What is none is refused."""
        for text in ("", "1 2 3", HANDLE.replace("30000", "x"), HANDLE + "x"):
            self.assertRaises(Malformed, ReceiptHandle.parse, text)


class InfoTests(SynchronousTestCase):
    """The fields of an answer."""

    def test_entries(self) -> None:
        """An entry names the kind of topic, the queue, and what is told."""
        self.assertEqual(start_offset_info("1", 3, 10), "1 3 10")
        self.assertEqual(message_offset_info("0", 3, [10, 12]), "0 3 10,12")

    def test_counts(self) -> None:
        """Counts stand by message where there are any, and the least by queue."""
        found = order_count_info("0", 3, {10: 2, 11: 0})
        self.assertEqual(found, ["0 qo3%10 2", "0 3 0"])
        found = order_count_info("0", 3, {10: 2, 11: 1})
        self.assertEqual(found, ["0 qo3%10 2", "0 qo3%11 1", "0 3 1"])

    def test_kinds(self) -> None:
        """A retry topic with a plus is of version 2."""
        kinds = [kind_of(name) for name in ("T", "%RETRY%G_T", "%RETRY%G+T")]
        self.assertEqual(kinds, ["0", "1", "2"])
