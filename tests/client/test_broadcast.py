"""Consumers that broadcast: every member gets every message."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.local_offsets import FileOffsets, OffsetFolder
from rocketbroker.client.session import Session
from rocketbroker.client.settings import ProducerSettings
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

QUEUES = [MessageQueue("T1", "b1", n) for n in range(2)]

#: As a Java client writes it.
JAVAS = b"""{
\t"offsetTable":{{
\t\t\t"brokerName":"b1",
\t\t\t"queueId":0,
\t\t\t"topic":"T1"
\t\t}:5,{
\t\t\t"brokerName":"b1",
\t\t\t"queueId":1,
\t\t\t"topic":"T1"
\t\t}:6
\t}
}"""


class FileOffsetTests(SynchronousTestCase):
    """Offsets in a file."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.disk = MemoryDisk()
        self.path = "/offsets/c/G/offsets.json"

    def read(self) -> list[int | None]:
        """The offsets of both queues, read anew."""
        offsets = FileOffsets(self.disk, self.path)
        return [self.here.runtime.finish(offsets.read(queue)) for queue in QUEUES]

    def put(self, name: str, content: bytes) -> None:
        """Write a file."""
        self.disk.make_dirs("/offsets/c/G")
        file = self.disk.open(name, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()

    def test_javasFileIsRead(self) -> None:
        """Its keys are objects."""
        self.put(self.path, JAVAS)
        self.assertEqual(self.read(), [5, 6])

    def test_otherQueuesAreKept(self) -> None:
        """Also those that are not ours any more."""
        self.put(self.path, JAVAS)
        offsets = FileOffsets(self.disk, self.path)
        self.here.runtime.finish(offsets.write({QUEUES[1]: 9}, wait=True))
        self.assertEqual(self.read(), [5, 9])

    def test_damagedFileIsReplacedByTheOneBefore(self) -> None:
        """Without that one there are no offsets; it is said, and the client starts."""
        self.put(self.path, b"{")
        with self.assertLogs("rocketbroker.client", "ERROR"):
            self.assertEqual(self.read(), [None, None])
        self.put(self.path + ".bak", JAVAS)
        self.assertEqual(self.read(), [5, 6])

    def test_missingFileHasNoOffsets(self) -> None:
        """The group begins where its settings say."""
        self.assertEqual(self.read(), [None, None])


class BroadcastTests(SynchronousTestCase):
    """Two members on two machines."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime

    def session(self, disk: MemoryDisk) -> Session:
        """A session of one machine."""
        folder = OffsetFolder(disk, "/home")
        settings = self.here.settings
        return Session(self.runtime, settings, ProducerSettings(), lambda: folder)

    def test_everyMemberGetsEveryMessage(self) -> None:
        """And goes on where it was, by its own file; the broker keeps no offsets."""
        self.here.put("1", "2")
        disks = [MemoryDisk(), MemoryDisk()]

        async def read(disk: MemoryDisk) -> list[str]:
            async with (
                self.session(disk) as mq,
                mq.consumer("T", "G", broadcast=True, start="earliest") as messages,
            ):
                found = []
                while (message := await messages.next(1.0)) is not None:
                    found.append(message.text)
                    await message.ack()
                return found

        both = [self.runtime.start(read(disk)) for disk in disks]
        self.assertEqual([self.here.until(one) for one in both], [["1", "2"]] * 2)
        self.here.put("3")
        again = self.runtime.start(read(disks[0]))
        self.assertEqual(self.here.until(again), ["3"])
        self.assertEqual(self.here.broker().offsets, {})
        codes = self.runtime.codes()
        self.assertNotIn(RequestCode.GET_CONSUMER_LIST_BY_GROUP, codes)

    def test_failedMessageIsDropped(self) -> None:
        """As in Java: no other member would get it again."""
        self.here.put("1")
        consumer = self.here.started(broadcast=True)
        self.runtime.finish(self.here.take(consumer).retry())
        self.assertEqual(set(consumer.offsets().values()), {1, 0})
        codes = self.runtime.codes()
        self.assertNotIn(RequestCode.CONSUMER_SEND_MSG_BACK, codes)
