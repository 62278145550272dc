"""Properties that say where a message stands."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.batch_records import batch_of
from rocketbroker.store.interfaces import PROPERTIES_SIZE_EXCEEDED, PUT_OK, Placed
from tests.store.consumequeue.batches import BatchCase
from tests.store.stores import batch


class BatchOfTests(SynchronousTestCase):
    """What a record says of its batch."""

    def test_good(self) -> None:
        """Both numbers, wherever they stand."""
        self.assertEqual(
            batch_of(b"INNER_NUM\x013\x02A\x01b\x02INNER_BASE\x0112"), (12, 3)
        )

    def test_wrong(self) -> None:
        """A record without them, or with such as cannot be, says nothing."""
        for number, base in (
            (b"", b"1"),
            (b"1", b""),
            (b"0", b"1"),
            (b"-1", b"1"),
            (b"1", b"-1"),
            (b"32768", b"1"),
            (b"1", b"9" * 19),
            (b"1", b"1" * 5000),
            (b"x", b"1"),
        ):
            found = b"INNER_NUM\x01%b\x02INNER_BASE\x01%b\x02" % (number, base)
            self.assertIsNone(batch_of(found), found)


class CompleteTests(BatchCase):
    """Properties that are completed in the append."""

    def test_size(self) -> None:
        """The place counts with the properties: 32767 bytes and no more."""
        base = len(b"INNER_BASE\x010\x02")
        for size, status in ((32767, PUT_OK), (32768, PROPERTIES_SIZE_EXCEEDED)):
            found = b"A\x01" + b"x" * (size - base - 3) + b"\x02"
            each = batch(self.queue, b"a", parts=Placed(found, 1))
            self.store.append([each])
            self.assertEqual(each.status, status)
