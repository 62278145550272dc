"""One Parquet file."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export import parquet
from rocketbroker.export.checksums import crc32c
from rocketbroker.export.parquet import (
    FileMismatch,
    ParquetFile,
    check_file,
    file_checksum,
    read_footer,
    remove_drafts,
)
from rocketbroker.spark.columns import NATIVE
from rocketbroker.spark.decoding import Decoder
from rocketbroker.spark.layout import lay_out
from tests.spark.messages import stored


class ParquetTests(SynchronousTestCase):
    """L{ParquetFile} and L{check_file}."""

    def setUp(self) -> None:
        """Ten messages, and where they go."""
        self.root = self.mktemp()
        self.path = os.path.join(self.root, "T", "dt=1", "x.zstd.parquet")
        decoder = Decoder(tuple(NATIVE), "b", True)
        buffer = b"".join(
            stored(n, b"body", {"KEYS": "a b", "x": "y"}) for n in range(10)
        )
        (self.batch,) = decoder.batches(lay_out(buffer))

    def written(self, **changed: Any) -> dict[str, Any]:
        """Write the file; its manifest row."""
        file = ParquetFile(self.path, self.batch.schema)
        file.write(self.batch)
        row = {
            "path": "T/dt=1/x.zstd.parquet",
            "rows": 10,
            "from": 0,
            "until": 10,
            "holes": [],
        }
        size, crc = file.finish(row)
        return {**row, "bytes": size, "fileCrc32c": crc, **changed}

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

    def test_onlyWhole(self) -> None:
        """Until it is finished nothing has the name, nor ends like a Parquet file."""
        file = ParquetFile(self.path, self.batch.schema)
        file.write(self.batch)
        (draft,) = os.listdir(os.path.dirname(self.path))
        self.assertTrue(draft.startswith(".") and draft.endswith(".tmp"))
        file.abandon()
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    def test_groups(self) -> None:
        """Rows are gathered into groups."""
        file = ParquetFile(self.path, self.batch.schema)
        for _ in range(5):
            file.write(self.batch)
        self.assertEqual(parquet.ROW_GROUP_BYTES, 64 << 20)
        file.finish({})
        self.assertEqual(pq.read_metadata(self.path).num_row_groups, 1)

    def test_checksum(self) -> None:
        """Size and CRC are those of the bytes on the disk."""
        row = self.written()
        with open(self.path, "rb") as file:
            data = file.read()
        self.assertEqual(row["bytes"], len(data))
        self.assertEqual(row["fileCrc32c"], crc32c(data))
        self.assertEqual(file_checksum(self.path), (len(data), crc32c(data)))

    def test_footer(self) -> None:
        """The footer holds the manifest row; other files have none."""
        row = self.written()
        footer = read_footer(self.path)
        assert footer is not None
        self.assertTrue(footer.items() <= row.items())
        self.assertIsNone(read_footer(self.path + ".missing"))
        with open(self.path, "wb") as file:
            file.write(b"no parquet")
        self.assertIsNone(read_footer(self.path))

    def test_check(self) -> None:
        """A file is as its row says, or the difference is named."""
        row = self.written()
        check_file(self.root, row)
        for changed, sentence in (
            ({"bytes": 1}, "bytes, not 1"),
            ({"rows": 9}, "has 10 rows, not 9"),
            ({"until": 11}, "has 10 rows for the offsets from 0 to 11"),
            ({"from": 1, "until": 11}, "holds the offsets 0 to 9, not 1 to 10"),
            ({"path": "T/missing"}, "T/missing cannot be read"),
        ):
            error = self.assertRaises(
                FileMismatch, check_file, self.root, {**row, **changed}
            )
            self.assertIn(sentence, str(error))

    def test_holes(self) -> None:
        """Offsets that were gone are accounted for."""
        check_file(self.root, self.written(until=12, holes=[[10, 12]]))

    def test_drafts(self) -> None:
        """What died attempts left is removed, and nothing else."""
        self.written()
        folder, name = os.path.split(self.path)
        for left in (f".{name}.1.tmp", f".{name}.2.tmp", ".other.tmp"):
            with open(os.path.join(folder, left), "w"):
                pass
        self.assertEqual(remove_drafts(self.path), 2)
        self.assertEqual(sorted(os.listdir(folder)), [".other.tmp", name])
