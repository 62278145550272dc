"""The limit of open files and connections."""

from __future__ import annotations

import resource

from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.descriptors import proxied_connections, raise_descriptor_limit


class Limits:
    """A system's limits."""

    def __init__(self, soft: int, hard: int, refusal: Exception | None = None) -> None:
        self.now = (soft, hard)
        self._refusal = refusal

    def getrlimit(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.now

    def setrlimit(self, which: int, limits: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_NOFILE
        if self._refusal is not None:
            raise self._refusal
        self.now = limits


class DescriptorTests(SynchronousTestCase):
    """On limits of the test."""

    def raised(self, limits: Limits) -> list[str]:
        """Raise the limit; the lines of the log."""
        with capturedLogs() as events:
            raise_descriptor_limit(limits)
        return [formatEvent(event) for event in events]

    def test_raised(self) -> None:
        """The soft limit becomes the hard one; the log has both and what fits."""
        limits = Limits(1024, 524288)
        self.assertEqual(
            self.raised(limits),
            [
                "Open files are limited to 524288 (soft limit 1024, hard limit "
                "524288); 393216 connections fit."
            ],
        )
        self.assertEqual(limits.now, (524288, 524288))

    def test_refused(self) -> None:
        """Where the system refuses, the soft limit stays, and the log says why."""
        for refusal in (ValueError("not allowed"), OSError(1, "not permitted")):
            lines = self.raised(Limits(1024, 4096, refusal))
            self.assertEqual(
                lines,
                [
                    f"The limit of open files stays at 1024: {refusal}.",
                    "Open files are limited to 1024 (soft limit 1024, hard limit "
                    "4096); 768 connections fit.",
                ],
            )

    def test_equal(self) -> None:
        """Nothing is changed where both are the same."""
        limits = Limits(4096, 4096, OSError("must not be called"))
        self.assertEqual(len(self.raised(limits)), 1)

    def test_proxyHasThreeForEachClient(self) -> None:
        """And a part that is not for clients."""
        self.assertEqual(proxied_connections(Limits(20_000, 20_000)), 5000)
