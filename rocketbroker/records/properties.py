# -*- test-case-name: tests.records.test_properties -*-
"""The properties of a message: names, and the string that carries them.

An entry is C{name 0x01 value 0x02}. The last 0x02 may be missing (4.9 leaves it out);
an entry without a name or without a value does not exist; of two equal names the last
counts, on which outer batches depend. C{docs/facts/store.md} 3.5;
C{docs/facts/client.md} 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketbroker.records.malformed import Malformed

#: Between name and value, and behind the value.
NAME_END: Final = "\x01"
VALUE_END: Final = "\x02"

#: The length stands in 16 signed bits.
MAX_BYTES: Final = 32767

KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
WAIT: Final = "WAIT"
DELAY: Final = "DELAY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QUEUE_ID: Final = "REAL_QID"
TRANSACTION_PREPARED: Final = "TRAN_MSG"
PRODUCER_GROUP: Final = "PGROUP"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
BUYER_ID: Final = "BUYER_ID"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
TRANSFER_FLAG: Final = "TRANSFER_FLAG"
CORRECTION_FLAG: Final = "CORRECTION_FLAG"
MQ2_FLAG: Final = "MQ2_FLAG"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
MSG_REGION: Final = "MSG_REGION"
TRACE_SWITCH: Final = "TRACE_ON"
UNIQUE_KEY: Final = "UNIQ_KEY"
EXTEND_UNIQUE_INFO: Final = "EXTEND_UNIQ_INFO"
CONSUME_START_TIME: Final = "CONSUME_START_TIME"
INNER_NUM: Final = "INNER_NUM"
INNER_BASE: Final = "INNER_BASE"
DUP_INFO: Final = "DUP_INFO"
CHECK_IMMUNITY_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID: Final = "__transactionId__"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
INSTANCE_ID: Final = "INSTANCE_ID"
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
ARRIVE_TIME: Final = "ARRIVE_TIME"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
CLUSTER: Final = "CLUSTER"
MESSAGE_TYPE: Final = "MSG_TYPE"
POP_CHECK_POINT: Final = "POP_CK"
POP_CHECK_POINT_OFFSET: Final = "POP_CK_OFFSET"
FIRST_POP_TIME: Final = "1ST_POP_TIME"
SHARDING_KEY: Final = "__SHARDINGKEY"
PRIORITY: Final = "_SYS_MSG_PRIORITY_"
REDIRECT: Final = "REDIRECT"
INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
TRACE_CONTEXT: Final = "TRACE_CONTEXT"
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_DEL_UNIQUE_KEY: Final = "TIMER_DEL_UNIQKEY"
TIMER_DELAY_LEVEL: Final = "TIMER_DELAY_LEVEL"
BORN_HOST: Final = "__BORNHOST"
BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
CRC32: Final = "__CRC32#"
DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"

#: Names that a user may not give to a property of his own.
RESERVED: Final = frozenset(
    {
        TRACE_SWITCH,
        MSG_REGION,
        KEYS,
        TAGS,
        WAIT,
        DELAY,
        RETRY_TOPIC,
        REAL_TOPIC,
        REAL_QUEUE_ID,
        TRANSACTION_PREPARED,
        PRODUCER_GROUP,
        MIN_OFFSET,
        MAX_OFFSET,
        BUYER_ID,
        ORIGIN_MESSAGE_ID,
        TRANSFER_FLAG,
        CORRECTION_FLAG,
        MQ2_FLAG,
        RECONSUME_TIME,
        UNIQUE_KEY,
        MAX_RECONSUME_TIMES,
        CONSUME_START_TIME,
        POP_CHECK_POINT,
        POP_CHECK_POINT_OFFSET,
        FIRST_POP_TIME,
        PREPARED_QUEUE_OFFSET,
        DUP_INFO,
        EXTEND_UNIQUE_INFO,
        INSTANCE_ID,
        CORRELATION_ID,
        REPLY_TO_CLIENT,
        TTL,
        ARRIVE_TIME,
        PUSH_REPLY_TIME,
        CLUSTER,
        MESSAGE_TYPE,
        INNER_MULTI_QUEUE_OFFSET,
        TIMER_DELAY_MS,
        TIMER_DELAY_SEC,
        TIMER_DELIVER_MS,
        TIMER_ENQUEUE_MS,
        TIMER_DEQUEUE_MS,
        TIMER_ROLL_TIMES,
        TIMER_OUT_MS,
        TIMER_DEL_UNIQUE_KEY,
        TIMER_DELAY_LEVEL,
        BORN_HOST,
        BORN_TIMESTAMP,
        DLQ_ORIGIN_TOPIC,
        DLQ_ORIGIN_MESSAGE_ID,
        CRC32,
    }
)


def to_text(properties: Mapping[str, str]) -> str:
    """The properties string, in the mapping's order, with the last 0x02.

    Nothing is checked: what cannot be carried is for L{carry_problem} to find.
    """
    return "".join(
        [f"{name}\x01{value}\x02" for name, value in properties.items() if value]
    )


def encode(properties: Mapping[str, str]) -> bytes:
    """The properties string in UTF-8; a lone surrogate becomes C{?}, as in Java."""
    return to_text(properties).encode("utf-8", "replace")


def parse(text: str) -> dict[str, str]:
    """The properties of a string; what is not an entry is passed over."""
    found = {}
    for entry in text.split("\x02"):
        name, _, value = entry.partition("\x01")
        if name and value:
            found[name] = value
    return found


def decode(data: bytes) -> dict[str, str]:
    """The properties of stored bytes; what is not UTF-8 is replaced, as in Java."""
    return parse(data.decode("utf-8", "replace"))


def find(data: bytes, name: bytes) -> bytes | None:
    """The value of one property, without decoding the others.

    @param name: in UTF-8, without 0x01 and 0x02.
    @return: the same value as L{decode} would give; None if there is none.
    """
    mark = b"\x02" + name + b"\x01"
    end = len(data)
    while True:
        at = data.rfind(mark, 0, end)
        if at < 0:
            break
        start = at + len(mark)
        stop = data.find(b"\x02", start)
        value = data[start:] if stop < 0 else data[start:stop]
        if value:
            return value
        end = at + 1
    if data.startswith(mark[1:]):
        start = len(mark) - 1
        stop = data.find(b"\x02", start)
        return (data[start:] if stop < 0 else data[start:stop]) or None
    return None


def joined(first: bytes, second: bytes) -> bytes:
    """Two properties strings as one; where both have a name, the second counts."""
    if first and not first.endswith(b"\x02"):
        return first + b"\x02" + second
    return first + second


def carry_problem(name: str, value: str) -> str | None:
    """Why the string cannot carry this property, or None if it can."""
    if not name or not value:
        return f"property {name!r} has an empty name or value"
    if NAME_END in name or VALUE_END in name:
        return f"the name of property {name!r} holds a separator"
    if VALUE_END in value:
        return f"the value of property {name!r} holds a separator"
    return None


def encode_checked(properties: Mapping[str, str]) -> bytes:
    """As L{encode}, for what the user gave.

    @raise Malformed: a name or value cannot be carried, or all are too long together.
    """
    for name, value in properties.items():
        problem = carry_problem(name, value)
        if problem is not None:
            raise Malformed(problem)
    data = encode(properties)
    if len(data) > MAX_BYTES:
        raise Malformed(f"properties of {len(data)} bytes, at most {MAX_BYTES}")
    return data
