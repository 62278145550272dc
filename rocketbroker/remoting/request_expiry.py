# -*- test-case-name: tests.remoting.test_request_expiry -*-
"""Requests that have waited too long to be begun: they are answered SYSTEM_BUSY.

RocketMQ cleans the queues of its thread pools (C{docs/facts/broker.md} 7.1). Here a
request can wait before it is begun in

  - I{a connection}: whole frames that are left because the time of the connection or of
    the turn was over, or because a pull among them waits for memory. This module cleans
    them. All frames that are left were received at once, so that a connection needs one
    time for them, and those that never wait cost nothing;
  - I{a socket}: nobody knows when its bytes came. They are not read while others are
    left in their connection, so that its client is slowed down, not deceived;
  - I{a queue for threads, or for slices}:
    L{rocketbroker.broker.waiting_requests}.

Not here: pulls that are held have their own time; and a send that is appended cannot be
taken back, so that it keeps to syncFlushTimeout, and what could not wait so long is
refused before (L{rocketbroker.broker.appends.overload}). Neither are the requests of a
client that does not read our answers: it waits for itself.

The words of the remark are RocketMQ's, followed by the stage that was slow, which
RocketMQ does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.remoting.hubconnection import HubConnection, keep
from rocketbroker.wire.command import RESPONSE
from rocketbroker.wire.frames import decode

#: How often connections with requests left are looked at, at most; RocketMQ's period.
SWEEP_SECONDS: Final = 0.01

#: A sweep ends after so long; the connections that it has not seen are next.
MAX_SWEEP_SECONDS: Final = 0.004

#: The request has waited longer than others of its kind may.
TIMEOUT: Final = "TIMEOUT_CLEAN_QUEUE"

#: The disk takes no message.
PCBUSY: Final = "PCBUSY_CLEAN_QUEUE"


def busy_remark(token: str, waited_ms: int, size: int, stage: str) -> str:
    """What is answered, with SYSTEM_BUSY.

    @param token: L{TIMEOUT} or L{PCBUSY}.
    @param waited_ms: how long the request has waited.
    @param size: how many still wait.
    @param stage: what was slow.
    """
    return (
        f"[{token}]broker busy, start flow control for a while, "
        f"period in queue: {waited_ms}ms, size of queue: {size}, slow stage: {stage}"
    )


def refuse_overdue(
    waiting: Sequence[HubConnection], now: float, seconds: Callable[[], float]
) -> float:
    """Answer what is overdue in the connections that have requests left.

    @param seconds: tells the time: a sweep is bounded, too.
    @return: when the next may be overdue.
    """
    latest = seconds() + MAX_SWEEP_SECONDS
    next_time = now + min(
        (each.group.table.least_wait for each in waiting), default=0.0
    )
    for connection in waiting:
        partial = connection.partial
        if (
            partial is None
            or len(partial) < connection.wanted
            or connection.closed
            or connection.congested
        ):
            continue
        if connection.overdue_at <= now:
            _refuse(connection, now, len(waiting))
            if seconds() >= latest:
                return now
        next_time = min(next_time, connection.overdue_at)
    return next_time


def _refuse(connection: HubConnection, now: float, size: int) -> None:
    """Answer those of its requests that are overdue, and keep the others.

    @param size: how many connections wait.
    """
    max_waits = connection.group.table.max_waits
    waited = now - connection.received_at
    remark = busy_remark(
        TIMEOUT, int(waited * 1000), size, "the requests of other connections"
    )
    data = bytes(connection.take_partial())
    if connection.paused:
        connection.buffers.ask_no_more(connection)
    kept: list[bytes] = []
    soonest = inf
    start = 0
    while not connection.congested and len(data) - start >= 4:
        end = start + 4 + int.from_bytes(data[start : start + 4], "big")
        if end > len(data):
            break
        try:
            command = decode(data[start + 4 : end])
        except RemoteProtocolError:
            break  # Its turn will tell.
        limit = None if command.flag & RESPONSE else max_waits.get(command.code)
        if limit is not None and waited >= limit:
            connection.refuse_overdue(command, waited, remark)
        else:
            kept.append(data[start:end])
            soonest = min(soonest, inf if limit is None else limit)
        start = end
    kept.append(data[start:])
    rest = b"".join(kept)
    connection.overdue_at = connection.received_at + soonest
    if rest and keep(connection, rest) and not connection.halted:
        connection.hub.resume(connection)
