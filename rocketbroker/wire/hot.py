# -*- test-case-name: tests.wire.test_hot -*-
"""The headers of sends, pulls and acknowledgements at the least cost: typed in,
templates out.

A typed decoder takes 0.7 us for a header of a send, a general one and the conversion of
its fields five times that; a template takes 0.3 us for an answer, a general encoder ten
times that. Only what such a decoder reads the same way as RocketMQ is read here;
for all else L{read_send}, L{read_long_send} and L{read_ack} raise one of L{NOT_READ},
L{read_pull} returns None, and the request goes the general way, where every leniency of
RocketMQ is known.

Numbers of the protocol have 32 or 64 bits; others go the general way too,
so that nothing behind this module meets one that cannot be packed.

Fields: C{docs/facts/remoting.md} 2, 5 and 20.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import msgspec

from rocketbroker.wire.command import RESPONSE, VERSION

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class SendFields(msgspec.Struct, gc=False):
    """The extension fields of requests 310 and 320 that a broker looks at.

    The letters are the protocol's: b topic, c defaultTopic, d defaultTopicQueueNums,
    e queueId, f sysFlag, g bornTimestamp, h flag, i properties, j reconsumeTimes,
    k unitMode, m batch.
    """

    b: str
    e: Int32
    f: Int32
    g: Int64
    h: Int32
    i: str = ""
    j: Int32 = 0
    m: bool = False
    c: str = ""
    d: Int32 = 0
    k: bool = False


class SendHeader(msgspec.Struct, gc=False):
    """The header of request 310 or 320."""

    extFields: SendFields
    opaque: Int32
    flag: Int32 = 0


class LongSendFields(SendFields, gc=False):
    """The same fields of request 10, which has their long names."""

    b: str = msgspec.field(name="topic")
    e: Int32 = msgspec.field(name="queueId")
    f: Int32 = msgspec.field(name="sysFlag")
    g: Int64 = msgspec.field(name="bornTimestamp")
    h: Int32 = msgspec.field(name="flag")
    i: str = msgspec.field(name="properties", default="")
    j: Int32 = msgspec.field(name="reconsumeTimes", default=0)
    m: bool = msgspec.field(name="batch", default=False)
    c: str = msgspec.field(name="defaultTopic", default="")
    d: Int32 = msgspec.field(name="defaultTopicQueueNums", default=0)
    k: bool = msgspec.field(name="unitMode", default=False)


class LongSendHeader(SendHeader, gc=False):
    """The header of request 10."""

    extFields: LongSendFields


class PullFields(msgspec.Struct, gc=False):
    """The extension fields of request 11.

    C{queueOffset} may come with leading zeros, which a typed decoder refuses and the
    load generators send: it is text, or a number from clients that quote none.
    """

    consumerGroup: str
    topic: str
    queueId: Int32
    queueOffset: str | Int64
    maxMsgNums: Int32
    sysFlag: Int32
    commitOffset: Int64 = 0
    suspendTimeoutMillis: Int64 = 0
    subVersion: Int64 = 0
    subscription: str | None = None
    expressionType: str | None = None
    maxMsgBytes: Int32 | None = None
    requestSource: Int32 | None = None
    proxyFrowardClientId: str | None = None


class PullHeader(msgspec.Struct, gc=False):
    """The header of request 11."""

    extFields: PullFields
    opaque: Int32
    flag: Int32 = 0


class AckFields(msgspec.Struct, gc=False):
    """The extension fields of request 200051."""

    consumerGroup: str
    topic: str
    queueId: Int32
    extraInfo: str
    offset: Int64


class AckHeader(msgspec.Struct, gc=False):
    """The header of request 200051."""

    extFields: AckFields
    opaque: Int32
    flag: Int32 = 0


#: Raised by readers for a header that has to go the general way.
NOT_READ: Final = (msgspec.MsgspecError, UnicodeDecodeError)

#: Reads the header of request 310 or 320, or of a response with such a code. It is the
#: decoder itself, since a call more for each message is 1 % of what a send costs.
read_send: Final = msgspec.json.Decoder(SendHeader, strict=False).decode
#: Reads the header of request 10, or of a response with that code.
read_long_send: Final = msgspec.json.Decoder(LongSendHeader, strict=False).decode
#: Reads the header of request 200051, or of a response with that code.
read_ack: Final = msgspec.json.Decoder(AckHeader, strict=False).decode
_decode_pull = msgspec.json.Decoder(PullHeader, strict=False).decode

#: Decimal digits that surely fit into 64 bits.
_SAFE_DIGITS: Final = 18


def read_pull(header: bytes) -> PullHeader | None:
    """The header of request 11; None if it has to go the general way.

    C{queueOffset} is a number in what is returned.
    """
    try:
        found = _decode_pull(header)
    except NOT_READ:
        return None
    if found.flag & RESPONSE:
        return None
    fields = found.extFields
    offset = fields.queueOffset
    if type(offset) is str:
        if len(offset) > _SAFE_DIGITS or not offset.isascii() or not offset.isdigit():
            return None
        fields.queueOffset = int(offset)
    return found


#: The first 8 bytes of a frame without a body, by the length of its JSON header: its
#: total length and the header's, with serialization JSON (0) in the upper byte.
MAX_READY_HEADS: Final = 2048
HEADS: Final[Sequence[bytes]] = [
    struct.pack(">II", size + 4, size) for size in range(MAX_READY_HEADS)
]

_END: Final = (
    b',"serializeTypeCurrentRPC":"JSON","version":' + str(VERSION).encode() + b"}"
)

#: What the answers to sends end with.
SEND_ANSWER_END: Final = _END

#: The answer to a send: what L{send_answer_start} gives, physical offset as 16 hex
#: digits, queue offset, the message's id L{quoted}, opaque.
SEND_ANSWER: Final = (
    b'%b%016X","queueOffset":"%d","transactionId":"%b"},"flag":1,"language":"JAVA",'
    b'"opaque":%d' + _END
)

#: The same for a batch that has no id.
SEND_ANSWER_WITHOUT_ID: Final = SEND_ANSWER.replace(b',"transactionId":"%b"', b"")

#: The answer to an acknowledgement: opaque.
ACK_ANSWER: Final = b'{"code":0,"flag":1,"language":"JAVA","opaque":%d' + _END

#: The answer to a pull: response code, suggested broker, next, min and max offset, the
#: two system flags, opaque, remark.
PULL_ANSWER: Final = (
    b'{"code":%d,"extFields":{"suggestWhichBrokerId":"%d","nextBeginOffset":"%d",'
    b'"minOffset":"%d","maxOffset":"%d","topicSysFlag":"%d","groupSysFlag":"%d"},'
    b'"flag":1,"language":"JAVA","opaque":%d,"remark":"%b"' + _END
)


def send_answer_start(
    region: str, trace_on: bool, queue_id: int, store_host: bytes
) -> bytes:
    """What all answers to sends into one queue begin with, for C{SEND_ANSWER}.

    @param store_host: 8 or 20 bytes; its hex digits are the first part of the ids.
    """
    fields = {
        "MSG_REGION": region,
        "TRACE_ON": "true" if trace_on else "false",
        "queueId": str(queue_id),
    }
    text = msgspec.json.encode(fields)[:-1]
    return (
        b'{"code":0,"extFields":'
        + text
        + b',"msgId":"'
        + store_host.hex().upper().encode()
    )


def quoted(text: bytes) -> bytes:
    """What stands between the quotes of a JSON string for a text in UTF-8.

    The ids that known clients make are upper-case hex and stand there as they are.
    """
    if text.isalnum():
        return text
    return msgspec.json.encode(text.decode("utf-8", "replace"))[1:-1]


def head_of(size: int) -> bytes:
    """The same for a header of C{size} bytes, be it longer."""
    return struct.pack(">II", size + 4, size)


def frame_of(header: bytes) -> bytes:
    """A whole frame with a JSON header, and without a body."""
    size = len(header)
    if size < MAX_READY_HEADS:
        return HEADS[size] + header
    return head_of(size) + header
