"""Tests of L{rocketbroker.replication.join}; see L{tests.replication.test_slave}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.replication.join import start_of_record
from tests.store.stores import opened, put


class StartTests(SynchronousTestCase):
    """Where the record begins that has a byte."""

    def setUp(self) -> None:
        """A log of three messages, the second of which looks like a record."""
        self.store = opened()
        self.addCleanup(self.store.close)
        queue = self.store.queue("T", 0)
        (first,) = put(self.store, queue, b"first")
        record = self.store.raw_log.read(0, 1 << 20)
        drafts = put(self.store, queue, record + b"second", b"third")
        self.starts = [first.position, *(draft.position for draft in drafts)]
        self.log = self.store.raw_log.read(0, 1 << 20)

    def test_each(self) -> None:
        """It is found from any of its bytes, also if there are bytes of a record in
        its body."""
        ends = [*self.starts[1:], len(self.log)]
        for start, end in zip(self.starts, ends, strict=True):
            found = {start_of_record(self.log, 0, at) for at in range(start, end)}
            self.assertEqual(found, {start})

    def test_cut(self) -> None:
        """A record that lacks its beginning has no start."""
        begin = self.starts[1] + 1
        log = self.log[begin:]
        last = self.starts[2] - begin
        self.assertIs(start_of_record(log, begin, last - 1), None)
        self.assertEqual(start_of_record(log, begin, last), self.starts[2])
