"""The files of offsets with and without enableLmq, and changes of that setting."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable, table_of
from rocketbroker.broker.metadata.offset_files import (
    LIGHT_FILE,
    PLAIN_FILE,
    merged,
)
from rocketbroker.broker.metadata.offset_texts import Offsets
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.topics import DataVersion

FOLDER = "/store/config/"

#: What Java's broker 5.3.3 wrote without enableLmq, and then with it: it had lost sight
#: of the offset 5, and both groups had begun anew.
JAVA_PLAIN = b"""{
	"dataVersion":{
		"counter":0,
		"stateVersion":0,
		"timestamp":1795864423508
	},
	"groupTopicMap":{
		"%LMQ%g":["T"],
		"G":["T"]
	},
	"offsetTable":{
		"T@%LMQ%g":{0:5
		},
		"T@G":{0:5
		},
		"T@away":{0:5
		}
	}
}"""
JAVA_LIGHT = b"""{
	"dataVersion":{
		"counter":0,
		"stateVersion":0,
		"timestamp":1795864453035
	},
	"groupTopicMap":{
		"G":["T"]
	},
	"lmqOffsetTable":{
		"T@%LMQ%g":3
	},
	"offsetTable":{
		"T@G":{0:3,1:4
		}
	}
}"""


def written(counter: int, timestamp: int, offsets: Offsets) -> dict[object, object]:
    """A file with some version."""
    version = DataVersion(counter=counter, timestamp=timestamp)
    return {"dataVersion": version.to_json(), "offsetTable": offsets}


class MergedTests(SynchronousTestCase):
    """What a start takes from each of the two files."""

    def test_javaFiles(self) -> None:
        """Of what a Java broker wrote the later file counts, though both have the same
        counter; a group that was away meanwhile keeps its place."""
        plain, light = table_of(JAVA_PLAIN), table_of(JAVA_LIGHT)
        for own, other in ((plain, light), (light, plain)):
            found = merged(own, other, 7)
            self.assertEqual(
                found.offsets,
                {"T@%LMQ%g": {0: 3}, "T@G": {0: 3, 1: 4}, "T@away": {0: 5}},
            )
            self.assertTrue(found.is_new)

    def test_laterFileCounts(self) -> None:
        """The time tells which file is newer, for each queue, and not the counter."""
        old = written(900, 10, {"T@G": {0: 1, 1: 2}, "T@H": {0: 3}})
        new = written(0, 11, {"T@G": {1: 7, 2: 8}})
        for own, other in ((old, new), (new, old)):
            found = merged(own, other, 5)
            self.assertEqual(found.offsets, {"T@G": {0: 1, 1: 7, 2: 8}, "T@H": {0: 3}})

    def test_versionIsNewerThanBoth(self) -> None:
        """The version after a take-over is newer by time and by counter, even if the
        clock was set back."""
        own, other = written(4, 10, {}), written(900, 20, {})
        for pair in ((own, other), (other, own)):
            for now_ms in (5, 50):
                found = merged(*pair, now_ms)
                self.assertEqual(found.version.counter, 901)
                self.assertEqual(found.version.timestamp, max(21, now_ms))

    def test_onlyOneFile(self) -> None:
        """A file alone is taken as it is; without any file there is nothing."""
        own = written(4, 10, {"T@G": {0: 1}})
        found = merged(own, None, 7)
        self.assertEqual(found.offsets, {"T@G": {0: 1}})
        self.assertEqual(found.version, DataVersion(counter=4, timestamp=10))
        self.assertFalse(found.is_new)
        self.assertEqual(merged(None, own, 7).offsets, {"T@G": {0: 1}})
        self.assertEqual(merged(None, None, 7).version, DataVersion(timestamp=7))

    def test_unreadableVersions(self) -> None:
        """A file whose version makes no sense counts as the older one."""
        own = written(4, 10, {"T@G": {0: 1}})
        for version in (None, 5, {"counter": "x"}):
            other: dict[object, object] = {
                "dataVersion": version,
                "offsetTable": {"T@G": {0: 9}, "T@H": {0: 9}},
            }
            for pair in ((own, other), (other, own)):
                self.assertEqual(
                    merged(*pair, 7).offsets, {"T@G": {0: 1}, "T@H": {0: 9}}
                )


class SwitchTests(SynchronousTestCase):
    """A broker whose enableLmq changes from start to start."""

    def setUp(self) -> None:
        """A broker that has been in use without LMQs."""
        self.disk = MemoryDisk()
        self.now_ms = 1000
        offsets = self.started(False)
        offsets.commit("G", "T", 0, 7)
        offsets.commit("H", "T", 0, 5)
        self.stop(offsets)

    def started(self, lmq: bool) -> OffsetTable:
        """The offsets as a start finds them."""
        self.clock = Clock()
        plain, light = (
            JsonTable(self.disk, FOLDER + name, at_once, self.clock)
            for name in (PLAIN_FILE, LIGHT_FILE)
        )
        pair = (light, plain) if lmq else (plain, light)
        table = OffsetTable(
            BrokerOptions(), *pair, Slices(self.clock), lambda: self.now_ms
        )
        table.load()
        return table

    def stop(self, offsets: OffsetTable) -> None:
        """Write what is to be written."""
        self.successResultOf(offsets.save_now())
        self.now_ms += 1000

    def test_onAndOffAndOn(self) -> None:
        """All groups go on where they were, whichever file the broker writes."""
        for at, lmq in enumerate((True, False, True, True, False), 7):
            offsets = self.started(lmq)
            self.assertEqual(offsets.query("G", "T", 0), at)
            self.assertEqual(offsets.query("H", "T", 0), 5)
            offsets.commit("G", "T", 0, at + 1)
            self.stop(offsets)

    def test_lowerOffsets(self) -> None:
        """An offset that was set back stays so."""
        for at, lmq in enumerate((True, False, True)):
            offsets = self.started(lmq)
            offsets.commit("G", "T", 0, 6 - at)
            self.stop(offsets)
            self.assertEqual(self.started(not lmq).query("G", "T", 0), 6 - at)

    def test_writtenWithoutCommits(self) -> None:
        """What was taken over is written, though no group commits."""
        self.stop(self.started(True))
        self.assertIn(b'"T@G":{0:7}', self.disk.read(FOLDER + LIGHT_FILE))

    def test_deletedStaysDeleted(self) -> None:
        """Offsets that were deleted do not come back from the file that is not written:
        those of a deleted topic would apply to the next topic of that name."""
        offsets = self.started(True)
        offsets.forget_topic("T")
        self.stop(offsets)
        self.assertEqual(self.started(True).keys(), [])
        offsets = self.started(True)
        offsets.commit("I", "U", 0, 1)
        self.stop(offsets)
        self.assertEqual(self.started(True).keys(), ["U@I"])

    def test_javaInBetween(self) -> None:
        """A Java broker with enableLmq wrote a file of its own, with a version of its
        own: its offsets count, and groups that it had lost are found."""
        offsets = self.started(True)
        self.stop(offsets)
        self.disk.remove(FOLDER + LIGHT_FILE)
        self.disk.open(FOLDER + LIGHT_FILE, create=True).pwrite(JAVA_LIGHT, 0)
        for lmq in (True, False, True):
            offsets = self.started(lmq)
            self.assertEqual(offsets.query("G", "T", 0), 3)
            self.assertEqual(offsets.query("H", "T", 0), 5)
            self.assertEqual(offsets.query("%LMQ%g", "T", 0), 3)
            self.stop(offsets)

    def test_damagedOtherFile(self) -> None:
        """The file that is not written refuses the start, too, if it is damaged: it may
        be the newer one."""
        self.disk.open(FOLDER + LIGHT_FILE, create=True).pwrite(b"{", 0)
        error = self.assertRaises(ConfigurationError, self.started, False)
        self.assertIn(f"restore {FOLDER}{LIGHT_FILE} from a backup", str(error))

    def test_answerWithoutMark(self) -> None:
        """The file says what was taken over; the answer to slaves does not."""
        offsets = self.started(True)
        self.stop(offsets)
        self.assertIn(b"takenOver", self.disk.read(FOLDER + LIGHT_FILE))
        answer = offsets.made(None)
        self.clock.advance(0)
        told: dict[str, object] = self.successResultOf(answer)
        self.assertEqual(list(told), ["dataVersion", "offsetTable"])
