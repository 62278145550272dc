"""A broker with a topic to pop from, stepped by a test."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import PopMessageResponseHeader
from tests.broker.rig import Rig, answered, send_ext

POP = RequestCode.POP_MESSAGE
ACK = RequestCode.ACK_MESSAGE
SEND = RequestCode.SEND_MESSAGE_V2

REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_cluster-a"

#: What most pops of the tests ask for, in ms.
INVISIBLE_MS = 30_000


def bodies(answer: Command) -> list[bytes]:
    """The bodies of the messages in an answer."""
    return [stored.body for stored in messages(answer)]


def messages(answer: Command) -> list[StoredMessage]:
    """The messages in an answer."""
    return list(decode_all(answer.body))


def header_of(answer: Command) -> PopMessageResponseHeader:
    """The header of an answer to a pop."""
    return PopMessageResponseHeader.from_ext(answer.ext)


def handles(answer: Command, broker_name: str = "broker-a") -> list[ReceiptHandle]:
    """The handle of each message in an answer, as RocketMQ's client makes them."""
    header = header_of(answer)
    starts = {}
    for entry in (header.start_offset_info or "").split(";"):
        kind, queue_id, start = entry.split(" ")
        starts[kind, queue_id] = int(start)
    found = []
    for entry in (header.msg_offset_info or "").split(";"):
        kind, queue_id, offsets = entry.split(" ")
        found += [
            ReceiptHandle(
                starts[kind, queue_id],
                header.pop_time,
                header.invisible_time,
                header.revive_qid,
                kind,
                broker_name,
                int(queue_id),
                int(offset),
            )
            for offset in offsets.split(",")
        ]
    return found


class PopCase(SynchronousTestCase):
    """Topic T, whose queues get messages, and group G, which pops them.

    @ivar rig: the broker, whose regular work runs.
    """

    def setUp(self) -> None:
        """No messages yet."""
        self.rig = self.make()

    def make(self, queues: int = 1, **settings: str) -> Rig:
        """A broker with those settings."""
        rig = Rig(settings)
        self.addCleanup(rig.close)
        rig.topic("T", queues)
        rig.broker.start()
        return rig

    def restart(self, **settings: str) -> None:
        """Kill the broker, and start another one on what is on the disk."""
        before = self.rig
        disk = before.disk.image(keep_all=True)
        self.rig = Rig(settings, disk=disk, start_ms=before.wall_ms())
        self.addCleanup(self.rig.close)
        self.rig.broker.start()

    def send(
        self, *texts: str, queue_id: int = 0, tag: str = "", topic: str = "T"
    ) -> None:
        """Send messages, each in a turn of its own, and have them dispatched."""
        properties = f"UNIQ_KEY\x01U\x02TAGS\x01{tag}\x02" if tag else "UNIQ_KEY\x01U"
        for text in texts:
            ext = send_ext(topic, queue_id, properties)
            answer = self.rig.ask(SEND, ext, text.encode())
            self.assertEqual(answer.code, 0, answer.remark)
        self.rig.scheduler.dispatch()
        self.rig.batcher.flush()

    def ext(self, **more: object) -> dict[str, str]:
        """The fields of a pop that does not wait."""
        fields: dict[str, object] = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": INVISIBLE_MS,
            "pollTime": 0,
            "bornTime": self.rig.wall_ms(),
            "initMode": 0,
            "expType": "TAG",
            "exp": "*",
            "order": "false",
            **more,
        }
        return {name: str(value) for name, value in fields.items()}

    def pop(self, **more: object) -> Command:
        """Pop, and have the answer."""
        return self.rig.ask(POP, self.ext(**more))

    def popped(self, **more: object) -> list[bytes]:
        """Pop; the bodies of what came."""
        return bodies(self.pop(**more))

    def wait(self, **more: object) -> Deferred[Command | None]:
        """A pop that waits."""
        answer = self.rig.begin(POP, self.ext(pollTime=15_000, **more))
        assert isinstance(answer, Deferred)
        return answer

    def ack(self, handle: ReceiptHandle, topic: str = "T", **more: object) -> Command:
        """Acknowledge a message."""
        ext = {
            "consumerGroup": "G",
            "topic": topic,
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
            **{name: str(value) for name, value in more.items()},
        }
        return self.rig.ask(ACK, ext)

    def kept(self) -> list[StoredMessage]:
        """The check points and acknowledgements that the timer keeps, or has kept."""
        return self.rig.records(0, TIMER_TOPIC)

    def pass_by(self, seconds: float) -> None:
        """Let time pass, in steps in which everything gets its turn."""
        steps = max(1, round(seconds * 2))
        self.rig.clock.pump([seconds / steps] * steps)

    def answers(self, *waiting: Deferred[Command | None]) -> list[list[bytes]]:
        """The bodies that each of these got."""
        return [bodies(answered(each)) for each in waiting]
