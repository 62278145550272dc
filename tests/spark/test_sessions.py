"""What is said of a job that failed."""

from __future__ import annotations

from typing import cast

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.spark.sessions import reason, register
from rocketbroker.spark.source import RocketMQDataSource

WRAPPED = """\
[PYTHON_DATA_SOURCE_ERROR] Failed to plan: Traceback (most recent call last):
  File "worker.py", line 1, in main
    ranges = resolve()
rocketbroker.errors.ConnectionLost: cannot connect to 127.0.0.1:1: refused

JVM stacktrace:
org.apache.spark.api.python.PythonException: trace
"""


class ReasonTests(SynchronousTestCase):
    """L{reason}."""

    def test_own(self) -> None:
        """Our own sentence is found in what Spark made of it."""
        self.assertEqual(
            reason(Exception(WRAPPED)), "cannot connect to 127.0.0.1:1: refused"
        )

    def test_workers(self) -> None:
        """What a worker's Python died of is found: the last, if it tried often."""
        trace = "Traceback (most recent call last):\n  File 'a', line 1\n    x()\n"
        text = (
            f"Job aborted: worker: {trace}OSError: first\n\n{trace}OSError: last\n\tat"
        )
        self.assertEqual(reason(Exception(text)), "OSError: last")

    def test_other(self) -> None:
        """Of anything else the first line."""
        self.assertEqual(reason(Exception("\n one \n two")), "one")
        text = "An error occurred while calling z:x.\n: java.lang.X: it broke\n\tat y\n"
        self.assertEqual(reason(Exception(text)), "it broke")
        text += "Caused by: org.apache.spark.Y$Z: a disk is full\n\tat z"
        self.assertEqual(reason(Exception(text)), "a disk is full")
        self.assertEqual(reason(ValueError()), "ValueError")


class Registry:
    """What a session has for its sources; it refuses with these words, if any."""

    def __init__(self, words: str = "") -> None:
        self.words = words
        self.found: list[type[DataSource]] = []

    @property
    def dataSource(self) -> Registry:
        """Itself."""
        return self

    def register(self, source: type[DataSource]) -> None:
        """As C{DataSourceRegistration.register}."""
        if self.words:
            raise AnalysisException(self.words)
        self.found.append(source)


class RegisterTests(SynchronousTestCase):
    """L{register}."""

    def register(self, registry: Registry) -> None:
        """Register our source."""
        register(cast(SparkSession, registry), RocketMQDataSource)

    def test_registers(self) -> None:
        """The session gets the source."""
        registry = Registry()
        self.register(registry)
        self.assertEqual(registry.found, [RocketMQDataSource])

    def test_there(self) -> None:
        """One that Spark 4.0 found by itself is good; other refusals are not."""
        self.register(Registry("[DATA_SOURCE_ALREADY_EXISTS] rocketmq"))
        with self.assertRaises(AnalysisException):
            self.register(Registry("[SOMETHING_ELSE] rocketmq"))
