"""Checking an export."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import DataFile, History, read_history
from rocketbroker.export.parquet import file_checksum
from rocketbroker.export.verify import (
    DIGESTS,
    FILES,
    Verification,
    check_manifest,
    compare_ends,
    compare_with,
)
from rocketbroker.sources.options import ReadOptions
from tests.export.worlds import ONE, ZERO, World
from tests.sources.messages import stored

OPTIONS = ReadOptions(name_server="n:1", topics=("T",))


class VerifyCase(SynchronousTestCase):
    """An export of two runs."""

    def setUp(self) -> None:
        """Export it."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 7})
        self.assertEqual(self.world.run(), 0)
        self.world.origin.ends[ZERO] = 24
        self.assertEqual(self.world.run(), 0)

    def history(self) -> History:
        """What the ledger says."""
        return read_history(self.world.storage)


class ManifestTests(VerifyCase):
    """L{check_manifest}."""

    def faults(self, history: History) -> list[tuple[str, str]]:
        """Where, and what."""
        return [(each.where, each.text) for each in check_manifest(history)]

    def commit(self, number: int) -> dict[str, Any]:
        """A commit's JSON."""
        name = f"_rocketbroker/commits/{number:08d}.json"
        tree: dict[str, Any] = json.loads(self.world.storage.read(name))
        return tree

    def test_whole(self) -> None:
        """What a run has written has no fault."""
        self.assertEqual(self.faults(self.history()), [])

    def test_missingCommit(self) -> None:
        """A commit that is gone leaves offsets in no file."""
        self.world.origin.ends[ZERO] = 30
        self.assertEqual(self.world.run(), 0)
        os.remove(self.world.storage.where("_rocketbroker/commits/00000002.json"))
        self.assertEqual(
            self.faults(self.history()),
            [
                ("commit 2", "missing in the ledger"),
                (str(ZERO), "the offsets from 20 to 23 are in no file"),
            ],
        )

    def test_unreadable(self) -> None:
        """A commit that cannot be read is a fault, and so are its offsets."""
        self.world.storage.put("_rocketbroker/commits/00000001.json", b"{")
        places = [where for where, _ in self.faults(self.history())]
        self.assertIn("commit 1", places)
        self.assertTrue(places[0].endswith("commits/00000001.json"))

    def changed(self, **words: Any) -> History:
        """The first commit with other values."""
        history = self.history()
        first, *others = history.commits
        return attrs.evolve(history, commits=(attrs.evolve(first, **words), *others))

    def test_twice(self) -> None:
        """Nothing is exported twice."""
        (file, *_) = self.history().commits[1].files
        first = self.history().commits[0]
        found = self.faults(self.changed(files=(*first.files, file), rows=31))
        self.assertIn((file.path, "it is in the commits 1 and 2"), found)
        text = f"the offsets from 20 on are in {file.path} and in {file.path}"
        self.assertIn((str(ZERO), text), found)

    def test_rows(self) -> None:
        """Rows are as many as the commit says, and as many as offsets."""
        text = "it says 5 rows, but its files have 27"
        self.assertIn(("commit 1", text), self.faults(self.changed(rows=5)))
        first = self.history().commits[0]
        (file, *others) = first.files
        (part, *more) = file.parts
        part = attrs.evolve(part, rows=part.rows - 1)
        file = attrs.evolve(file, parts=(part, *more))
        found = self.faults(self.changed(files=(file, *others)))
        text = f"{part.rows} rows for {part.wanted}, of which 0 are holes"
        self.assertEqual(found, [(file.path, text)])

    def test_ends(self) -> None:
        """The last commit ends where the files end."""
        history = self.history()
        *others, last = history.commits
        last = attrs.evolve(last, ends={ZERO: last.ends[ZERO]})
        found = self.faults(attrs.evolve(history, commits=(*others, last)))
        text = "exported up to 7, but the last commit says nothing"
        self.assertEqual(found, [(str(ONE), text)])


class FileTests(VerifyCase):
    """L{check_files}."""

    def faults(self, level: str = DIGESTS) -> list[tuple[str, str, str]]:
        """Level, file, and what."""
        passed: list[DataFile] = []
        history = self.history()
        with ThreadPoolExecutor(1) as pool:
            check = Verification(self.world.storage, history, pool, passed.append)
            found = [
                (each.level, each.where, each.text)
                for each in check.faults(level, None)
            ]
        self.assertEqual(passed, [*history.files()])
        self.assertEqual(check.count, len(found))
        return found

    def path(self) -> str:
        """One of the files."""
        return next(self.history().files()).path

    def test_whole(self) -> None:
        """What a run has written has no fault."""
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.faults(FILES), [])

    def test_gone(self) -> None:
        """A file that is not there is one."""
        path = self.path()
        os.remove(self.world.storage.where(path))
        ((level, where, text),) = self.faults(FILES)
        self.assertEqual((level, where), (FILES, path))
        self.assertIn("cannot be read", text)

    def test_flipped(self) -> None:
        """A bit that was flipped is found by the CRC, and by nothing less."""
        path = self.world.storage.where(self.path())
        with open(path, "r+b") as file:
            file.seek(30)
            byte = file.read(1)
            file.seek(30)
            file.write(bytes([byte[0] ^ 1]))
        self.assertEqual(self.faults(FILES), [])
        ((_, _, text),) = self.faults()
        self.assertIn("CRC-32C", text)

    def written_again(self, column: str, change: Any) -> tuple[str, str]:
        """A file that somebody has changed, and for which the ledger was changed."""
        path = self.path()
        where = self.world.storage.where(path)
        table = pq.ParquetFile(where).read()
        metadata = pq.read_metadata(where).metadata
        place = table.schema.get_field_index(column)
        values = [change(each) for each in table[column].to_pylist()]
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.array(values, field.type))
        pq.write_table(table.replace_schema_metadata(metadata), where)
        size, crc = file_checksum(self.world.storage, path)
        name = "_rocketbroker/commits/00000001.json"
        tree = json.loads(self.world.storage.read(name))
        for row in tree["files"]:
            if row["path"] == path:
                row["bytes"], row["fileCrc32c"] = size, crc
        self.world.storage.put(name, json.dumps(tree).encode())
        (_, where, text), *others = self.faults()
        self.assertEqual({where, *(other[1] for other in others)}, {path})
        return where, text

    def test_bodies(self) -> None:
        """Other bodies are found although every size and CRC agrees."""
        _, text = self.written_again("body", lambda each: each[::-1] + b".")
        self.assertIn("its bodies are not", text)

    def test_stored(self) -> None:
        """So are other CRCs of stored bodies."""
        _, text = self.written_again("bodyCRC", lambda each: each ^ 1)
        self.assertIn("the offsets or CRCs of", text)

    def test_footer(self) -> None:
        """A file of another commit is not taken for this one."""
        first, *_, last = self.history().files()
        storage = self.world.storage
        os.replace(storage.where(last.path), storage.where(first.path))
        found = self.faults(FILES)
        self.assertEqual({where for _, where, _ in found}, {first.path, last.path})


class SourceTests(VerifyCase):
    """L{compare_with} and L{compare_ends}."""

    def compared(self) -> tuple[list[str], int, int]:
        """The texts of the faults, and how much was compared and how much is gone."""
        texts: list[str] = []
        rows = removed = 0
        for file in self.history().files():
            found = compare_with(self.world.origin, OPTIONS, file)
            texts += [each.text for each in found.faults]
            rows, removed = rows + found.rows, removed + found.removed
        return texts, rows, removed

    def ends(self) -> Iterator[str]:
        """The texts of the faults of ends."""
        ends = self.history().ends.items()
        for fault in compare_ends(self.world.origin, ends):
            yield fault.text

    def test_same(self) -> None:
        """The source has what the files have."""
        self.assertEqual(self.compared(), ([], 31, 0))
        self.assertEqual([*self.ends()], [])

    def test_removed(self) -> None:
        """What the source has deleted meanwhile is counted, and no fault."""
        self.world.origin.first[ZERO] = 24
        self.assertEqual(self.compared(), ([], 7, 24))
        self.assertEqual([*self.ends()], [])

    def test_otherMessage(self) -> None:
        """Another message at an offset is a fault, at the end of a queue two."""
        self.world.origin.records[3] = stored(3, b"else", topic="T", queue_id=0)
        texts, _, _ = self.compared()
        self.assertIn(f"the source has other messages in [0, 20) of {ZERO}", texts)
        self.world.origin.records = {23: stored(24, b"", topic="T", queue_id=0)}
        (text,) = self.ends()
        self.assertEqual(text, "message 23 is another one than the exported")

    def test_shorter(self) -> None:
        """A source that ends before the export is another one."""
        self.world.origin.ends[ONE] = 5
        texts, _, _ = self.compared()
        text = f"[0, 7) of {ONE} is exported, but the source ends at 5"
        self.assertEqual(texts, [text])
        self.assertEqual([*self.ends()], ["exported up to 7, but the source ends at 5"])


class ColumnTests(SynchronousTestCase):
    """Exports of some columns."""

    def test_withoutBodies(self) -> None:
        """Everything but bodies is checked in files without them."""
        world = World(self.mktemp(), {ZERO: 20, ONE: 7})
        self.assertEqual(world.run(select=("tags",)), 0)
        history = read_history(world.storage)
        with ThreadPoolExecutor(1) as pool:
            check = Verification(world.storage, history, pool, lambda file: None)
            self.assertEqual([*check.faults(DIGESTS, None)], [])
        for file in history.files():
            self.assertEqual(compare_with(world.origin, OPTIONS, file).faults, ())
        world.origin.records[9] = stored(9, b"other", queue_id=0)
        faults = [
            fault
            for file in history.files()
            for fault in compare_with(world.origin, OPTIONS, file).faults
        ]
        self.assertEqual(len(faults), 1, faults)
