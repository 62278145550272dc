"""One Parquet file."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.columns import NATIVE
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.layout import lay_out
from rocketbroker.export.parquet import (
    FileMismatch,
    ParquetFile,
    check_file,
    crc32c,
    file_checksum,
    read_footer,
)
from rocketbroker.export.storage import DirectoryStorage
from rocketbroker.files.disk import Disk
from tests.sources.messages import stored

PATH = "T/dt=1/x.zstd.parquet"


class ParquetTests(SynchronousTestCase):
    """L{ParquetFile} and L{check_file}."""

    def setUp(self) -> None:
        """Ten messages, and where they go."""
        self.root = os.path.abspath(self.mktemp())
        self.storage = DirectoryStorage(Disk(), self.root)
        self.path = os.path.join(self.root, PATH)
        decoder = Decoder(NATIVE, "b", True)
        buffer = b"".join(
            stored(n, b"body", {"KEYS": "a b", "x": "y"}) for n in range(10)
        )
        (self.batch,) = decoder.batches(lay_out(buffer))

    def written(self, **changed: Any) -> dict[str, Any]:
        """Write the file; its manifest row, with a range that is changed."""
        file = ParquetFile(self.storage, PATH, self.batch.schema, 100)
        file.write(self.batch)
        part = {"from": 0, "until": 10, "rows": 10, "holes": [], **changed}
        row = {"path": PATH, "rows": 10, "ranges": [part]}
        size, crc = file.finish(row)
        return {**row, "bytes": size, "fileCrc32c": crc}

    def test_content(self) -> None:
        """All columns come back as they were."""
        self.written()
        table = pq.read_table(self.path, partitioning=None)
        self.assertEqual(table.to_pylist(), self.batch.to_pylist())

    def test_times(self) -> None:
        """Times are read as UTC by whoever reads the file."""
        self.written()
        schema = pq.read_schema(self.path)
        self.assertEqual(
            schema.field("storeTimestamp").type, pa.timestamp("us", tz="UTC")
        )

    def test_crc(self) -> None:
        """The check value of CRC-32C, and the examples of RFC 3720; in one go or two,
        of any kind of buffer."""
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(memoryview(bytes(32))), 0x8A9136AA)
        self.assertEqual(crc32c(bytearray(b"\xff" * 32)), 0x62A8AB43)
        self.assertEqual(
            crc32c(bytes(range(20, 32)), crc32c(bytes(range(20)))), 0x46DD794E
        )
        self.assertEqual(crc32c(b"", 7), 7)

    def test_onlyWhole(self) -> None:
        """Until it is finished nothing has the name, nor ends like a Parquet file."""
        file = ParquetFile(self.storage, PATH, self.batch.schema, 100)
        file.write(self.batch)
        (draft,) = os.listdir(os.path.dirname(self.path))
        self.assertTrue(draft.startswith(".") and draft.endswith(".tmp"))
        file.abandon()
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    def test_groups(self) -> None:
        """Groups have the rows that the plan says, however the rows come."""
        for sizes in ((10, 10, 5), (1, 9, 3, 10, 2)):
            file = ParquetFile(self.storage, PATH, self.batch.schema, 7)
            for size in sizes:
                file.write(self.batch.slice(0, size))
            file.finish({})
            self.assertEqual(self.groups(), [7, 7, 7, 4])

    def test_largeBodies(self) -> None:
        """A group of large messages is closed before that, behind the same message."""
        for sizes in ((10,), (2, 1, 7)):
            file = ParquetFile(self.storage, PATH, self.batch.schema, 7, 11)
            for size in sizes:
                file.write(self.batch.slice(0, size))
            file.finish({})
            self.assertEqual(self.groups(), [3, 3, 3, 1])

    def groups(self) -> list[int]:
        """How many rows each group has."""
        found = pq.read_metadata(self.path)
        return [found.row_group(n).num_rows for n in range(found.num_row_groups)]

    def test_checksum(self) -> None:
        """Size and CRC are those of the bytes on the disk."""
        row = self.written()
        with open(self.path, "rb") as file:
            data = file.read()
        self.assertEqual(row["bytes"], len(data))
        self.assertEqual(row["fileCrc32c"], crc32c(data))
        self.assertEqual(file_checksum(self.storage, PATH), (len(data), crc32c(data)))

    def test_footer(self) -> None:
        """The footer holds the manifest row; other files have none."""
        row = self.written()
        footer = read_footer(self.storage, PATH)
        assert footer is not None
        self.assertTrue(footer.items() <= row.items())
        self.assertIsNone(read_footer(self.storage, PATH + ".missing"))
        with open(self.path, "wb") as file:
            file.write(b"no parquet")
        self.assertIsNone(read_footer(self.storage, PATH))

    def test_check(self) -> None:
        """A file is as its row says, or the difference is named."""
        row = self.written()
        check_file(self.storage, row)
        for changed, sentence in (
            ({"bytes": 1}, "bytes, not 1"),
            ({"rows": 9}, "has 10 rows, not 9"),
            ({"ranges": []}, "has more or fewer rows than its ranges"),
            ({"path": "T/missing"}, "T/missing cannot be read"),
        ):
            error = self.assertRaises(
                FileMismatch, check_file, self.storage, {**row, **changed}
            )
            self.assertIn(sentence, str(error))
        for part, sentence in (
            ({"until": 11}, "has 10 rows for the offsets from 0 to 11"),
            ({"from": 1, "until": 11}, "holds the offsets 0 to 9, not 1 to 10"),
        ):
            row = self.written(**part)
            error = self.assertRaises(FileMismatch, check_file, self.storage, row)
            self.assertIn(sentence, str(error))

    def test_holes(self) -> None:
        """Offsets that were gone are accounted for."""
        hole = {"from": 10, "until": 12}
        check_file(self.storage, self.written(until=12, holes=[hole]))
