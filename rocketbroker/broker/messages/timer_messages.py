# -*- test-case-name: tests.broker.messages.test_timer_messages -*-
"""Messages for any time, before and after their delivery.

A producer asks for a time by one of three properties: TIMER_DELAY_SEC, TIMER_DELAY_MS,
TIMER_DELIVER_MS. The message is stored in the timer topic, with its real topic and
queue and TIMER_OUT_MS, the time of its slot in the timer wheel: one that ends when the
message is due, or less than a slot later. When the slot is over, it is stored again in
its real topic, with all its properties. One with TIMER_OUT_MS has waited already, so a
client that sends on what it got does not let it wait again.

What deletes another message (TIMER_DEL_UNIQKEY) has to be in the same slot. A handle
names the message that is to be deleted, so that its sender can recall it.

With timerInterceptDelayLevel messages with a delay level wait so, too. Their level is
TIMER_DELAY_LEVEL then: RocketMQ, which does not know that setting by more than its
name, would let them wait a second time for DELAY.

C{docs/facts/transaction-timer-pop.md} B1, B2, B7, B11; C{docs/facts/broker.md} 10.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import IllegalOperation, MessageIllegal, SystemFailure
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import RETRY_PREFIX
from rocketbroker.records.properties import (
    CRC32,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TIMER_DEL_UNIQUE_KEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    UNIQUE_KEY,
    encode,
    find,
    joined,
)
from rocketbroker.records.recall_handle import RecallHandle
from rocketbroker.records.record import StoredMessage
from rocketbroker.records.sysflags import HOST_MASK
from rocketbroker.store.interfaces import Draft, IQueue

#: Each of them asks for a time; an earlier one wins. A delay level wins against all.
TIMER_NAMES: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)

#: What Java's parseLong takes, but for digits of other scripts.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}\Z")

#: TIMER_ENQUEUE_MS of a message that was never in the wheel.
NEVER: Final = (1 << 63) - 1

_CRC_NAME: Final = CRC32.encode()
_TAGS_NAME: Final = TAGS.encode()


def wants_time(own: dict[str, str]) -> bool:
    """Whether a message has to wait that is no delayed one."""
    return TIMER_OUT_MS not in own and any(name in own for name in TIMER_NAMES)


@final
class TimerMessages:
    """The conversion of messages for a time, before and after their delivery."""

    def __init__(
        self,
        options: StoreOptions,
        precision_ms: int,
        slot_size: Callable[[int], int],
        luck: Callable[[], float],
    ) -> None:
        """
        @param precision_ms: how much time a slot is.
        @param slot_size: how many messages the slot of a time has.
        @param luck: a number from 0 to 1 at random.
        """
        self.precision_ms = precision_ms
        self._slot_size = slot_size
        self._luck = luck
        self.configure(options)

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self.is_on = options.timer_wheel_enable
        self.takes_levels = self.is_on and options.timer_intercept_delay_level
        self.max_delay_ms = options.timer_max_delay_sec * 1000
        self._limit = options.timer_congest_num_each_slot

    def postpone(
        self, own: dict[str, str], topic: str, queue_id: int, now_ms: int
    ) -> bool:
        """Turn the properties of a message that has to wait into those that it has
        meanwhile.

        @param own: L{wants_time} of it; changed in place if it has to wait.
        @param topic: where it belongs.
        @return: whether it has to wait; not if its time has come.
        @raise MessageIllegal: its time is none, or too far ahead.
        @raise SystemFailure: timers are switched off, or too many are due then.
        """
        if not self.is_on:
            raise SystemFailure(
                "accurate timer message is not enabled, timerWheelEnable is false"
            )
        deliver_ms = _deliver_ms(own, now_ms)
        if deliver_ms is None or deliver_ms - now_ms > self.max_delay_ms:
            raise self._illegal()
        if deliver_ms <= now_ms:
            if TIMER_DEL_UNIQUE_KEY in own:
                raise self._illegal()
            return False
        self.wait(own, topic, queue_id, deliver_ms)
        return True

    def wait(
        self, own: dict[str, str], topic: str, queue_id: int, deliver_ms: int
    ) -> None:
        """Let a message wait until a time.

        @raise SystemFailure: too many are due then.
        """
        out_ms = (deliver_ms - 1) // self.precision_ms * self.precision_ms
        self._check_slot(out_ms)
        own[TIMER_OUT_MS] = str(out_ms)
        own[REAL_TOPIC] = topic
        own[REAL_QUEUE_ID] = str(queue_id)

    def _illegal(self) -> MessageIllegal:
        return MessageIllegal(
            "timer message illegal, the delay time should not be bigger than the max "
            f"delay {self.max_delay_ms}ms; or if set del msg, the delay time should be "
            "bigger than the current time"
        )

    def _check_slot(self, out_ms: int) -> None:
        """Refuse a message for a slot that has too many.

        RocketMQ's random choice refuses the less the fuller a slot is; its limits are
        kept, and the share grows with the messages.
        """
        limit = self._limit
        size = self._slot_size(out_ms)
        if size <= limit:
            return
        share = (size - limit) / (limit + 0.1)
        if share >= 1 or self._luck() < share:
            raise SystemFailure(
                "timer message is under flow control, max num limit is "
                f"{limit} or the current value is greater than {limit} and less than "
                f"{2 * limit}, trigger random flow control"
            )


def _deliver_ms(own: dict[str, str], now_ms: int) -> int | None:
    """When a message is wanted; None if the property is no number."""
    name = next(name for name in TIMER_NAMES if name in own)
    if not _WHOLE.match(own[name]):
        return None
    number = int(own[name])
    if name == TIMER_DELIVER_MS:
        return number
    return now_ms + number * (1000 if name == TIMER_DELAY_SEC else 1)


def delivered(
    message: StoredMessage,
    queue: IQueue,
    enqueue_ms: int,
    dequeue_ms: int,
    context: object,
) -> Draft:
    """The draft by which a message that has waited gets to where it belongs.

    @param enqueue_ms: when it was entered into the wheel; L{NEVER} if it was not.
    @param dequeue_ms: now.
    @param context: the draft's.
    """
    own = message.property_bytes
    if _CRC_NAME in own or b"TIMER_ENQUEUE_MS\x01" in own:
        rest = dict(message.properties)
        rest.pop(CRC32, None)
        rest[TIMER_ENQUEUE_MS] = str(enqueue_ms)
        rest[TIMER_DEQUEUE_MS] = str(dequeue_ms)
        own = encode(rest)
    else:
        own = joined(own, _waited(enqueue_ms, dequeue_ms))
    return _draft(message, queue, own, context)


@lru_cache(maxsize=64)
def _waited(enqueue_ms: int, dequeue_ms: int) -> bytes:
    """How a message has waited; it is the same for many that are due together."""
    return b"TIMER_ENQUEUE_MS\x01%d\x02TIMER_DEQUEUE_MS\x01%d\x02" % (
        enqueue_ms,
        dequeue_ms,
    )


def rolled(
    message: StoredMessage,
    queue: IQueue,
    enqueue_ms: int,
    dequeue_ms: int,
    context: object,
) -> Draft:
    """The draft by which a message is entered anew that is not due yet."""
    own = dict(message.properties)
    own.pop(CRC32, None)
    times = own.get(TIMER_ROLL_TIMES, "0")
    own[TIMER_ROLL_TIMES] = str(int(times) + 1 if _WHOLE.match(times) else 1)
    own[TIMER_ENQUEUE_MS] = str(enqueue_ms)
    own[TIMER_DEQUEUE_MS] = str(dequeue_ms)
    return _draft(message, queue, encode(own), context)


def _draft(message: StoredMessage, queue: IQueue, own: bytes, context: object) -> Draft:
    tags = find(own, _TAGS_NAME) if b"TAGS\x01" in own else None
    return Draft(
        queue,
        message.body,
        own,
        message.flag,
        message.sys_flag & ~HOST_MASK,
        message.born_ms,
        message.born_host,
        message.reconsume_times,
        0 if tags is None else tag_code(tags.decode("utf-8", "replace")),
        context,
        None,
        0,
        False,
    )


def out_ms_of(own: bytes) -> int | None:
    """The time of the slot that a stored message waits for; None if it does not say.

    @param own: its properties string.
    """
    text = find(own, b"TIMER_OUT_MS")
    if text is None or not text.isdigit() or len(text) > 18:
        return None
    return int(text)


def delete_key(topic: str, unique_key: str) -> str:
    """What a message that deletes another one has of it."""
    return f"{topic}+{unique_key}"


def key_of(own: bytes) -> bytes:
    """The key by which a stored message would be deleted."""
    real_topic, unique = find(own, b"REAL_TOPIC"), find(own, b"UNIQ_KEY")
    return b"%b+%b" % (real_topic or b"", unique or b"")


def recall_field(own: dict[str, str], broker_name: str) -> dict[str, str]:
    """The field of an answer that lets the sender of a message recall it.

    @param own: the properties with which it waits.
    @return: empty if nobody can.
    """
    topic, out_ms = own.get(REAL_TOPIC), own.get(TIMER_OUT_MS)
    if topic is None or out_ms is None or topic.startswith(RETRY_PREFIX):
        return {}
    # Later than the slot's time, so that it is rounded to the same slot.
    deliver_ms = int(out_ms) + 1
    handle = RecallHandle(topic, broker_name, deliver_ms, own.get(UNIQUE_KEY, ""))
    return {"recallHandle": handle.encode()}


def decode_handle(text: str) -> RecallHandle:
    """The handle of a request.

    @raise IllegalOperation: it is none.
    """
    try:
        return RecallHandle.parse(text)
    except Malformed as error:
        raise IllegalOperation("recall failed, decode handle error") from error
