"""Batches as the messages in them."""

from __future__ import annotations

import zlib

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.columns import NATIVE, chosen
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.layout import lay_out
from rocketbroker.arrow.unwrapping import BATCH, unwrapped
from rocketbroker.records import batches, properties
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.sysflags import COMPRESSED
from tests.sources.messages import V6, stored

COLUMNS = ["queueOffset", "tags", "msgId", "body", "flag", "sysFlag", "commitLogOffset"]


def batch(number: int, *bodies: bytes) -> bytes:
    """The body of a batch of messages whose tags are numbers from C{number} on."""
    return batches.encode(
        (
            each,
            body,
            properties.encode({"TAGS": f"t{each}", "UNIQ_KEY": f"id{each}"}),
        )
        for each, body in enumerate(bodies, number)
    )


def rows(*records: bytes) -> list[dict[str, object]]:
    """The rows that records give."""
    decoder = Decoder(chosen(COLUMNS, NATIVE), "b", True)
    found: list[dict[str, object]] = []
    for each in decoder.batches(unwrapped(lay_out(b"".join(records)))):
        found += each.to_pylist()
    return found


class UnwrappingTests(SynchronousTestCase):
    """L{unwrapped}."""

    def test_batch(self) -> None:
        """Each message has its own offset, body, flag and properties, and the rest of
        its batch; hosts of either width."""
        for host in (V6, V6[12:]):
            found = rows(
                stored(3, b"alone", position=100, store_host=host),
                stored(
                    4, batch(4, b"a", b"bb"), sys_flag=BATCH, position=300, born_host=V6
                ),
            )
            self.assertEqual(
                [(row["queueOffset"], row["tags"], row["body"]) for row in found],
                [(3, None, b"alone"), (4, "t4", b"a"), (5, "t5", b"bb")],
            )
            self.assertEqual([row["commitLogOffset"] for row in found], [100, 300, 300])
            self.assertEqual([row["msgId"] for row in found[1:]], ["id4", "id5"])
            self.assertEqual([row["flag"] for row in found[1:]], [4, 5])

    def test_compressed(self) -> None:
        """A compressed batch is made large first; its messages are not compressed."""
        body = zlib.compress(batch(0, b"a", b"b"))
        flag = BATCH | COMPRESSED
        found = rows(stored(0, body, sys_flag=flag))
        self.assertEqual([row["body"] for row in found], [b"a", b"b"])
        self.assertEqual({row["sysFlag"] for row in found}, {BATCH})

    def test_twice(self) -> None:
        """A batch that two pulls brought counts once."""
        one = stored(0, batch(0, b"a", b"b"), sys_flag=BATCH)
        two = stored(2, b"c")
        self.assertEqual(
            [row["body"] for row in rows(one, one, two)], [b"a", b"b", b"c"]
        )

    def test_none(self) -> None:
        """Where no record holds several messages, nothing is done."""
        layout = lay_out(stored(0) + stored(1))
        self.assertIs(unwrapped(layout), layout)

    def test_damaged(self) -> None:
        """A body that is no batch is an error."""
        self.assertRaises(Malformed, rows, stored(0, b"x" * 30, sys_flag=BATCH))
