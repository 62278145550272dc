"""Groups that read too much of what is cold."""

from __future__ import annotations

from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pull.cold_flow import (
    IDLE_SECONDS,
    MAX_LINES,
    MAX_THRESHOLDS,
    REFUSAL,
    WAIT_SECONDS,
    WINDOW_SECONDS,
)
from rocketbroker.errors import InvalidParameter, SystemFailure
from rocketbroker.testing.files import MemoryFile
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.fastjson import loads
from tests.broker.pull.pulls import NOT_FOUND, PULL, PullCase, bodies
from tests.broker.rig import WALL_MS, Rig, heartbeat, logged, pull_ext

ON = {
    "coldDataFlowControlEnable": "true",
    "cgColdReadThreshold": "100",
    "globalColdReadThreshold": "1000",
}


class ColdFlowTests(SynchronousTestCase):
    """Who is limited, and requests 2001 to 2004."""

    def setUp(self) -> None:
        """A broker that controls the flow of cold data."""
        self.begin(ON)

    def begin(self, settings: dict[str, str]) -> None:
        """A broker with these settings."""
        self.rig = Rig(settings)
        self.addCleanup(self.rig.close)
        self.flow = self.rig.broker.pull.cold_flow

    def limited(self, *groups: str) -> list[str]:
        """Those of the groups that may not read cold data now."""
        return [group for group in groups if self.flow.limits(group)]

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
        """A group is limited once it has read its threshold, until the window ends;
        others are not."""
        self.flow.read("G", 99)
        self.flow.read("H", 1)
        self.assertEqual(self.limited("G", "H", "other"), [])
        self.flow.read("G", 1)
        self.assertEqual(self.limited("G", "H", "other"), ["G"])
        self.rig.clock.advance(WINDOW_SECONDS - 1)
        self.assertEqual(self.limited("G"), ["G"])
        self.rig.clock.advance(1)
        self.assertEqual(self.limited("G"), [])

    def test_all(self) -> None:
        """Once all together have read too much, each that reads cold data is limited,
        but for groups of the system and those that have not read any yet."""
        for number in range(20):
            self.flow.read(f"G{number}", 49)
        self.flow.read("TOOLS_CONSUMER", 19)
        self.assertEqual(self.limited("G0"), [])
        self.flow.read("G0", 1)
        self.assertEqual(
            self.limited("G0", "G1", "TOOLS_CONSUMER", "new"), ["G0", "G1"]
        )

    def test_off(self) -> None:
        """Nothing is counted unless it is asked for, also while the broker runs."""
        self.begin({})
        self.flow.read("G", 1 << 40)
        self.assertEqual(self.limited("G"), [])
        self.assertEqual(self.shown()["runtimeTable"], {})
        self.rig.broker.running.change(ON)
        self.flow.read("G", 100)
        self.assertEqual(self.limited("G"), ["G"])

    def test_operators(self) -> None:
        """An operator sets thresholds of groups, and takes them back."""
        for group in ("G", "H"):
            self.flow.read(group, 100)
        (line,) = logged(lambda: self.rig.ask(2001, {}, b"G=101\nH=x\n"))
        self.assertIn("set thresholds of cold reads, in bytes by group: G=101", line)
        self.assertEqual(self.limited("G", "H"), ["H"])
        self.assertEqual(self.shown()["configTable"], {"G": 101})
        (line,) = logged(lambda: self.rig.ask(2002, {}, b"G"))
        self.assertIn("removed the threshold of cold reads of group 'G'", line)
        self.assertEqual(logged(lambda: self.rig.ask(2002, {}, b"G")), [])
        self.assertEqual(self.limited("G", "H"), ["G", "H"])

    def test_mostThresholds(self) -> None:
        """Only so many groups have thresholds; their own can still be changed."""
        half = MAX_THRESHOLDS // 4
        for at in range(0, MAX_THRESHOLDS, half):
            lines = [b"G%d=1\n" % number for number in range(at, at + half)]
            self.rig.ask(2001, {}, b"".join(lines))
        with self.assertRaises(SystemFailure):
            self.rig.ask(2001, {}, b"another=1")
        self.rig.ask(2001, {}, b"G0=7")
        self.assertEqual(self.shown()["configTable"]["G0"], 7)

    def test_longBody(self) -> None:
        """A body that takes too long to be read is refused."""
        for code in (2001, 2002):
            self.rig.ask(code, {}, b"G=1\n".ljust(MAX_LINES))
            with self.assertRaises(SystemFailure) as caught:
                self.rig.ask(code, {}, b"G=1\n".ljust(MAX_LINES + 1))
            self.assertIn(f"has {MAX_LINES} bytes at most", caught.exception.remark)

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

    def begin(self, consume_type: str, **settings: str) -> None:
        """A broker that reads in threads, whose group G has registered so, and has read
        as much as it may."""
        cold = {**ON, "cgColdReadThreshold": "1", "accessMessageInMemoryMaxRatio": "0"}
        self.rig = self.make(threads=True, **cold, **settings)
        self.send("a", "b", "c")
        self.rig.scheduler.dispatch()
        self.rig.groups.find("H")
        self.rig.ask(34, {}, heartbeat(consumeType=consume_type))
        self.rig.clock.advance(1)  # It is told that its group has changed.
        self.rig.answers()
        self.assertEqual(self.read("G"), [b"a", b"b", b"c"])

    def read(self, group: str) -> list[bytes]:
        """What a group gets from the begin on."""
        self.rig.hot(PULL, pull_ext(0, consumerGroup=group))
        self.rig.threads.run()
        (answer,) = self.rig.answers()
        return bodies(answer)

    def codes(self, offset: int, opaque: int = 1) -> list[int]:
        """The codes of the answers to a pull of G."""
        self.rig.hot(PULL, pull_ext(offset), opaque=opaque)
        return [answer.code for answer in self.rig.answers()]

    def test_refused(self) -> None:
        """A group that has read too much of them is refused more until the next window;
        its other pulls are answered, and so is another group."""
        self.begin("CONSUME_PASSIVELY")
        for _ in range(2):
            self.rig.hot(PULL, pull_ext(0))
            (answer,) = self.rig.answers()
            self.assertEqual(answer.code, ResponseCode.SYSTEM_BUSY)
            self.assertEqual(answer.remark, REFUSAL)
            self.assertEqual(self.codes(3), [NOT_FOUND])
            self.assertEqual(self.read("H"), [b"a", b"b", b"c"])
            self.rig.clock.advance(WINDOW_SECONDS)
            self.assertEqual(self.read("G"), [b"a", b"b", b"c"])
        self.assertEqual(self.rig.broker.pull.cold_flow.refused, 2)

    def test_waits(self) -> None:
        """One that pulls by itself waits, and gets one message, but all if the window
        has ended; another arrival does not wake it."""
        self.begin("CONSUME_ACTIVELY")
        for count in (1, 3):
            self.assertEqual(self.codes(0, opaque=5), [])
            self.send("d")
            self.rig.clock.advance(WAIT_SECONDS - 0.1)
            self.rig.long_polling.check()
            self.assertEqual(self.rig.answers(), [])
            self.rig.clock.advance(0.1)
            self.rig.threads.run()
            (answer,) = self.rig.answers()
            self.assertEqual(answer.opaque, 5)
            self.assertEqual(bodies(answer)[:3], [b"a", b"b", b"c"][:count])
        self.assertEqual(self.rig.broker.pull.cold_flow.refused, 0)

    def test_noRoom(self) -> None:
        """It is refused where no more may wait."""
        self.begin("CONSUME_ACTIVELY", pullThreadPoolQueueCapacity="1")
        self.assertEqual(self.codes(0), [])
        self.assertEqual(self.codes(0), [ResponseCode.SYSTEM_BUSY])
        self.assertEqual(self.rig.broker.pull.cold_flow.refused, 1)
