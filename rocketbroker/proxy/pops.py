# -*- test-case-name: tests.proxy.test_pops -*-
"""Receiving: what a call asks for, the pop that brings it, and what is let through.

C{docs/facts/proxy.md} 7.1 to 7.4. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketbroker.client.pop import Popped, popped
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.proxy.clients import span_ms
from rocketbroker.proxy.messages_pb2 import (
    Code,
    FilterExpression,
    FilterType,
    ReceiveMessageRequest,
    Settings,
)
from rocketbroker.proxy.received import Handle
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import PopMessageRequestHeader

#: At most so many messages are popped at once.
MAX_BATCH: Final = 32

#: Stands for all queues of a broker.
ANY_QUEUE: Final = -1

#: Where a group without offsets begins: at the end.
INIT_AT_END: Final = 1

#: From this version on a client knows ILLEGAL_POLLING_TIME.
POLLING_TIME_VERSION: Final = "5.0.3"

#: How long a client waits beyond its poll if its settings are not known.
REQUEST_TIMEOUT_MS: Final = 3000


class Wanted(NamedTuple):
    """What one call asks for.

    @ivar poll_ms: how long the broker may wait for messages.
    @ivar invisible_ms: how long they are invisible to others.
    @ivar kind: TAG or SQL92.
    @ivar expression: by which the broker chooses.
    @ivar born_ms: when it was asked for; 0: when the broker gets to it, by its clock.
    """

    batch: int
    poll_ms: int
    invisible_ms: int
    kind: str
    expression: str
    born_ms: int = 0


def poll_ms(
    request: ReceiveMessageRequest,
    given: Settings | None,
    remaining: float | None,
    version: str,
    settings: ProxySettings,
) -> int:
    """How long a broker may wait for messages.

    @param given: the settings of the client, None if they are not known.
    @param remaining: seconds until the client gives up; None: it does not.
    @param version: the client's, as it names it.
    @raise Refusal: the client gives up too soon.
    """
    least = settings.grpc_client_consumer_min_long_polling_timeout_millis
    most = settings.grpc_client_consumer_max_long_polling_timeout_millis
    left = most + REQUEST_TIMEOUT_MS if remaining is None else int(remaining * 1000)
    if request.HasField("long_polling_timeout"):
        wanted = span_ms(request.long_polling_timeout)
    else:
        timeout = REQUEST_TIMEOUT_MS
        if given is not None and given.HasField("request_timeout"):
            timeout = span_ms(given.request_timeout)
        wanted = left - timeout // 2
    wanted = min(max(wanted, least), most)
    if wanted <= left:
        return wanted
    if left >= least:
        return left
    code = Code.ILLEGAL_POLLING_TIME
    if not version or version < POLLING_TIME_VERSION:
        code = Code.BAD_REQUEST
    raise Refusal(
        code,
        "The deadline time remaining is not enough for polling, please check network "
        "condition",
    )


def invisible_ms(request: ReceiveMessageRequest, settings: ProxySettings) -> int:
    """How long messages are invisible to others.

    @raise Refusal: a time that is not allowed.
    """
    if settings.enable_proxy_auto_renew and request.auto_renew:
        return settings.default_invisible_time_mills
    wanted = span_ms(request.invisible_duration)
    check_invisible(wanted, settings.min_invisible_time_mills_for_recv, settings)
    return wanted


def check_invisible(wanted: int, least: int, settings: ProxySettings) -> None:
    """Refuse an invisible time that is too short or too long.

    @raise Refusal: it is.
    """
    code = Code.ILLEGAL_INVISIBLE_TIME
    if wanted < least:
        raise Refusal(code, f"the invisibleTime is too small. min is {least}")
    most = settings.max_invisible_time_mills
    if wanted > most:
        raise Refusal(code, f"the invisibleTime is too large. max is {most}")


def filter_of(given: FilterExpression) -> tuple[str, str]:
    """The kind of a filter and its text.

    @raise Refusal: it is none.
    """
    text = given.expression
    if given.type == FilterType.SQL:
        if not text.strip():
            words = "Expression can't be null! SQL92"
            raise Refusal(Code.ILLEGAL_FILTER_EXPRESSION, words)
        return "SQL92", text
    if not text or text == "*":
        return "TAG", "*"
    tags = [one.strip() for one in text.split("||")]
    tags = [one for one in tags if one]
    if not tags:
        raise Refusal(Code.ILLEGAL_FILTER_EXPRESSION, "subString split error")
    return "TAG", " || ".join(tags)


def lets_through(kind: str, expression: str, tags: str | None) -> bool:
    """Whether a message is wanted; brokers compare only hashes of tags."""
    if kind != "TAG" or expression == "*":
        return True
    return tags in expression.split(" || ")


def pop_command(
    topic: str, group: str, broker: str, wanted: Wanted, fifo: bool, attempt: str | None
) -> Command:
    """The request to a broker."""
    header = PopMessageRequestHeader(
        consumer_group=group,
        topic=topic,
        queue_id=ANY_QUEUE,
        max_msg_nums=min(wanted.batch, MAX_BATCH),
        invisible_time=wanted.invisible_ms,
        poll_time=wanted.poll_ms,
        born_time=wanted.born_ms,
        init_mode=INIT_AT_END,
        exp_type=wanted.kind,
        exp=wanted.expression,
        order=fifo,
        attempt_id=attempt,
        bname=broker,
    )
    return Command(RequestCode.POP_MESSAGE, header.to_ext())


class Given(NamedTuple):
    """A message, its handle, and how often it was given out before."""

    popped: Popped
    handle: Handle
    attempts: int


def given(broker: str, answer: Command, fifo: bool) -> list[Given]:
    """What a broker's answer brings, with bodies as they are stored.

    @raise BrokerError: it refused.
    @raise RemoteProtocolError: it is no such answer.
    """
    counts = order_counts((answer.ext or {}).get("orderCountInfo", "")) if fifo else {}
    found = []
    for one in popped(broker, answer, decompress=False):
        message, receipt = one.message, one.handle
        attempts = message.reconsume_times
        if fifo:
            queue = f"{receipt.kind} {receipt.queue_id}"
            key = f"{receipt.kind} qo{receipt.queue_id}%{message.queue_offset}"
            attempts = counts.get(key) or counts.get(queue) or attempts
        handle = Handle(receipt, message.position)
        found.append(Given(one, handle, attempts))
    return found


def order_counts(text: str) -> dict[str, int]:
    """How often messages were given out before, by C{kind queue}.

    @raise RemoteProtocolError: an entry is none.
    """
    found: dict[str, int] = {}
    for entry in text.split(";") if text else ():
        key, _, count = entry.rpartition(" ")
        if not key or not count.isdecimal():
            raise RemoteProtocolError(f"popped messages with {entry[:40]!r}")
        found[key] = int(count)
    return found
