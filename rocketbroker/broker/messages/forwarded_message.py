# -*- test-case-name: tests.broker.messages.test_forwarded_message -*-
"""Messages of a slave's log that go to another broker, as a producer would send them.

A delayed message goes to its real topic without its delay, else it would be delayed
once more. A half message becomes what its producer has sent, so that the broker that
takes it makes its own half of it, and asks the producer itself. Neither waits for disks
or copies there (WAIT=false).

C{docs/facts/ha.md} 14.
"""

from __future__ import annotations

from typing import Final, final

import attrs

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.broker.messages.timer_messages import TIMER_NAMES, out_ms_of
from rocketbroker.records.names import REVIVE_PREFIX
from rocketbroker.records.properties import (
    CRC32,
    DELAY,
    PREPARED_QUEUE_OFFSET,
    REAL_QUEUE_ID,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_PREPARED,
    WAIT,
    decode,
    encode,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.records.sysflags import HOST_MASK, with_transaction_type
from rocketbroker.records.sysflags import TRANSACTION_PREPARED as PREPARED_TYPE
from rocketbroker.store.interfaces import Draft

#: What says how a delayed message has waited.
_DELAYS: Final = (DELAY, *TIMER_NAMES)

#: What says of which half a message is made; the other broker notes its own.
_HALF: Final = (PREPARED_QUEUE_OFFSET, TRANSACTION_CHECK_TIMES, REAL_QUEUE_ID)


@final
@attrs.frozen(eq=False)
class ForwardedMessage:
    """A message on its way to another broker.

    @ivar topic: where it belongs.
    @ivar queue_id: the queue that it had here.
    @ivar properties: its properties.
    @ivar sys_flag: without the bits of hosts.
    @ivar flag: the producer's flag.
    @ivar born_ms: the producer's time stamp.
    @ivar reconsume_times: how often it was consumed without success.
    """

    topic: str
    queue_id: int
    properties: dict[str, str]
    sys_flag: int
    body: bytes
    born_ms: int
    flag: int = 0
    reconsume_times: int = 0

    @property
    def property_text(self) -> str:
        """The properties as a send carries them."""
        return encode(self.properties).decode()


def due_message(message: StoredMessage) -> ForwardedMessage:
    """A delayed message that is due."""
    return _escaped(message, _DELAYS, message.sys_flag & ~HOST_MASK)


def timer_message(
    message: StoredMessage, waits: bool, precision_ms: int
) -> ForwardedMessage | None:
    """A message for a certain time.

    @param waits: whether it is not due yet; then it waits there.
    @param precision_ms: how much time a slot of the wheel is.
    @return: None if it does not say where it belongs, or when.
    """
    out_ms = out_ms_of(message.property_bytes)
    if out_ms is None or destination(message) is None:
        return None
    escaped = due_message(message)
    if escaped.topic.startswith(REVIVE_PREFIX) and not waits:
        # Who reads check points goes by the times at which they are due.
        for name in (TIMER_DELIVER_MS, TIMER_OUT_MS):
            escaped.properties[name] = message.properties.get(name, str(out_ms))
    if waits:
        del escaped.properties[TIMER_OUT_MS]
        escaped.properties[TIMER_DELIVER_MS] = str(out_ms + precision_ms)
    return escaped


def half_message(half: StoredMessage) -> ForwardedMessage:
    """A half message, as its producer has sent it."""
    sys_flag = with_transaction_type(half.sys_flag & ~HOST_MASK, PREPARED_TYPE)
    escaped = _escaped(half, _HALF, sys_flag)
    escaped.properties[TRANSACTION_PREPARED] = "true"
    return escaped


def new_message(topic: str, queue_id: int, draft: Draft) -> ForwardedMessage:
    """A message that a master would store itself.

    @param topic: where it belongs; C{queue_id}: and the queue.
    """
    return ForwardedMessage(
        topic,
        queue_id,
        {**decode(draft.properties), WAIT: "false"},
        draft.sys_flag & ~HOST_MASK,
        draft.body,
        draft.born_ms,
        draft.flag,
        draft.reconsume_times,
    )


def _escaped(
    message: StoredMessage, left_out: tuple[str, ...], sys_flag: int
) -> ForwardedMessage:
    place = destination(message)
    assert place is not None
    own = dict(message.properties)
    for name in (CRC32, *left_out):
        own.pop(name, None)
    own[WAIT] = "false"
    return ForwardedMessage(
        *place,
        own,
        sys_flag,
        message.body,
        message.born_ms,
        message.flag,
        message.reconsume_times,
    )
