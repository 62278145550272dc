"""Groups that read too much of what is cold."""

from __future__ import annotations

from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pull.cold_flow import (
    IDLE_SECONDS,
    MAX_THRESHOLDS,
    REFUSAL,
    WINDOW_SECONDS,
)
from rocketbroker.errors import InvalidParameter, SystemFailure
from rocketbroker.testing.files import MemoryFile
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.fastjson import loads
from tests.broker.pull.pulls import NOT_FOUND, PULL, PullCase, bodies
from tests.broker.rig import WALL_MS, Rig, logged, pull_ext

ON = {
    "coldDataFlowControlEnable": "true",
    "cgColdReadThreshold": "100",
    "globalColdReadThreshold": "1000",
}


class ColdFlowTests(SynchronousTestCase):
    """Who is refused, and requests 2001 to 2004."""

    def setUp(self) -> None:
        """A broker that controls the flow of cold data."""
        self.begin(ON)

    def begin(self, settings: dict[str, str]) -> None:
        """A broker with these settings."""
        self.rig = Rig(settings)
        self.addCleanup(self.rig.close)
        self.flow = self.rig.broker.cold_flow

    def refused(self, *groups: str) -> list[str]:
        """Those of the groups whose cold pulls are refused."""
        return [group for group in groups if self.flow.refusal(group) is not None]

    def shown(self) -> dict[str, Any]:
        """The answer to request 2003."""
        value = loads(self.rig.ask(2003, {}).body)
        assert isinstance(value, dict)
        return {str(key): each for key, each in value.items()}

    def test_readAhead(self) -> None:
        """Request 2004: the system reads ahead in the log or not, and what it is told
        holds for files that are opened later."""
        rig = self.rig
        ext = "READ_AHEAD_MODE"
        segment = rig.store._segments.all[0]
        view = segment.view()
        for mode, is_wanted in (("1", False), ("0", True), ("1", False)):
            answer = rig.ask(2004, {ext: mode})
            remark = f"set commitlog readahead mode success, mode: {mode}"
            self.assertEqual((answer.code, answer.remark), (0, remark))
            self.assertIs(cast(MemoryFile, segment.file).reads_ahead, is_wanted)
            self.assertEqual(
                rig.broker.settings.store.data_read_ahead_enable, is_wanted
            )
        self.assertIs(segment.view(), view)
        path = f"{segment.path[:-1]}9"
        later = cast(MemoryFile, rig.store.open_files.open(path, create=True))
        other = cast(MemoryFile, rig.store.open_files.open("/other", create=True))
        self.assertEqual((later.reads_ahead, other.reads_ahead), (False, True))
        for file in (later, other):
            file.close()
        with self.assertRaises(SystemFailure):
            rig.ask(2004, {})
        with self.assertRaises(InvalidParameter):
            rig.ask(2004, {ext: "2"})

    def test_threshold(self) -> None:
        """A group is refused once it has read its threshold, until the window ends;
        others are not."""
        self.flow.read("G", 99)
        self.flow.read("H", 1)
        self.assertEqual(self.refused("G", "H", "other"), [])
        self.flow.read("G", 1)
        self.assertEqual(self.refused("G", "H", "other"), ["G"])
        self.assertEqual(self.flow.refused, 1)
        error = self.flow.refusal("G")
        assert error is not None
        self.assertEqual((error.code, error.remark), (2, REFUSAL))
        self.rig.clock.advance(WINDOW_SECONDS - 1)
        self.assertEqual(self.refused("G"), ["G"])
        self.rig.clock.advance(1)
        self.assertEqual(self.refused("G"), [])

    def test_all(self) -> None:
        """Once all together have read too much, each that reads cold data is refused,
        but for groups of the system and those that have not read any yet."""
        for number in range(20):
            self.flow.read(f"G{number}", 49)
        self.flow.read("TOOLS_CONSUMER", 19)
        self.assertEqual(self.refused("G0"), [])
        self.flow.read("G0", 1)
        self.assertEqual(
            self.refused("G0", "G1", "TOOLS_CONSUMER", "new"), ["G0", "G1"]
        )

    def test_off(self) -> None:
        """Nothing is counted unless it is asked for, also while the broker runs."""
        self.begin({})
        self.flow.read("G", 1 << 40)
        self.assertEqual(self.refused("G"), [])
        self.assertEqual(self.shown()["runtimeTable"], {})
        self.rig.broker.running.change(ON)
        self.flow.read("G", 100)
        self.assertEqual(self.refused("G"), ["G"])

    def test_operators(self) -> None:
        """An operator sets thresholds of groups, and takes them back."""
        for group in ("G", "H"):
            self.flow.read(group, 100)
        (line,) = logged(lambda: self.rig.ask(2001, {}, b"G=101\nH=x\n"))
        self.assertIn("set the threshold of cold reads of group 'G' to 101", line)
        self.assertEqual(self.refused("G", "H"), ["H"])
        self.assertEqual(self.shown()["configTable"], {"G": 101})
        (line,) = logged(lambda: self.rig.ask(2002, {}, b"G"))
        self.assertIn("removed the threshold of cold reads of group 'G'", line)
        self.assertEqual(logged(lambda: self.rig.ask(2002, {}, b"G")), [])
        self.assertEqual(self.refused("G", "H"), ["G", "H"])

    def test_mostThresholds(self) -> None:
        """Only so many groups have thresholds; their own can still be changed."""
        lines = b"".join(b"G%d=1\n" % number for number in range(MAX_THRESHOLDS))
        self.rig.ask(2001, {}, lines)
        with self.assertRaises(SystemFailure):
            self.rig.ask(2001, {}, b"another=1")
        self.rig.ask(2001, {}, b"G0=7")
        self.assertEqual(self.shown()["configTable"]["G0"], 7)

    def test_shown(self) -> None:
        """Thresholds and sums are shown; who has read no cold data for long is not."""
        self.flow.read("G", 5)
        self.rig.clock.advance(1)
        self.flow.read("G", 6)
        self.assertEqual(
            self.shown(),
            {
                "cgColdReadThreshold": 100,
                "configTable": {},
                "globalAcc": 11,
                "globalColdReadThreshold": 1000,
                "runtimeTable": {
                    "G": {
                        "coldAcc": 11,
                        "createTimeMills": WALL_MS,
                        "lastColdReadTimeMills": WALL_MS + 1000,
                    }
                },
            },
        )
        self.rig.clock.advance(IDLE_SECONDS - 1)
        self.assertEqual(self.shown()["runtimeTable"]["G"]["coldAcc"], 0)
        self.rig.clock.advance(WINDOW_SECONDS)
        self.assertEqual(self.shown()["runtimeTable"], {})


class PullTests(PullCase):
    """Pulls of messages that only the disk has."""

    def test_refused(self) -> None:
        """A group that has read too much of them is refused more until the next window;
        its other pulls are answered, and so is another group."""
        settings = {**ON, "cgColdReadThreshold": "1"}
        rig = self.rig = self.make(
            threads=True, accessMessageInMemoryMaxRatio="0", **settings
        )
        self.send("a", "b", "c")
        rig.scheduler.dispatch()
        rig.groups.find("H")
        for _ in range(2):
            rig.hot(PULL, pull_ext(0))
            rig.threads.run()
            (answer,) = rig.answers()
            self.assertEqual(bodies(answer)[0], b"a")
            for offset, code in ((0, ResponseCode.SYSTEM_BUSY), (3, NOT_FOUND)):
                rig.hot(PULL, pull_ext(offset))
                self.assertEqual([each.code for each in rig.answers()], [code])
            rig.hot(PULL, pull_ext(0, consumerGroup="H"))
            rig.threads.run()
            self.assertEqual([bodies(each)[0] for each in rig.answers()], [b"a"])
            rig.clock.advance(WINDOW_SECONDS)
        self.assertEqual(rig.broker.cold_flow.refused, 2)
