"""Tests of L{rocketbroker.store.index.service}."""

from __future__ import annotations

import errno
import random
import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.hashing import index_hash
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.writer import Hint
from rocketbroker.store.index.file import HEADER, INDEX_ENTRY, SLOT
from rocketbroker.store.index.service import MAX_BEHIND, NEAR_FULL, RETRY_MS, Index
from rocketbroker.store.message_store import Store
from rocketbroker.store.running_flags import WRITE_INDEX_FILE_ERROR, RunningFlags
from rocketbroker.store.shared_positions import DISPATCHED, SharedPositions
from rocketbroker.testing.files import MemoryDisk
from tests.store.index.keyed import java_index, message
from tests.store.stores import ROOT, SEGMENT, START_MS, Wall, make, opened, options

FOLDER = f"{ROOT}/index"
EVER = 1 << 62


class IndexCase(SynchronousTestCase):
    """A store in memory with an index of 5 slots and 9 entries a file."""

    NUMBERS = 10

    def setUp(self) -> None:
        """An empty store."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = self.start()

    def start(self, **changes: object) -> Store:
        """Open a store over the same disk."""
        given = {"max_hash_slot_num": 5, "max_index_num": self.NUMBERS, **changes}
        store = make(self.disk, self.wall, **given)
        store.open()
        self.addCleanup(store.close)
        return store

    def put(self, *keys: str, unique: str = "") -> list[int]:
        """Append a message for each text of keys; where they are."""
        drafts = [message(self.store, key, unique) for key in keys]
        self.store.append(drafts)
        while self.store.dispatch(100):
            pass
        return [draft.position for draft in drafts]

    def build(self) -> None:
        """Build the index to its end."""
        while self.store.build_index(3):
            pass

    def find(
        self, key: str, begin: int = 0, end: int = EVER, most: int = 32
    ) -> list[int]:
        """Where the messages are that are found."""
        result = self.store.find_by_key("T", key, most, begin, end)
        return [struct.unpack_from(">q", each, 28)[0] for each in result.records]

    def crash(self) -> None:
        """Start again as after a kill: the mark is there."""
        self.store.close()
        with_mark = self.disk.open(f"{ROOT}/abort", create=True)
        with_mark.close()
        checkpoint = self.disk.open(f"{ROOT}/checkpoint")
        checkpoint.pwrite(bytes(8), 16)
        checkpoint.close()
        self.store = self.start()


class BuildTests(IndexCase):
    """What stands in the files."""

    def test_layout(self) -> None:
        """Header, slot and entry stand where RocketMQ has them."""
        self.wall.now_ms = START_MS
        first, second = self.put("k1", "k2")
        self.build()
        self.store.close()
        (name,) = self.disk.list(FOLDER)
        self.assertEqual((len(name), name[:2]), (17, "20"))
        content = self.disk.read(f"{FOLDER}/{name}")
        self.assertEqual(len(content), 40 + 5 * 4 + 10 * 20)
        code1, code2 = index_hash("T", "k1"), index_hash("T", "k2")
        self.assertEqual(code1, 2539445)
        header = struct.unpack_from(">qqqqii", content)
        self.assertEqual(header, (START_MS, START_MS, first, second, 2, 3))
        slot = struct.unpack_from(">i", content, 40 + code1 % 5 * 4)
        self.assertEqual(slot, (1,))
        entries = struct.unpack_from(">iqiiiqii", content, 60 + 20)
        self.assertEqual(entries, (code1, first, 0, 0, code2, second, 0, 0))

    def test_seconds(self) -> None:
        """An entry tells the seconds since the first one of its file."""
        self.put("a")
        self.wall.now_ms += 2999
        (second,) = self.put("a")
        self.build()
        self.assertEqual(self.find("a", START_MS + 2000), [second])
        self.assertEqual(self.find("a", START_MS + 2001), [])
        self.assertEqual(len(self.find("a", 0, START_MS + 1999)), 1)

    def test_keys(self) -> None:
        """The unique key and each word of KEYS lead to the message, once."""
        (position,) = self.put("a  b a", unique="U")
        self.build()
        for key in ("U", "a", "b"):
            self.assertEqual(self.find(key), [position])
        self.assertEqual(self.find(""), [])

    def test_collisions(self) -> None:
        """Keys in one slot form a chain; those of another hash are left out, those of
        the same are not."""
        keys = [f"k{number}" for number in range(8)]
        positions = self.put(*keys)
        self.build()
        for key, position in zip(keys, positions, strict=True):
            self.assertEqual(self.find(key), [position])
        self.assertEqual(index_hash("T", "Aa"), index_hash("T", "BB"))
        same = self.put("Aa", "BB")
        self.build()
        self.assertEqual(self.find("Aa"), same)

    def test_rollOver(self) -> None:
        """A full file is put on the disk and noted, and the next begins."""
        positions = [self.put("k")[0] for _ in range(20)]
        self.build()
        names = self.disk.list(FOLDER)
        self.assertEqual(len(names), 3)
        self.assertEqual(names, sorted(set(names)))
        heads = [
            struct.unpack_from(">qqqqii", self.disk.read(f"{FOLDER}/{name}"))
            for name in names
        ]
        self.assertEqual([head[5] for head in heads], [10, 10, 3])
        self.assertEqual([head[2] for head in heads], positions[::9])
        self.assertEqual(self.find("k"), positions)
        self.store.flush_queues()
        index_ms = self.disk.read(f"{ROOT}/checkpoint")[16:24]
        self.assertEqual(index_ms, START_MS.to_bytes(8, "big"))

    def test_newest(self) -> None:
        """Of too many the newest are found, in the order of the log."""
        positions = [self.put("k")[0] for _ in range(12)]
        self.build()
        self.assertEqual(self.find("k", most=4), positions[-4:])
        self.assertEqual(self.find("k", most=-1), [])

    def test_rolledBack(self) -> None:
        """A rolled back message is not in the index, a half message is."""
        half, back = message(self.store, "half"), message(self.store, "back")
        half.sys_flag, back.sys_flag = 4, 12
        self.store.append([half, back])
        self.store.dispatch(10)
        self.build()
        self.assertEqual(self.find("half"), [half.position])
        self.assertEqual(self.find("back"), [])

    def test_batch(self) -> None:
        """Each message of a batch is found by its own keys."""
        batch = message(self.store, "")
        batch.parts = [(0, b"x", b"KEYS\x01p%d\x02" % n, 0) for n in range(2)]
        self.store.append([batch])
        self.store.dispatch(10)
        self.build()
        found = [*self.find("p0"), *self.find("p1")]
        self.assertEqual(found, list(batch.positions))

    def test_disabled(self) -> None:
        """With messageIndexEnable=false there is none."""
        self.store.close()
        self.store = self.start(message_index_enable=False)
        self.put("k")
        self.assertFalse(self.store.index_behind)
        self.build()
        self.assertEqual(self.find("k"), [])
        self.assertFalse(self.disk.exists(FOLDER))


class RefusedTests(IndexCase):
    """A disk that refuses."""

    def test_full(self) -> None:
        """What cannot be written is tried again a second later, and nothing twice."""
        (position,) = self.put("k")
        self.disk.fail("allocate", errno.ENOSPC)
        self.assertRaises(OSError, self.store.build_index, 10)
        self.disk.heal()
        self.assertFalse(self.store.build_index(10))
        self.wall.now_ms += RETRY_MS
        self.build()
        self.assertEqual(self.find("k"), [position])
        self.assertFalse(self.store.index_behind)

    def test_behindIsFlagged(self) -> None:
        """It is reported by a running flag; the log goes on meanwhile."""
        before = self.put("k")
        self.disk.fail("allocate", errno.ENOSPC)
        self.assertRaises(OSError, self.store.build_index, 10)
        self.assertTrue(self.store.flags.has(WRITE_INDEX_FILE_ERROR))
        self.assertIsNone(self.store.refusal())
        after = self.put("k")
        self.wall.now_ms += RETRY_MS
        self.build()
        self.assertFalse(self.store.flags.has(WRITE_INDEX_FILE_ERROR))
        self.assertEqual(self.find("k"), before + after)

    def test_clockSetBack(self) -> None:
        """A clock that is set back does not put off the next try."""
        self.put("k")
        self.disk.fail("allocate", errno.ENOSPC)
        self.assertRaises(OSError, self.store.build_index, 10)
        self.wall.now_ms -= 3_600_000
        self.build()
        self.assertFalse(self.store.index_behind)

    def test_stopped(self) -> None:
        """What cannot be entered when the store is closed is entered by the next."""
        positions = self.put("k")
        self.disk.fail("allocate", errno.ENOSPC)
        self.store.close()
        self.assertFalse(self.disk.exists(f"{ROOT}/abort"))
        self.disk.heal()
        self.store = self.start()
        self.build()
        self.assertEqual(self.find("k"), positions)

    def test_noNextFile(self) -> None:
        """A batch of which some keys went into a full file is entered to its end, even
        if the next file cannot be made at once."""
        batch = message(self.store, "")
        batch.parts = [(0, b"x", b"KEYS\x01p%d\x02" % n, 0) for n in range(12)]
        self.store.append([batch])
        self.store.dispatch(10)
        self.disk.fail("allocate", errno.ENOSPC, after=1)
        self.assertRaises(OSError, self.store.build_index, 10)
        self.wall.now_ms += RETRY_MS
        self.build()
        found = [self.find(f"p{number}") for number in range(12)]
        self.assertEqual(found, [[position] for position in batch.positions])
        files = [self.disk.read(f"{FOLDER}/{name}") for name in self.disk.list(FOLDER)]
        counts = [struct.unpack_from(">i", content, 36)[0] - 1 for content in files]
        self.assertEqual(sum(counts), 12, "none twice")


class NowTests(IndexCase):
    """Steps between the turns."""

    NUMBERS = NEAR_FULL + 100

    def test_now(self) -> None:
        """What was handed over is entered at once, but for what needs a new file."""
        self.assertFalse(self.store.build_index_now(10))
        positions = self.put("k")
        self.assertFalse(self.store.build_index_now(10))
        self.build()
        positions += self.put("k", "k")
        self.assertTrue(self.store.build_index_now(10))
        self.assertFalse(self.store.index_behind)
        self.assertEqual(self.find("k"), positions)

    def test_nearFull(self) -> None:
        """When a step could need the next file it is done in a thread."""
        for room, possible in ((NEAR_FULL - 1, False), (NEAR_FULL, True)):
            self.store.close()
            self.disk = MemoryDisk()
            self.store = self.start(max_index_num=room + 2)
            self.put("k")
            self.build()
            self.put("k")
            self.assertIs(self.store.build_index_now(10), possible)

    def test_fromTheLog(self) -> None:
        """What would have to be read is not entered so."""
        self.put("k")
        self.build()
        self.store.close()
        self.store = self.start()
        self.put("k")
        self.assertFalse(self.store.build_index_now(10))

    def test_refused(self) -> None:
        """A disk that refuses is left alone as by other steps."""
        self.put("k")
        self.build()
        (position,) = self.put("j")
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertRaises(OSError, self.store.build_index_now, 10)
        self.assertFalse(self.store.build_index_now(10))
        self.wall.now_ms += RETRY_MS
        self.assertTrue(self.store.build_index_now(10))
        self.assertEqual(self.find("j"), [position])


class StartTests(IndexCase):
    """What a start makes of the files."""

    def test_again(self) -> None:
        """After a clean stop it goes on where it was."""
        before = self.put("k")
        self.store.close()
        self.store = self.start()
        self.assertEqual(self.store.report, [])
        after = self.put("k")
        self.build()
        self.assertEqual(self.find("k"), before + after)
        self.assertEqual(len(self.disk.list(FOLDER)), 1)

    def test_crash(self) -> None:
        """After another stop what was not on the disk is built again."""
        positions = [self.put("k")[0] for _ in range(12)]
        self.build()
        self.crash()
        self.assertEqual(self.disk.list(FOLDER), [])
        self.build()
        self.assertEqual(self.find("k"), positions)

    def test_power(self) -> None:
        """Whatever blocks of a file that is not full a power failure leaves, it is
        built again, also if its times are those of one that was put on the disk."""
        for seed in range(12):
            disk = self.disk = MemoryDisk()
            given: dict[str, object] = {
                "max_hash_slot_num": 5,
                "max_index_num": self.NUMBERS,
            }
            self.store = opened(disk, None, **given)
            positions = [self.put("k")[0] for _ in range(12)]
            self.build()
            self.store.flush()
            self.store.flush_queues()
            disk.sync_dir(FOLDER)
            self.assertEqual(len(disk.list(FOLDER)), 2)
            disk.crash(random.Random(seed))
            self.store = opened(disk, None, **given)
            self.assertEqual(len(self.disk.list(FOLDER)), 1)
            self.build()
            self.assertEqual(self.find("k"), positions)

    def test_fromTheLog(self) -> None:
        """A log that has no index gets one."""
        positions = self.put("k", "k")
        self.store.close()
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")
        self.store = self.start()
        self.build()
        self.assertEqual(self.find("k"), positions)

    def test_java(self) -> None:
        """The index of a Java broker from 5.4 on, with entries for tags, is taken over
        as it is, and gone on with."""
        drafts = [message(self.store, f"k{n}", tags="A B") for n in range(3)]
        self.store.append(drafts)
        while self.store.dispatch(100):
            pass
        self.store.close()
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")
        tagged = [(d.position, d.properties, "A B") for d in drafts]
        path = java_index(self.disk, 5, self.NUMBERS, tagged)
        begin = HEADER.size + 5 * SLOT.size
        entries = slice(begin, begin + 7 * INDEX_ENTRY.size)
        before = self.disk.read(path)[entries]
        self.store = self.start()
        self.build()
        self.assertEqual(self.store.report, [])
        where = [*(draft.position for draft in drafts), *self.put("k3")]
        self.build()
        self.assertEqual([self.find(f"k{n}") for n in range(4)], [[at] for at in where])
        self.assertEqual(self.find("T#A B"), where[:3])
        self.assertEqual(self.disk.read(path)[entries], before)
        self.assertEqual(len(self.disk.list(FOLDER)), 1)

    def test_foreign(self) -> None:
        """What is no index file is left alone, with a sentence."""
        self.put("k")
        self.store.close()
        for name in ("notes", "20990101000000000"):
            file = self.disk.open(f"{FOLDER}/{name}", create=True)
            file.pwrite(b"x" * 50, 0)
            file.close()
        self.store = self.start()
        self.assertEqual(len(self.store.report), 2)
        self.assertEqual(len(self.disk.list(FOLDER)), 3)
        self.assertEqual(len(self.find("k")), 1)

    def test_torn(self) -> None:
        """A file of any broken header, or none, is built again, as are those behind."""
        positions = [self.put("k")[0] for _ in range(12)]
        self.store.close()
        names = self.disk.list(FOLDER)
        for number, header in enumerate(
            (
                struct.pack(">qqqqii", 1, 1, 0, 0, 1, 11),
                struct.pack(">qqqqii", 1, 1, 0, 0, 1, -1),
                struct.pack(">qqqqii", 1, 1, 0, 0, 6, 2),
                struct.pack(">qqqqii", 1, 1, 9, 8, 1, 2),
                struct.pack(">qqqqii", 1, 1, 0, EVER, 1, 2),
                b"",
            )
        ):
            file = self.disk.open(f"{FOLDER}/{names[0]}")
            if header:
                file.pwrite(header, 0)
            else:
                file.truncate(0)
            file.close()
            self.store = self.start()
            self.assertEqual(len(self.store.report), int(number != 4))
            self.build()
            self.assertEqual(self.find("k"), positions)
            self.store.close()
            names = self.disk.list(FOLDER)

    def test_loop(self) -> None:
        """Entries that lead in a circle or nowhere end a search."""
        self.put("k", "k")
        self.build()
        (name,) = self.disk.list(FOLDER)
        file = self.disk.open(f"{FOLDER}/{name}")
        for number in (2, 1, 9, -1):
            file.pwrite(struct.pack(">i", number), 60 + 20 * 2 + 16)
            self.assertIn(len(self.find("k")), (1, 2))
        file.close()


class LimitTests(SynchronousTestCase):
    """An index by itself, over a log that is not there."""

    def setUp(self) -> None:
        """Room for many keys."""
        self.disk = MemoryDisk()
        self.disk.make_dirs(ROOT)
        self.positions = SharedPositions(self.disk, ROOT)
        self.addCleanup(self.positions.close)
        self.record = b""
        self.index = Index(
            OpenFiles(self.disk),
            options(max_index_num=NEAR_FULL),
            Segments(OpenFiles(self.disk), [], SEGMENT),
            self.positions,
            Wall(),
            RunningFlags(),
            lambda position: self.record,
            lambda message: None,
        )
        self.addCleanup(self.index.close)
        self.store = make(self.disk, Wall(), store_path_root_dir="/other")
        self.store.open()
        self.addCleanup(self.store.close)

    def enter(self, start: int, end: int, *keys: str) -> None:
        """Hand over messages of an append from one position to another, and build."""
        drafts = [message(self.store, key) for key in keys]
        for number, draft in enumerate(drafts):
            draft.position = start + number
        self.index.hand_over(Hint(start, end, START_MS, drafts))
        self.positions.view[DISPATCHED] = end
        while self.index.build(10):
            pass

    def test_behind(self) -> None:
        """What is so far behind is kept, what is further is read from the log."""
        for end, kept in ((MAX_BEHIND, 1), (2 * MAX_BEHIND + 1, 0)):
            before = self.index.entered
            self.enter(self.index.position, end, "k")
            self.assertEqual(self.index.entered - before, kept)
            self.assertEqual(self.index.position, end)

    def test_bytes(self) -> None:
        """No more is found than fits into an answer, but for one record."""
        self.enter(0, 300, "k", "k", "k", "k")
        for size, count in ((5 << 20, 3), ((5 << 20) + 1, 2), (20 << 20, 1)):
            self.record = bytes(size)
            result = self.index.query("T", "k", 32, 0, EVER)
            self.assertEqual(len(result.records), count)

    def test_manyKeys(self) -> None:
        """Messages with many keys, of which more are entered than go at once."""
        words = " ".join(f"w{number}" for number in range(500))
        self.enter(0, 300, *[words] * 70)
        self.assertEqual(self.index.entered, 70 * 500)
        found = self.index.find("T", "w499", 64, 0, EVER)[0]
        self.assertEqual(found, list(range(6, 70)))

    def test_topics(self) -> None:
        """Messages of many topics in one append."""
        drafts = [message(self.store, "k", topic=f"T{n}") for n in range(20)]
        for number, draft in enumerate(drafts):
            draft.position = number
        self.index.hand_over(Hint(0, 300, START_MS, drafts))
        self.positions.view[DISPATCHED] = 300
        self.index.build(100)
        for number in range(20):
            found = self.index.find(f"T{number}", "k", 64, 0, EVER)[0]
            self.assertEqual(found, [number])
