# -*- test-case-name: tests.client.test_pop -*-
"""One pop: the request, what its answer says, and what becomes of each message.

C{docs/facts/client.md} 22.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.errors import RemoteProtocolError, error_of_response
from rocketbroker.records.batches import messages
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import pop_retry_topic
from rocketbroker.records.properties import POP_CHECK_POINT
from rocketbroker.records.receipt_handle import (
    NORMAL,
    RETRY_V2,
    ReceiptHandle,
    kind_of,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.answers import number
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    PopMessageRequestHeader,
)

#: What the answer may take beyond the time that the broker may wait.
SLACK_SECONDS: Final = 10.0

#: Stands for all queues of a broker.
ANY_QUEUE: Final = -1

#: Seconds until a message is given out again, by the number of its retries.
RETRY_SECONDS: Final = (
    *(10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600),
    *(1200, 1800, 3600, 7200),
)

#: Answers that bring nothing, but no error either.
_NOTHING: Final = frozenset(
    {
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.POLLING_TIMEOUT,
    }
)


class Popped(NamedTuple):
    """A message, and the handle by which it is acknowledged."""

    message: StoredMessage
    handle: ReceiptHandle


class PopPlace(NamedTuple):
    """Where a member pops.

    @ivar queue_id: L{ANY_QUEUE} for all queues of the broker.
    """

    broker: str
    queue_id: int


def retry_seconds(level: int, times: int) -> int:
    """How long a message rests that failed.

    @param level: as the user gave it; 0: by the number of times that it has failed.
    """
    at = level or times
    return RETRY_SECONDS[min(at, len(RETRY_SECONDS) - 1)]


def pop_request(
    broker: str,
    queue_id: int,
    subscription: Subscription,
    settings: ConsumerSettings,
    now_ms: int,
) -> Command:
    """The request for messages of a broker.

    @param queue_id: of one queue, or L{ANY_QUEUE}.
    """
    header = PopMessageRequestHeader(
        consumer_group=settings.group,
        topic=subscription.topic,
        queue_id=queue_id,
        max_msg_nums=min(settings.pull_batch, settings.prefetch, 32),
        invisible_time=int(settings.invisible_seconds * 1000),
        poll_time=int(settings.hold_seconds * 1000),
        born_time=now_ms,
        init_mode=0 if settings.start == "earliest" else 1,
        exp_type=subscription.kind,
        exp=subscription.expression,
        order=False,
        bname=broker,
    )
    return Command(RequestCode.POP_MESSAGE, header.to_ext())


def popped(broker: str, answer: Command, decompress: bool = True) -> list[Popped]:
    """What the answer brings.

    @param decompress: otherwise bodies stay as they are stored.
    @raise BrokerError: the broker refused.
    @raise RemoteProtocolError: it is no such answer.
    """
    if answer.code in _NOTHING:
        return []
    if answer.code != ResponseCode.SUCCESS:
        raise error_of_response(answer.code, answer.remark)
    ext = answer.ext or {}
    starts = _table(ext.get("startOffsetInfo", ""))
    offsets = {
        key: [int(one) for one in text.split(",")]
        for key, text in _table(ext.get("msgOffsetInfo", "")).items()
    }
    found: list[Popped] = []
    seen: dict[tuple[str, str], int] = {}
    try:
        for message in messages(answer.body, decompress):
            known = message.properties.get(POP_CHECK_POINT)
            if known is not None:
                found.append(Popped(message, ReceiptHandle.parse(known)))
                continue
            key = (kind_of(message.topic), str(message.queue_id))
            at = seen[key] = seen.get(key, -1) + 1
            places = offsets.get(key, [])
            place = places[at] if at < len(places) else message.queue_offset
            found.append(
                Popped(
                    message,
                    ReceiptHandle(
                        int(starts.get(key, place)),
                        number(answer, "popTime"),
                        number(answer, "invisibleTime"),
                        number(answer, "reviveQid"),
                        key[0],
                        broker,
                        message.queue_id,
                        place,
                    ),
                )
            )
    except Malformed as problem:
        raise RemoteProtocolError(
            f"broker {broker} gave no message: {problem}"
        ) from None
    return found


def _table(text: str) -> dict[tuple[str, str], str]:
    """The entries C{kind queue value}, with C{;} between.

    @raise RemoteProtocolError: one is none.
    """
    found: dict[tuple[str, str], str] = {}
    for entry in text.split(";") if text else ():
        parts = entry.split(" ")
        if len(parts) != 3 or not parts[2].replace(",", "").isdecimal():
            raise RemoteProtocolError(f"popped messages with {entry[:40]!r}")
        found[parts[0], parts[1]] = parts[2]
    return found


def real_topic(topic: str, group: str, handle: ReceiptHandle) -> str:
    """The topic that has the message: the group's retry topic for a retried one."""
    if handle.kind == NORMAL:
        return topic
    return pop_retry_topic(group, topic, handle.kind == RETRY_V2)


def ack_request(topic: str, group: str, popped_one: Popped) -> Command:
    """The request that a message is done.

    @param topic: as subscribed.
    """
    handle = popped_one.handle
    header = AckMessageRequestHeader(
        consumer_group=group,
        topic=real_topic(topic, group, handle),
        queue_id=handle.queue_id,
        extra_info=handle.text(),
        offset=handle.offset or 0,
        bname=handle.broker_name,
    )
    return Command(RequestCode.ACK_MESSAGE, header.to_ext())


def rest_request(topic: str, group: str, popped_one: Popped, seconds: int) -> Command:
    """The request that a message rests for so long, and is given out again then.

    @param topic: as subscribed.
    """
    handle = popped_one.handle
    header = ChangeInvisibleTimeRequestHeader(
        consumer_group=group,
        topic=real_topic(topic, group, handle),
        queue_id=handle.queue_id,
        extra_info=handle.text(),
        offset=handle.offset or 0,
        invisible_time=seconds * 1000,
        bname=handle.broker_name,
    )
    return Command(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header.to_ext())
