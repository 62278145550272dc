"""Tests of L{rocketbroker.broker.schedule.delay_offsets}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads

PATH = "/store/config/delayOffset.json"

#: As RocketMQ 5.3.3 writes it.
JAVAS = b"""{
\t"dataVersion":{
\t\t"counter":7,
\t\t"stateVersion":0,
\t\t"timestamp":1700000000000
\t},
\t"offsetTable":{1:5,2:0,
\t\t18:3
\t}
}"""


class DelayOffsetTests(SynchronousTestCase):
    """The table and its file."""

    def setUp(self) -> None:
        """A disk with a folder for the file."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/store/config")

    def table(self, content: bytes | None = None, step: int = 200) -> DelayOffsets:
        """A table that has been loaded, from that content."""
        if content is not None:
            file = self.disk.open(PATH, create=True)
            file.truncate(0)
            file.pwrite(content, 0)
        table = DelayOffsets(
            JsonTable(self.disk, PATH, at_once, Clock()), step, lambda: 9
        )
        table.load()
        return table

    def test_java(self) -> None:
        """RocketMQ's file is read."""
        table = self.table(JAVAS)
        self.assertEqual([table.get(level) for level in (1, 2, 3, 18)], [5, 0, None, 3])
        self.assertEqual(table.version.counter, 7)

    def test_all(self) -> None:
        """Request 45 is answered with the table in the form of the file."""
        table = self.table(JAVAS)
        responders = ResponderTable()
        table.register(responders)
        answer = responders.responders[45](RecordedConnection(), Command(45))
        assert isinstance(answer, Command)
        self.assertEqual(loads(answer.body), table.to_json())

    def test_roundTrip(self) -> None:
        """What is written has the keys that RocketMQ reads, and is read back."""
        table = self.table(JAVAS)
        table.put(1, 6)
        table.save()
        self.assertIn(b'"offsetTable":{1:6,2:0,18:3}', self.disk.read(PATH))
        self.assertEqual(self.table().get(1), 6)

    def test_nothingNew(self) -> None:
        """What did not change is not written."""
        table = self.table(JAVAS)
        table.put(1, 5)
        table.save()
        self.assertEqual(self.disk.read(PATH), JAVAS)

    def test_version(self) -> None:
        """The data version moves every so many changes."""
        table = self.table(step=2)
        table.put(1, 1)
        self.assertEqual(table.version.counter, 0)
        table.put(1, 2)
        self.assertEqual((table.version.counter, table.version.timestamp), (1, 9))

    def test_nonsense(self) -> None:
        """What makes no sense is left out, the rest counts."""
        table = self.table(
            b'{"offsetTable":{"1":5,"x":1,"0":1,"-1":1,"1001":1,"2":-1,"3":"y",'
            b'"4":9223372036854775808,"5":null}}'
        )
        self.assertEqual(
            [table.get(level) for level in range(6)], [None, 5, *[None] * 4]
        )
        for content in (b"", b"{", b"[]", b'{"offsetTable":[]}'):
            self.assertIsNone(self.table(content).get(1))

    def test_failedWrite(self) -> None:
        """A write that failed is tried again by the next save."""
        table = self.table()
        table.put(1, 3)
        self.disk.fail("datasync", 5, times=1)
        table.save()
        self.assertFalse(self.disk.exists(PATH))
        table.save()
        self.assertEqual(self.table().get(1), 3)
        self.flushLoggedErrors()
