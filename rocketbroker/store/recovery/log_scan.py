# -*- test-case-name: tests.store.recovery.test_bad_log -*-
"""The scan of the log by a start, which enters all records into the queues.

The scan ends where no record is and no whole record follows: a torn tail. Where whole
records follow (L{rocketbroker.store.commitlog.resync}), the bytes between are corrupt,
or the disk cannot read them. The scan passes over them, counts them, and goes on
behind: the records that follow were acknowledged like any other.

A slave gets again what it lacks, but only behind its end. So its log ends at such bytes
if they may never have been on the disk, whatever of the bytes behind them is.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.records.record_head import MAGIC_V1, RecordHead
from rocketbroker.store.commitlog.resync import Resync
from rocketbroker.store.commitlog.scanner import NOTHING, Scan
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.dispatch.dispatcher import ENTRY_BATCH_SIZE, Dispatcher

#: Behind all positions.
NEVER: Final = 1 << 62

_MAGIC_V1: Final = MAGIC_V1.to_bytes(4, "big", signed=True)


@final
class LogScan:
    """One scan, from a position to the end of the log.

    @ivar records: how many records were read.
    @ivar last_store_ms: the store time of the last of them.
    """

    def __init__(
        self,
        segments: Segments,
        dispatcher: Dispatcher,
        check_crc: int,
        corruption: CorruptionLog,
        torn_from: int = NEVER,
    ) -> None:
        """
        @param torn_from: bytes from there on that are no record are a torn tail,
            whatever follows them.
        @param check_crc: which CRCs of a record are checked; see
            L{rocketbroker.store.commitlog.scanner.parse}.
        """
        self._segments = segments
        self._dispatcher = dispatcher
        self._check_crc = check_crc
        self._corruption = corruption
        self._torn_from = torn_from
        self._held: RecordHead | None = None
        self._collected = 0
        self.records = 0
        self.last_store_ms = 0

    def run(self, start: int, ends_at_zeros: bool, zeroed: bool) -> Scan:
        """I{Blocking.} Enter all records from a position on.

        @param ends_at_zeros: whether the log ends at the first zeros, as it does after
            a clean stop; nothing is searched behind them.
        @param zeroed: whether only zeros stood behind the log's end when a process last
            began to write there; else records behind it may be older than the log.
        @return: the scan, which stands at the end of the log.
        """
        end = self._segments.all[-1].end
        while True:
            scan = Scan(self._segments, start, end, self._check_crc, self._take)
            self._take_all(scan)
            if not scan.broken or (ends_at_zeros and scan.broken == NOTHING):
                return scan
            if scan.position >= self._torn_from and not scan.is_refused:
                return scan
            start = self._behind(scan, 0 if zeroed else self.last_store_ms)
            if start < 0:
                return scan

    def _behind(self, scan: Scan, since_ms: int) -> int:
        """The position of the next whole record; -1 if none follows."""
        position = scan.position
        resync = Resync(self._segments, since_ms)
        behind = resync.next_whole(position, far=scan.is_refused)
        if behind > 0:
            if scan.is_refused:
                self._corruption.note_lost(position, behind)
            self._corruption.note(
                position,
                f"No record can be read at position {position}: {scan.broken}. The "
                f"log goes on at {behind}; the {behind - position} bytes before are "
                "passed over.",
            )
        return behind

    def _take_all(self, scan: Scan) -> None:
        """Enter the records of a scan, up to where it breaks."""
        self._held = None
        for found in scan:
            self._release()
            self._held = found
            self.records += 1
        held = self._held
        if held is not None and scan.broken == NOTHING and b"\0" in held[7]:
            # No CRC covers the properties. Where the last record has zeros in them, and
            # more zeros follow it, its end was not written.
            scan.position = held[0]
            scan.broken = "its end was not written"
            self.records -= 1
            self._held = None
        self._release()
        self._dispatcher.enter()

    def _release(self) -> None:
        """Enter the record that was held back: another one follows, or may."""
        if self._held is not None:
            self._dispatcher.add(self._held)
            self.last_store_ms = self._held[6]
            self._held = None
            self._count(1)

    def _count(self, collected: int) -> None:
        self._collected += collected
        if self._collected >= ENTRY_BATCH_SIZE:
            self._dispatcher.enter()
            self._collected = 0

    def _take(self, data: bytes, at: int, start: int) -> int:
        """Enter the ordinary records."""
        if not data.startswith(_MAGIC_V1, at + 4):
            return at
        self._release()
        at, count, store_ms = self._dispatcher.replay(data, at, start, self._check_crc)
        if count:
            self.last_store_ms = store_ms
            self.records += count
            self._count(count)
        return at
