"""Drafts to records."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.encoder import encode
from rocketbroker.store.commitlog.scanner import parse
from tests.store.commitlog.samples import SAMPLE
from tests.store.stores import BORN_HOST, BORN_HOST_V6, STORE_HOST, draft, opened


class EncodeTests(SynchronousTestCase):
    """The bytes of records."""

    def test_sample(self) -> None:
        """The record of the sheet comes out byte for byte."""
        one = draft(
            opened().queue("T", 3),
            b"hi",
            properties=b"TAGS\1a\2",
            born_ms=1700000000000,
        )
        one.queue_offset = 7
        one.position = 4096
        one.end = 4096 + 101
        record = b"".join(encode([one], 1700000000001, STORE_HOST))
        self.assertEqual(record.hex(), SAMPLE)

    def test_hosts(self) -> None:
        """Each host is as long as the system flag then says."""
        store = opened()
        queue = store.queue("T", 0)
        for born in (BORN_HOST, BORN_HOST_V6):
            for host in (STORE_HOST, BORN_HOST_V6):
                one = draft(queue, b"body", born_host=born, sys_flag=0x100)
                extra = len(born) + len(host) - 16
                one.end = 91 + extra + 4 + 1 + len(one.properties)
                record = b"".join(encode([one], 5, host))
                self.assertEqual(len(record), one.end)
                found = parse(record, 0, 0, True)
                flags = 0x100 | (len(born) == 20) * 0x10 | (len(host) == 20) * 0x20
                self.assertEqual(found[5:7], (flags, 5))
                self.assertEqual(record[48 : 48 + len(born)], born)
                self.assertEqual(record[56 + len(born) :][: len(host)], host)

    def test_longTopic(self) -> None:
        """A topic of more than 127 bytes makes a record of version 2."""
        topic = "%RETRY%" + "g" * 150
        one = draft(opened().queue(topic, 0), b"")
        one.end = 92 + len(topic) + len(one.properties)
        record = b"".join(encode([one], 5, STORE_HOST))
        self.assertEqual(len(record), one.end)
        self.assertEqual(record[4:8].hex(), "daa320ab")
        self.assertEqual(parse(record, 0, 0, True)[2], topic.encode())

    def test_longProperties(self) -> None:
        """Properties of any legal length have their length before them."""
        queue = opened().queue("T", 0)
        for size in (0, 1, 1023, 1024, 32767):
            one = draft(queue, b"", properties=b"p" * size)
            one.end = 92 + size
            found = parse(b"".join(encode([one], 5, STORE_HOST)), 0, 0, True)
            self.assertEqual(len(found[7]), size)

    def test_doesNotFit(self) -> None:
        """A number that does not fit its field is an error, not another number."""
        one = draft(opened().queue("T", 0), flag=1 << 31)
        self.assertRaises(struct.error, encode, [one], 5, STORE_HOST)
