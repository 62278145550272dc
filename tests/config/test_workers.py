"""The number of workers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config import machine
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.workers import MAX_WORKERS, check_workers, worker_count
from rocketbroker.errors import ConfigurationError


class WorkersTests(SynchronousTestCase):
    """The setting C{workers}."""

    def test_none(self) -> None:
        """A broker has no workers unless it is told so."""
        self.assertEqual(worker_count(BrokerOptions().workers), 0)

    def test_numbers(self) -> None:
        """From none to the limit."""
        for text, count in (("0", 0), ("3", 3), (str(MAX_WORKERS), MAX_WORKERS)):
            check_workers(text)
            self.assertEqual(worker_count(text), count)

    def test_auto(self) -> None:
        """One for each core, up to the limit."""
        check_workers("auto")
        self.assertEqual(worker_count("auto"), min(machine.processors(), MAX_WORKERS))

    def test_refused(self) -> None:
        """Whatever else it says is refused in one sentence."""
        for text in ("-1", str(MAX_WORKERS + 1), "two", "", "1.5", "9" * 30):
            with self.assertRaises(ConfigurationError) as caught:
                BrokerOptions.from_properties({"workers": text}, "b.conf")
            self.assertEqual(
                str(caught.exception),
                f"b.conf: workers cannot be {text!r}: it must be auto, or a whole "
                "number from 0 to 64.",
            )
