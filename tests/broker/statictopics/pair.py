"""Two brokers in memory that share a static topic."""

from __future__ import annotations

from typing import Any, Final

from rocketbroker.broker.broker import Broker
from rocketbroker.records.record import decode_all
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.bodies.mappings import (
    LogicQueueMappingItem,
    TopicQueueMappingDetail,
)
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from tests.broker.rig import heartbeat, pull_ext, send_ext
from tests.broker.week import WeekCase

#: The main ports of brokers a and b.
A: Final = 10911
B: Final = 10931
PORTS: Final = {"a": A, "b": B}


def item(
    bname: str, queue_id: int, gen: int = 0, logic_offset: int = 0, **more: int
) -> LogicQueueMappingItem:
    """An item of a logical queue."""
    return LogicQueueMappingItem(
        gen=gen, queue_id=queue_id, bname=bname, logic_offset=logic_offset, **more
    )


class PairCase(WeekCase):
    """Brokers a and b, and a name server; logical queue 0 of topic T is at a."""

    def setUp(self) -> None:
        """Both are known to the name server."""
        super().setUp()
        self.epoch = 1000
        self.brokers: dict[str, Broker] = {}
        for name, port in PORTS.items():
            self.disk, self.port = MemoryDisk(), port
            self.brokers[name] = self.running(brokerName=name)
            self.client.oneway(f"127.0.0.1:{port}", heartbeat_command())
        self.network.settle()
        #: Where both logical queues are: 0 at a, 1 at b.
        self.queues: dict[int, tuple[LogicQueueMappingItem, ...]] = {
            0: (item("a", 0),),
            1: (item("b", 0),),
        }
        self.map_to("a", "b")

    def map_to(self, *names: str, code: int = 0, **fields: str) -> None:
        """Tell brokers the mapping of now, each the queues that it has an item of."""
        for name in names:
            hosted = {
                number: items
                for number, items in self.queues.items()
                if any(each.bname == name for each in items)
            }
            detail = TopicQueueMappingDetail(
                topic="T",
                bname=name,
                total_queues=2,
                epoch=self.epoch,
                hosted_queues=hosted,
            )
            answer = self.map(name, detail, **fields)
            self.assertEqual(answer.code, code, answer)
        self.network.advance(1)
        self.network.settle()

    def map(self, name: str, detail: TopicQueueMappingDetail, **fields: str) -> Command:
        """Request 513 at one broker."""
        ext = {
            "topic": "T",
            "defaultTopic": "TBW102",
            "readQueueNums": "2",
            "writeQueueNums": "2",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
            "force": "false",
            **fields,
        }
        return self.ask(513, ext, dumps(detail.to_json()), PORTS[name])

    def move(self) -> None:
        """Move logical queue 0 from a to b, from logical offset 10 on."""
        self.epoch += 1000
        self.queues[0] = (item("a", 0), item("b", 1, 1, 10))
        self.map_to("a", "b")

    def send(self, port: int, queue_id: int = 0, body: bytes = b"x") -> Command:
        """Send a message to a logical queue."""
        return self.ask(310, send_ext("T", queue_id), body, port)

    def sent(self, port: int, count: int, queue_id: int = 0) -> list[int]:
        """The offsets of messages sent."""
        answers = [self.send(port, queue_id, b"%d" % n) for n in range(count)]
        self.assertEqual([answer.code for answer in answers], [0] * count, answers)
        exts = [answer.ext or {} for answer in answers]
        self.assertEqual({ext["queueId"] for ext in exts}, {str(queue_id)})
        return [int(ext["queueOffset"]) for ext in exts]

    def pull(self, port: int, offset: int, **more: Any) -> Command:
        """Pull from logical queue 0."""
        ext = {**pull_ext(), "topic": "T", "queueId": "0", "queueOffset": str(offset)}
        return self.ask(11, {**ext, **more}, port=port)

    def drain(self, port: int, offset: int = 0) -> list[tuple[int, bytes]]:
        """All messages of logical queue 0, with the offsets that clients compute."""
        found: list[tuple[int, bytes]] = []
        for _ in range(20):
            answer = self.pull(port, offset)
            ext = answer.ext or {}
            if answer.code == 19:
                break
            delta = int(ext["offsetDelta"])
            found += [
                (message.queue_offset + delta, message.body)
                for message in decode_all(answer.body)
            ]
            offset = int(ext["nextBeginOffset"])
        return found

    def offset(self, code: int, port: int, **more: str) -> int:
        """The offset in the answer to a request about logical queue 0."""
        ext = {"topic": "T", "queueId": "0", "consumerGroup": "G", **more}
        answer = self.ask(code, ext, port=port)
        self.assertEqual(answer.code, 0, answer)
        return int((answer.ext or {})["offset"])


def heartbeat_command() -> Command:
    """Group G consumes topic T."""
    return Command(34, {}, heartbeat())
