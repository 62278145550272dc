"""The columns and their types."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.columns import (
    KAFKA,
    NATIVE,
    SETS,
    arrow_schema,
    check_types,
    chosen,
    ddl,
)
from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.option_values import column_names


class ColumnTests(SynchronousTestCase):
    """Names, types, and what is said of those that do not exist."""

    def test_sets(self) -> None:
        """The sets are those that options can name."""
        for name in SETS:
            self.assertEqual(column_names(name.upper()), (name, ()))

    def test_schemas(self) -> None:
        """A schema is written as Spark's SQL reads it, and as Arrow has it."""
        wanted = chosen(["queueId", "body"], NATIVE)
        self.assertEqual(ddl(wanted), "queueId int, body binary")
        self.assertEqual(arrow_schema(wanted).names, ["queueId", "body"])
        self.assertEqual(str(arrow_schema(KAFKA).field("partition").type), "int32")

    def test_check(self) -> None:
        """Columns asked for may be any, in any order, with their own types."""
        self.assertEqual(list(chosen(["body", "topic"], NATIVE)), ["body", "topic"])
        check_types([("body", "binary"), ("topic", "string")], NATIVE)
        unknown = self.assertRaises(ConfigurationError, chosen, ["bdy"], NATIVE)
        self.assertTrue(str(unknown).startswith("there is no column 'bdy'; the "))
        other = self.assertRaises(
            ConfigurationError, check_types, [("body", "string")], NATIVE
        )
        self.assertEqual(str(other), "column 'body' is of type binary, not string")
