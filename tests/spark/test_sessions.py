"""What is said of a job that failed."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.spark.sessions import reason

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

    def test_other(self) -> None:
        """Of anything else the first line."""
        self.assertEqual(reason(Exception("\n one \n two")), "one")
        self.assertEqual(reason(ValueError()), "ValueError")
