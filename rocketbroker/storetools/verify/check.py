# -*- test-case-name: tests.storetools.verify.test_check -*-
"""A check of a whole store: its log with its queues, then its index."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.index import IndexVerification
from rocketbroker.storetools.verify.log import Verification
from rocketbroker.storetools.verify.report import Remark, Report


@final
class Check:
    """One check.

    @ivar log: the walk through log and queues.
    @ivar index: that through the index.
    """

    def __init__(
        self,
        reader: StoreReader,
        sizes: tuple[int, int],
        report: Report,
        progress: Callable[[int], None],
        has_index: bool = True,
    ) -> None:
        """
        @param sizes: the settings maxHashSlotNum and maxIndexNum.
        @param report: is given each fault when it is found.
        @param progress: is given the bytes of log and index read so far, again and
            again.
        @param has_index: whether there should be an index, if there once was.
        """
        self._is_empty = not reader.log.paths
        self.log = Verification(reader, report, progress)
        self.index = IndexVerification(
            reader,
            *sizes,
            report,
            lambda done: progress(self.log.done + done),
            not has_index,
        )

    def expected_bytes(self) -> int:
        """The approximate number of bytes to read of both, for the time left."""
        if self._is_empty:
            return 0
        return self.log.expected_bytes() + self.index.expected_bytes()

    def run(self) -> None:
        """Check everything."""
        self.log.run()
        if not self._is_empty:
            # Without a log the index leads to nothing.
            self.index.run()
        self.log.report_unread()

    @property
    def remarks(self) -> list[Remark]:
        """Findings that are no faults."""
        return self.log.remarks + self.index.remarks

    @property
    def faults(self) -> int:
        """The number of reported faults."""
        return self.log.faults + self.index.faults
