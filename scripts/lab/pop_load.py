"""What brokers are loaded with by pops: members of a group that pop."""

from __future__ import annotations

import select
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rocketbroker.records.batches import encode as batch
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.frames import encode
from rocketbroker.wire.headers.pull import PopMessageResponseHeader
from scripts.lab.peers import Peer, send_ext

#: The most that a pop may ask for.
MOST = 32

#: How long nothing may come, in seconds, until a load counts as stuck.
SILENCE = 20.0


class Popped(NamedTuple):
    """What a pop gave of one queue.

    @ivar kind: of topic: see L{rocketbroker.records.receipt_handle}.
    @ivar start: the offset of its check point.
    @ivar offsets: of the messages, in the body's order.
    """

    kind: str
    queue: int
    start: int
    offsets: list[int]


def pop_ext(
    topic: str, group: str, invisible_ms: int, count: int = MOST
) -> dict[str, str]:
    """The fields of a pop from all queues that does not wait."""
    return {
        "consumerGroup": group,
        "topic": topic,
        "queueId": "-1",
        "maxMsgNums": str(count),
        "invisibleTime": str(invisible_ms),
        "pollTime": "0",
        "bornTime": str(time.time_ns() // 1_000_000),
        "initMode": "0",
        "expType": "TAG",
        "exp": "*",
        "order": "false",
    }


def popped(header: PopMessageResponseHeader) -> Iterator[Popped]:
    """What a pop gave, queue by queue."""
    starts = {}
    for entry in filter(None, (header.start_offset_info or "").split(";")):
        kind, queue, start = entry.split(" ")
        starts[kind, queue] = int(start)
    for entry in filter(None, (header.msg_offset_info or "").split(";")):
        kind, queue, offsets = entry.split(" ")
        numbers = [int(each) for each in offsets.split(",")]
        yield Popped(kind, int(queue), starts[kind, queue], numbers)


def ack_body(
    topic: str, group: str, header: PopMessageResponseHeader, parts: Iterable[Popped]
) -> bytes:
    """The body of an acknowledgement of all that a pop gave."""
    acks = []
    for each in parts:
        bits = 0
        for offset in each.offsets:
            bits |= 1 << (offset - each.start)
        data = bits.to_bytes(bits.bit_length() // 8 + 1, "little")
        acks.append(
            {
                "b": b64encode(data).decode(),
                "c": group,
                "it": header.invisible_time,
                "pt": header.pop_time,
                "q": each.queue,
                "r": each.kind,
                "rq": header.revive_qid,
                "so": each.start,
                "t": topic,
            }
        )
    return dumps({"acks": acks, "brokerName": "broker-a"})


def handles(header: PopMessageResponseHeader) -> Iterator[ReceiptHandle]:
    """The handle of each message that a pop gave, queue by queue."""
    for each in popped(header):
        for offset in each.offsets:
            yield ReceiptHandle(
                each.start,
                header.pop_time,
                header.invisible_time,
                header.revive_qid,
                each.kind,
                "broker-a",
                each.queue,
                offset,
            )


def ack_exts(
    topic: str, group: str, header: PopMessageResponseHeader
) -> Iterator[dict[str, str]]:
    """The fields of an acknowledgement of each message that a pop gave of a topic."""
    for handle in handles(header):
        yield {
            "consumerGroup": group,
            "topic": topic,
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
        }


def fill(port: int, topic: str, queues: int, count: int, body: bytes) -> None:
    """Send messages, in batches, to all queues in turn."""
    parts = batch([(0, body, b"TAGS\x01TagA\x02")] * MOST)
    frames = [
        encode(
            Command(
                RequestCode.SEND_BATCH_MESSAGE,
                send_ext(topic, number % queues, batch="true"),
                parts,
            )
        )
        for number in range(count // MOST)
    ]
    peer = Peer(port)
    while frames:
        # The Java broker refuses what has waited for long.
        answers = zip(frames, list(peer.ask_all(frames)), strict=True)
        frames = [frame for frame, answer in answers if answer.code]
    peer.close()


class Member(Peer):
    """A connection on which some pops are always under way.

    @ivar acked: how many messages it has acknowledged.
    """

    def __init__(
        self, port: int, topic: str, group: str, invisible_ms: int, one_by_one: bool
    ) -> None:
        """
        @param one_by_one: whether each message is acknowledged by itself, as the
            official client does, or all of a pop at once.
        """
        super().__init__(port)
        self._one_by_one = one_by_one
        self.acked = 0
        self._topic = topic
        self._group = group
        self._invisible_ms = invisible_ms
        self._serial = 0
        self._left: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    def pop(self) -> None:
        """Begin a pop."""
        ext = pop_ext(self._topic, self._group, self._invisible_ms)
        self.socket.sendall(encode(Command(RequestCode.POP_MESSAGE, ext)))

    def work(self) -> None:
        """Take what has come: acknowledge what was popped, pop again."""
        for answer in self.receive():
            if answer.opaque:
                if answer.code != ResponseCode.SUCCESS:
                    raise RuntimeError(f"an acknowledgement: {answer.remark}")
                self._acknowledged(answer.opaque)
            elif answer.code == ResponseCode.SUCCESS:
                header = PopMessageResponseHeader.from_ext(answer.ext)
                parts = list(popped(header))
                self._acknowledge(header, parts)
            elif answer.code == ResponseCode.POLLING_TIMEOUT:
                self.pop()
            else:
                raise RuntimeError(f"a pop: {answer.code}: {answer.remark}")

    def _acknowledge(
        self, header: PopMessageResponseHeader, parts: list[Popped]
    ) -> None:
        """Acknowledge what a pop gave."""
        self._serial += 1
        if self._one_by_one:
            code = RequestCode.ACK_MESSAGE
            asks = [
                Command(code, ext, opaque=self._serial)
                for ext in ack_exts(self._topic, self._group, header)
            ]
        else:
            code = RequestCode.BATCH_ACK_MESSAGE
            body = ack_body(self._topic, self._group, header, parts)
            asks = [Command(code, {}, body, opaque=self._serial)]
        count = sum(len(each.offsets) for each in parts)
        self._left[self._serial] = len(asks)
        self._counts[self._serial] = count
        self.socket.sendall(b"".join(map(encode, asks)))

    def _acknowledged(self, serial: int) -> None:
        """One answer came; after the last of a pop comes the next one."""
        self._left[serial] -= 1
        if not self._left[serial]:
            del self._left[serial]
            self.acked += self._counts.pop(serial)
            self.pop()


def consume(members: list[Member], window: int, count: int) -> float:
    """Let members pop and acknowledge until it is so much; how long that took.

    @param window: how many pops of each are under way.
    @raise RuntimeError: nothing comes any more.
    """
    begin = seen = time.monotonic()
    before = 0
    for member in members:
        for _ in range(window):
            member.pop()
    while (acked := sum(member.acked for member in members)) < count:
        now = time.monotonic()
        if acked != before:
            seen, before = now, acked
        elif now - seen > SILENCE:
            raise RuntimeError(f"{acked} of {count} messages came")
        for member in select.select(members, [], [], 1)[0]:
            member.work()
    return time.monotonic() - begin
