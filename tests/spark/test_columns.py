"""The columns and their types."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.columns import (
    KAFKA,
    NATIVE,
    SAME,
    check_columns,
    columns_of,
    ddl,
)
from rocketbroker.spark.decoding import MAKERS, TYPES


class ColumnTests(SynchronousTestCase):
    """Names, types, and what is said of those that do not exist."""

    def test_sets(self) -> None:
        """The two sets are named in any case; any other is refused."""
        self.assertIs(columns_of("Native"), NATIVE)
        self.assertIs(columns_of("kafka"), KAFKA)
        error = self.assertRaises(ConfigurationError, columns_of, "pulsar")
        self.assertEqual(str(error), "columns='pulsar' is neither native nor kafka")

    def test_eachCanBeMade(self) -> None:
        """There is a decoder and an Arrow type for each column, and none besides."""
        self.assertEqual(set(MAKERS), set(NATIVE) | set(KAFKA))
        self.assertEqual(set(TYPES), set(NATIVE) | set(KAFKA))
        for theirs, ours in SAME.items():
            self.assertEqual(TYPES[theirs], TYPES[ours])

    def test_ddl(self) -> None:
        """A schema is written as Spark's SQL reads it."""
        self.assertEqual(ddl({"a": "int", "b": "string"}), "a int, b string")

    def test_check(self) -> None:
        """Columns asked for may be any, in any order, with their own types."""
        check_columns([("body", "binary"), ("topic", "string")], NATIVE)
        unknown = self.assertRaises(
            ConfigurationError, check_columns, [("bdy", "binary")], NATIVE
        )
        self.assertTrue(str(unknown).startswith("there is no column 'bdy'; the "))
        other = self.assertRaises(
            ConfigurationError, check_columns, [("body", "string")], NATIVE
        )
        self.assertEqual(str(other), "column 'body' is of type binary, not string")
