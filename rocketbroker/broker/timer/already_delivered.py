# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""The record of messages that were delivered before a crash.

A checkpoint is written each second, and not beyond what the disk had. What was
delivered since then would be delivered again; but its copies are in the commit log,
behind the place that the checkpoint names. Each has the id that its producer gave it,
the time it waited for, and how often it was entered anew.

Where RocketMQ wrote the checkpoint, no place is known, and messages of the last second
come twice, as with RocketMQ.
"""

from __future__ import annotations

from rocketbroker.broker.timer.due_sink import Due
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.properties import find
from rocketbroker.store.interfaces import IStore

#: How many records are read at a time, and how many at most: more than any broker
#: stores in the seconds between two checkpoints.
_AT_ONCE = 4096
MAX_RECORDS = 2_000_000


def already_delivered(store: IStore, position: int) -> set[bytes]:
    """I{Blocking.} The keys of the copies in the log from a position on.

    @param position: behind a record; -1 if it is not known.
    """
    found: set[bytes] = set()
    if not store.min_position <= position < store.published_position:
        return found
    tail = store.log_tail(position)
    for _ in range(0, MAX_RECORDS, _AT_ONCE):
        records = tail.take(_AT_ONCE)
        for record in records:
            own = record.properties_string
            if b"TIMER_DEQUEUE_MS\x01" in own:
                times = find(own, b"TIMER_ROLL_TIMES") or b"0"
                key = _key(record.topic.encode(), own, times)
                if key is not None:
                    found.add(key)
        if not records:
            break
    return found


def copy_key(due: Due) -> bytes | None:
    """The key of the copy that is made of a message; None if it has no id."""
    own = due.message.property_bytes
    times = find(own, b"TIMER_ROLL_TIMES") or b"0"
    if due.rolls:
        times = b"%d" % (int(times) + 1 if times.isdigit() else 1)
        return _key(TIMER_TOPIC.encode(), own, times)
    return _key(find(own, b"REAL_TOPIC") or b"", own, times)


def _key(topic: bytes, own: bytes, times: bytes) -> bytes | None:
    unique = find(own, b"UNIQ_KEY")
    if unique is None:
        return None
    # What takes a message back has its id, and its time.
    deletes = find(own, b"TIMER_DEL_UNIQKEY") or b""
    out_ms = find(own, b"TIMER_OUT_MS") or b""
    return b"\x02".join((topic, unique, out_ms, times, deletes))
