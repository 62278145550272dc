"""Answers to pulls of logical queues, of each kind of item."""

from __future__ import annotations

from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.statictopics.mapped_pulls import MappedPull
from rocketbroker.errors import SystemFailure
from rocketbroker.routing.static_topics import Items
from rocketbroker.wire.command import Command
from tests.broker.rig import pull_ext
from tests.broker.statictopics.pair import item

FIRST: Final = item("a", 0, 0, 0, end_offset=40)
MIDDLE: Final = item("b", 3, 1, 100, start_offset=20)
LAST: Final = item("a", 1, 2, 200)
ROW: Final = (FIRST, MIDDLE, LAST)


def answer(
    code: int, after: int, least: int, most: int, remark: str | None = "FOUND"
) -> Command:
    """The answer of a physical queue."""
    ext = {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": str(after),
        "minOffset": str(least),
        "maxOffset": str(most),
    }
    return Command(code, ext, b"messages", remark=remark)


class MappedPullTests(SynchronousTestCase):
    """Broker a leads the queue."""

    def pull(self, offset: int, row: Items = ROW, **more: str) -> MappedPull:
        """A pull at a logical offset."""
        return MappedPull(row, pull_ext(offset, **more), "a")

    def translated(
        self,
        offset: int,
        physical: Command,
        row: Items = ROW,
    ) -> tuple[int, int, int, int]:
        """Code, next, least and greatest offset of the answer."""
        found = self.pull(offset, row).answer(physical)
        ext = found.ext or {}
        names = "nextBeginOffset", "minOffset", "maxOffset"
        after, least, most = (int(ext[name]) for name in names)
        return found.code, after, least, most

    def test_request(self) -> None:
        """The pull is one of the physical queue; only in the last item it waits, and
        of one that has ended it asks for no more than there is."""
        pull = self.pull(5, sysFlag="7", maxMsgNums="100", commitOffset="4")
        wanted = {
            "queueId": "0",
            "queueOffset": "5",
            "sysFlag": "5",
            "commitOffset": "4",
            "maxMsgNums": "40",
        }
        self.assertEqual(pull.ext, {**pull.ext, **wanted})
        pull = self.pull(105, sysFlag="7", commitOffset="100")
        self.assertEqual((pull.ext["queueOffset"], pull.ext["sysFlag"]), ("25", "4"))
        pull = self.pull(205, sysFlag="7", commitOffset="203")
        self.assertEqual((pull.ext["sysFlag"], pull.ext["commitOffset"]), ("7", "3"))
        with self.assertRaises(SystemFailure):
            self.pull(0, queueOffset="x")

    def test_found(self) -> None:
        """Messages: all offsets are logical, none beyond the end of the item, and the
        greatest is the last item's."""
        self.assertEqual(self.translated(5, answer(0, 9, 0, 50)), (0, 9, 0, 200))
        self.assertEqual(self.translated(5, answer(0, 45, 0, 50)), (0, 40, 0, 200))
        self.assertEqual(self.translated(105, answer(0, 26, 0, 30)), (0, 106, 100, 200))
        self.assertEqual(self.translated(203, answer(0, 5, 0, 9)), (0, 205, 200, 209))
        found = self.pull(203).answer(answer(0, 5, 0, 9))
        self.assertEqual((found.ext or {})["offsetDelta"], "200")
        self.assertEqual((found.remark, found.body), ("FOUND", b"messages"))

    def test_atEnd(self) -> None:
        """At the end of an item a reader is sent to the next one; in the last, it finds
        nothing."""
        for code in (19, 20, 21):
            self.assertEqual(
                self.translated(40, answer(code, 40, 0, 40)), (20, 100, 100, 200)
            )
            self.assertEqual(
                self.translated(110, answer(code, 30, 20, 30)), (20, 200, 200, 200)
            )
        self.assertEqual(self.translated(209, answer(19, 9, 0, 9)), (19, 209, 200, 209))
        found = self.pull(209).answer(answer(19, 9, 0, 9))
        self.assertIsNone(found.remark)

    def test_nextUndecided(self) -> None:
        """It waits as long as it is not known where the next one begins."""
        row = FIRST, item("a", 1, 1, -1)
        self.assertEqual(self.translated(40, answer(19, 40, 0, 40), row)[:2], (19, 40))

    def test_beyond(self) -> None:
        """Behind the end of the last item it is sent back; RocketMQ does not if there
        is no other item."""
        self.assertEqual(self.translated(220, answer(21, 9, 0, 9))[:2], (21, 209))
        row = (item("a", 0),)
        self.assertEqual(self.translated(20, answer(21, 9, 0, 9), row)[:2], (19, 9))

    def test_removed(self) -> None:
        """Where messages were removed, it goes on with the first that is there."""
        self.assertEqual(self.translated(5, answer(21, 30, 30, 50))[:3], (21, 30, 30))
        self.assertEqual(self.translated(101, answer(21, 25, 25, 30))[:2], (20, 105))
        self.assertEqual(self.translated(201, answer(21, 5, 5, 9))[:2], (20, 205))

    def test_refused(self) -> None:
        """A refusal is handed on."""
        refusal = Command(24, remark="no subscription")
        self.assertIs(self.pull(5).answer(refusal), refusal)
