"""The settings of a store."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError
from tests.config.keys import check_tables


class StoreOptionsTests(SynchronousTestCase):
    """L{StoreOptions}."""

    def test_tables(self) -> None:
        """Tables and attributes agree, and the defaults can be read back."""
        check_tables(self, StoreOptions)

    def test_oddSpellings(self) -> None:
        """The spelling of keys is part of the interface."""
        known = StoreOptions.keys()
        for key in (
            "destroyMapedFileIntervalForcibly",
            "warmMapedFileEnable",
            "mapperFileSizeBatchConsumeQueue",
            "enableDLegerCommitLog",
            "compactionScheduleInternal",
            "osPageCacheBusyTimeOutMills",
            "checkCRCOnRecover",
            "statRocksDBCQIntervalSec",
            "dLegerSelfId",
        ):
            self.assertIn(key, known)

    def test_sizes(self) -> None:
        """A segment has at least one byte, and less than its length field holds."""
        options = StoreOptions.from_properties({"mappedFileSizeCommitLog": "4096"})
        self.assertEqual(options.mapped_file_size_commit_log, 4096)
        for text in ("0", str(2**31)):
            self.assertRaises(
                ConfigurationError,
                StoreOptions.from_properties,
                {"mappedFileSizeCommitLog": text},
            )
