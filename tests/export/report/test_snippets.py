"""Programs that read an export, run as they stand."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import duckdb
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.report.snippets import snippets
from tests.export.worlds import ONE, ZERO, World


class SnippetTests(SynchronousTestCase):
    """L{snippets}; Spark's is run where a JVM is, in the tests of documentation."""

    def programs(self, root: str) -> dict[str, str]:
        """The programs for a small export, by tool."""
        world = World(root, {ZERO: 20, ONE: 7})
        self.assertEqual(world.run(), 0)
        return dict(snippets(world.storage.address, "T"))

    def output(self, program: str) -> str:
        """What a Python program prints."""
        out = io.StringIO()
        with redirect_stdout(out):
            exec(compile(program, "snippet", "exec"), {})
        return out.getvalue()

    def test_duckdb(self) -> None:
        """DuckDB counts the messages of each hour; a quote in a path is no harm."""
        program = self.programs(self.mktemp() + "/it's")["DuckDB"]
        rows = duckdb.connect().execute(program).fetchall()
        self.assertEqual(sum(row[-1] for row in rows), 27)

    def test_pandas(self) -> None:
        """pandas reads the columns that it is told."""
        words = self.output(self.programs(self.mktemp())["pandas"]).split()
        self.assertEqual(words[-8:], ["0", "0", "19", "20", "1", "0", "6", "7"])

    def test_polars(self) -> None:
        """Polars reads the topic lazily."""
        self.assertIn("27", self.output(self.programs(self.mktemp())["Polars"]))

    def test_addresses(self) -> None:
        """Spark knows S3 by another name; topics are escaped as their folders are."""
        found = dict(snippets("s3://bucket/lake/", "%DLQ%g"))
        self.assertIn("'s3a://bucket/lake/~25DLQ~25g'", found["Spark"])
        self.assertIn("'s3://bucket/lake/~25DLQ~25g/**/*.parquet'", found["Polars"])
