"""Starts of a slave whose log has bytes that are no record."""

from __future__ import annotations

from tests.store.copies import CopyCase, open_copy, settle
from tests.store.snapshots import log_file
from tests.store.stores import SEGMENT, bodies, put


class SlaveLogTests(CopyCase):
    """Four messages at both; the second is lost at the slave."""

    def lose(self, is_noted: bool) -> None:
        """Zeros in its place, after a kill.

        @param is_noted: whether the slave has noted it as being on the disk.
        """
        queue = self.master.queue("T", 0)
        self.drafts = put(self.master, queue, b"1", b"2", b"3", b"4")
        data = self.master.raw_log.read(0, SEGMENT)
        self.slave.raw_log.append(0, data)
        settle(self.slave)
        if is_noted:
            self.slave.flush_queues()
        start, end = self.drafts[1].position, self.drafts[1].end
        self.slave_disk.open(log_file()).pwrite(bytes(end - start), start)
        self.slave_disk.crash(keep_all=True)
        self.slave = open_copy(self.slave_disk, self.slave_wall, broker_role="SLAVE")

    def test_torn(self) -> None:
        """Bytes that may never have been on the disk are the end of its log: the master
        sends them again, and what follows them."""
        self.lose(is_noted=False)
        self.assertEqual(self.slave.published_position, self.drafts[1].position)
        data = self.master.raw_log.read(self.drafts[1].position, SEGMENT)
        self.slave.raw_log.append(self.drafts[1].position, data)
        self.check()

    def test_rotten(self) -> None:
        """Bytes that were there once are passed over: the master may not have them any
        more, nor all that follows."""
        self.lose(is_noted=True)
        self.assertEqual(self.slave.published_position, self.drafts[-1].end)
        found = bodies(self.slave, self.slave.queue("T", 0))
        self.assertEqual(found, [b"1", b"3", b"4"])
