"""How each group gets the messages of a topic."""

from __future__ import annotations

import errno

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.message_request_mode import (
    POP,
    MessageRequestModes,
    RequestMode,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once

PATH = "/store/config/messageRequestMode.json"

MODE = RequestMode(topic="T", consumer_group="G", mode=POP, pop_share_queue_num=2)


class RequestModesTests(SynchronousTestCase):
    """Set, kept, and what holds without."""

    def setUp(self) -> None:
        """Nothing was set."""
        self.disk = MemoryDisk()
        self.modes = self.made()

    def made(self, **options: str) -> MessageRequestModes:
        """The table, as a start finds it."""
        made = MessageRequestModes(
            BrokerOptions(**options),  # type: ignore[arg-type]
            JsonTable(self.disk, PATH, at_once, Clock()),
        )
        made.load()
        return made

    def test_kept(self) -> None:
        """What was set is in RocketMQ's file, and found by the next start."""
        self.successResultOf(self.modes.put(MODE))
        table = {"messageRequestModeMap": {"T": {"G": MODE.to_json()}}}
        self.assertEqual(self.made().to_json(), table)

    def test_mode(self) -> None:
        """What was set holds, or the default; retry topics are pulled."""
        self.successResultOf(self.modes.put(MODE))
        self.assertEqual(self.modes.mode("T", "G"), MODE)
        self.assertEqual(self.modes.mode("T", "H").mode, "PULL")
        pops = self.made(default_message_request_mode=POP)
        self.assertEqual(pops.mode("T", "H").mode, POP)
        self.assertEqual(pops.mode("T", "H").pop_share_queue_num, -1)
        self.assertEqual(pops.mode("%RETRY%H", "H").mode, "PULL")

    def test_nonsense(self) -> None:
        """What makes no sense in the file is left out."""
        self.successResultOf(self.modes.put(MODE))
        text = (
            '{"messageRequestModeMap":{"T":{"G":{"mode":[]},"H":7},"U":8,'
            '"V":{"G":{"topic":"V","consumerGroup":"G","mode":"POP"}}}}'
        )
        file = self.disk.open(PATH, create=True)
        file.truncate(0)
        file.pwrite(text.encode(), 0)
        table = self.made().to_json()["messageRequestModeMap"]
        mode = RequestMode(topic="V", consumer_group="G", mode=POP)
        self.assertEqual(table, {"V": {"G": mode.to_json()}})

    def test_notWritten(self) -> None:
        """A change that cannot be written holds, and says so; it is tried again."""
        self.disk.fail("pwrite", errno.ENOSPC, times=2)
        self.failureResultOf(self.modes.put(MODE), SystemFailure)
        table = self.modes.to_json()["messageRequestModeMap"]
        self.assertEqual(table, {"T": {"G": MODE.to_json()}})
