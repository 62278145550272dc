# -*- test-case-name: tests.records.test_check_points -*-
"""Check points of POP and their acknowledgements, as the bodies of messages.

A check point says which messages a group has been given at once from one queue, and
until when; an acknowledgement, which of them are consumed. Both are messages of the
revive topic, told apart by their tags. Their bodies are JSON without white space, with
sorted keys::

    ck    {"bm":0,"bn":"b-a","c":"G","d":[0,1],"it":30000,"n":2,"pt":1700000000000,
           "q":3,"reviveTime":1700000030000,"ro":0,"so":10,"t":"T"}
    ack   {"ao":11,"bn":"b-a","c":"G","pt":1700000000000,"q":3,"so":10,"t":"T"}
    bAck  {"ao":-1,"aol":[10,11],"bn":"b-a","c":"G","pt":1700000000000,"q":3,"so":10,
           "t":"T"}

C{so} is the queue offset at which the read began, C{d} how far behind it each message
is. C{reviveTime} follows from C{pt} and C{it}, and is not read; C{ro} is always 0.

C{docs/facts/transaction-timer-pop.md} C5, C8, C12, trap 20;
C{docs/facts/broker.md} 20.4.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Final, TypeAlias, TypeVar, final

import msgspec

from rocketbroker.records.malformed import Malformed

#: The tags of the messages.
CHECK_POINT_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"

#: A check point is due so long before its messages are, in ms: it is read before its
#: acknowledgements.
ACK_INTERVAL_MS: Final = 1000

#: What stands for the offset in a batch.
NO_OFFSET: Final = -1

#: How much later, in seconds, messages are given out that could not be revived, by how
#: often that was.
RE_PUT_SECONDS: Final = (
    *(10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600),
    *(1200, 1800, 3600, 7200),
)

#: Which check point an acknowledgement belongs to: topic, group, queue, start offset,
#: pop time, broker.
Key: TypeAlias = tuple[str, str, int, int, int, str]

#: A number as Java has it, with its sign.
_Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]

T = TypeVar("T")


def _list_of(numbers: Sequence[int]) -> str:
    return msgspec.json.encode(numbers).decode()


@lru_cache(1024)
def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@final
class CheckPoint:
    """One check point.

    @ivar topic: that of the queue: a retry topic, if they came from there.
    @ivar diffs: how far each message is behind C{start_offset}; none in those of old
        brokers, whose messages are consecutive.
    @ivar count: how many messages.
    @ivar revive_ms: when they are given out again.
    @ivar re_puts: how often it was written anew; None for a first one.
    """

    __slots__ = (
        "broker_name",
        "count",
        "diffs",
        "group",
        "invisible_ms",
        "pop_ms",
        "queue_id",
        "re_puts",
        "revive_ms",
        "start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        group: str,
        queue_id: int,
        start_offset: int,
        pop_ms: int,
        invisible_ms: int,
        broker_name: str,
        diffs: Sequence[int],
        re_puts: int | None = None,
        count: int | None = None,
    ) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.start_offset = start_offset
        self.pop_ms = pop_ms
        self.invisible_ms = invisible_ms
        self.revive_ms = pop_ms + invisible_ms
        self.broker_name = broker_name
        self.diffs = diffs
        self.re_puts = re_puts
        self.count = len(diffs) if count is None else count

    @property
    def key(self) -> Key:
        """What its acknowledgements name."""
        return (
            self.topic,
            self.group,
            self.queue_id,
            self.start_offset,
            self.pop_ms,
            self.broker_name,
        )

    def offsets(self) -> list[int]:
        """The queue offsets of the messages."""
        diffs = self.diffs or range(self.count)
        return [self.start_offset + diff for diff in diffs]

    def index_of(self, offset: int) -> int:
        """Which of the messages stands there; -1 for none."""
        diff = offset - self.start_offset
        if self.diffs:
            try:
                return self.diffs.index(diff)
            except ValueError:
                return -1
        return diff if 0 <= diff < self.count else -1

    def again(self, offset: int, now_ms: int) -> CheckPoint:
        """The check point for one message that could not be revived.

        What is due already becomes due later, the more often it failed.
        """
        re_puts = (self.re_puts or 0) + 1
        invisible_ms = self.invisible_ms
        if self.revive_ms <= now_ms:
            step = min(re_puts, len(RE_PUT_SECONDS)) - 1
            invisible_ms += RE_PUT_SECONDS[step] * 1000
        return CheckPoint(
            self.topic,
            self.group,
            self.queue_id,
            offset,
            self.pop_ms,
            invisible_ms,
            self.broker_name,
            [0],
            re_puts,
        )

    def unique_key(self) -> str:
        """The unique key of its message."""
        return (
            f"{self.topic}@{self.queue_id}@{self.start_offset}@{self.group}@"
            f"{self.pop_ms}@{self.broker_name}@{CHECK_POINT_TAG}"
        )

    def encode(self) -> bytes:
        """The body of its message."""
        again = "" if self.re_puts is None else f'"rp":"{self.re_puts}",'
        return (
            f'{{"bm":0,"bn":{_quoted(self.broker_name)},"c":{_quoted(self.group)},'
            f'"d":{_list_of(self.diffs)},"it":{self.invisible_ms},"n":{self.count},'
            f'"pt":{self.pop_ms},"q":{self.queue_id},'
            f'"reviveTime":{self.revive_ms},"ro":0,{again}'
            f'"so":{self.start_offset},"t":{_quoted(self.topic)}}}'
        ).encode("utf-8", "replace")

    @classmethod
    def decode(cls, body: bytes) -> CheckPoint:
        """Read the body of a message.

        @raise Malformed: it is no check point.
        """
        found = _read(body)
        diffs, count = found.d or [], found.n or 0
        if diffs:
            count = len(diffs)
        elif not 0 <= count < 128:
            raise Malformed(f"a check point of {count} messages")
        re_puts = str(found.rp)
        return cls(
            _either(found.t, found.topic),
            _either(found.c, found.consumerGroup),
            _either(found.q, found.queueId),
            _either(found.so, found.startOffset),
            _either(found.pt, found.popTime),
            _either(found.it),
            found.bn or found.brokerName or "",
            diffs,
            int(re_puts) if re_puts.isdecimal() else None,
            count,
        )


@final
class Ack:
    """Messages of one check point that are consumed.

    @ivar offsets: their queue offsets.
    """

    __slots__ = (
        "broker_name",
        "group",
        "offsets",
        "pop_ms",
        "queue_id",
        "start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        group: str,
        queue_id: int,
        start_offset: int,
        pop_ms: int,
        broker_name: str,
        offsets: Sequence[int],
    ) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.start_offset = start_offset
        self.pop_ms = pop_ms
        self.broker_name = broker_name
        self.offsets = offsets

    @property
    def tag(self) -> str:
        """The tag of its message."""
        return ACK_TAG if len(self.offsets) == 1 else BATCH_ACK_TAG

    def key(self, own_name: str) -> Key:
        """The check point that it belongs to.

        @param own_name: of this broker, which is meant if none is named.
        """
        return (
            self.topic,
            self.group,
            self.queue_id,
            self.start_offset,
            self.pop_ms,
            self.broker_name if self.broker_name.strip() else own_name,
        )

    def unique_key(self) -> str:
        """The unique key of its message."""
        offset = self.offsets[0] if len(self.offsets) == 1 else NO_OFFSET
        return (
            f"{self.topic}@{self.queue_id}@{offset}@{self.group}@{self.pop_ms}@"
            f"{self.broker_name}@{ACK_TAG}"
        )

    def encode(self) -> bytes:
        """The body of its message."""
        if len(self.offsets) == 1:
            which = f'"ao":{self.offsets[0]}'
        else:
            which = f'"ao":{NO_OFFSET},"aol":{_list_of(self.offsets)}'
        return (
            f'{{{which},"bn":{_quoted(self.broker_name)},"c":{_quoted(self.group)},'
            f'"pt":{self.pop_ms},"q":{self.queue_id},"so":{self.start_offset},'
            f'"t":{_quoted(self.topic)}}}'
        ).encode("utf-8", "replace")

    @classmethod
    def decode(cls, body: bytes) -> Ack:
        """Read the body of a message of either kind.

        @raise Malformed: it is no acknowledgement.
        """
        found = _read(body)
        return cls(
            _either(found.t, found.topic),
            _either(found.c, found.consumerGroup),
            _either(found.q, found.queueId),
            _either(found.so, found.startOffset),
            _either(found.pt, found.popTime),
            found.bn or found.brokerName or "",
            found.aol or found.ackOffsetList or [_either(found.ao, found.ackOffset)],
        )


class _Body(msgspec.Struct, gc=False):
    """The members of a body of either kind, under their short and their long names."""

    t: str | None = None
    topic: str | None = None
    c: str | None = None
    consumerGroup: str | None = None
    q: _Long | None = None
    queueId: _Long | None = None
    so: _Long | None = None
    startOffset: _Long | None = None
    pt: _Long | None = None
    popTime: _Long | None = None
    bn: str | None = None
    brokerName: str | None = None
    it: _Long | None = None
    n: _Long | None = None
    d: list[_Long] | None = None
    rp: object = None
    ao: _Long | None = None
    ackOffset: _Long | None = None
    aol: list[_Long] | None = None
    ackOffsetList: list[_Long] | None = None


_decode_body = msgspec.json.Decoder(_Body).decode


def _read(body: bytes) -> _Body:
    try:
        return _decode_body(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"a check point that cannot be read: {error}") from None


def _either(short: T | None, long: T | None = None) -> T:
    """A member that has to be there, by one of its names."""
    found = long if short is None else short
    if found is None:
        raise Malformed("a check point without all that it needs")
    return found
