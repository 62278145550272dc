# -*- test-case-name: tests.storetools.repair.test_filler_records -*-
"""Records written in the place of those that cannot be read any more.

Nothing in the log can be taken out: all positions behind it would be wrong. So a region
without a good record is filled with records that RocketMQ and this broker step over or
hand out as they are:

  - If only the numbers or the topic in the record's head are wrong, and a queue's entry
    still has the right ones, these are set right, and nothing is lost.
  - Else the message keeps its place in its queue, since offsets must be dense, as a
    message without a body, with the properties it had if they can be read, and the
    property L{LOST}. A consumer sees that something was there. A delayed message that
    does not say any more where it was to go goes nowhere: RocketMQ tries such a message
    for ever, and all behind it wait, but one for half messages it drops.
  - The rest becomes dead records: of the type rolled back, which no dispatch enters
    anywhere; their bodies are the bytes that are there.
  - Up to the end of a segment a filler does, and none is without one: behind a record
    that ends with its segment RocketMQ ends its log, after a crash.

In a log whose records have a CRC of their own (C{enabledAppendPropCRC}) those that are
put there have one, too: with C{forceVerifyPropCRC} RocketMQ ends its log before a
record that has none.

docs/facts/store.md 3, 7, 13 and 18.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from rocketbroker.records.checking import numbers_are_numbers
from rocketbroker.records.entries import FILLED_SIZE
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import HALF_TOPIC, SCHEDULE_TOPIC
from rocketbroker.records.properties import REAL_QUEUE_ID, REAL_TOPIC
from rocketbroker.records.record import (
    CRC_PROPERTY_SIZE,
    StoredMessage,
    decode,
    encode,
    is_crc_property_right,
    own_crc,
    record_size,
)
from rocketbroker.records.record_head import (
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MAX_V1_TOPIC_BYTES,
)
from rocketbroker.records.sysflags import INNER_BATCH, NEED_UNWRAP
from rocketbroker.store.commitlog.encoder import FILLER, FILLER_BYTES, MAX_PROPERTIES
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse

#: The property of a message whose body is lost: how many bytes its record had.
LOST: Final = "ROCKETBROKER_LOST_BYTES"

#: The topic of dead records; it has no queue.
DEAD_TOPIC: Final = b"LOST"

#: The transaction type of dead records: rolled back.
DEAD: Final = 0xC

#: No dead record is larger, as a reader takes it into memory whole.
MAX_DEAD: Final = 4 << 20

_WAITING: Final = SCHEDULE_TOPIC.encode()

#: The destination of a delayed message whose own is lost.
_NOWHERE: Final = f"{REAL_TOPIC}\x01{HALF_TOPIC}\x02{REAL_QUEUE_ID}\x010\x02".encode()

NOBODY: Final = bytes(8)
SMALLEST_DEAD: Final = record_size(0, len(DEAD_TOPIC), 0)

#: The bytes before the body of one.
_DEAD_HEAD: Final = SMALLEST_DEAD - 3 - len(DEAD_TOPIC)

#: Compressed or not, and how, or an inner batch: means nothing without a body.
_NOT_EMPTY: Final = 0x701 | INNER_BATCH | NEED_UNWRAP

_RECORD_CRC: Final = re.compile(rb"(?:^|(?<=\x02))__CRC32#\x01[^\x02]*(?:\x02|$)")

#: Reads bytes of the log: position, size.
Read: TypeAlias = Callable[[int, int], bytes]


@final
class Slot:
    """A record as its queue knows it.

    @ivar messages: how many messages it is: a batch queue may know it as several.
    """

    __slots__ = (
        "messages",
        "position",
        "queue_id",
        "queue_offset",
        "size",
        "topic",
    )

    def __init__(
        self,
        position: int,
        size: int,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        messages: int = 1,
    ) -> None:
        self.position = position
        self.size = size
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.messages = messages


@final
class FillerRecords:
    """The bytes to write in place of records that are lost.

    @ivar store_ms: the store time of records whose own cannot be read.
    @ivar patches: position and new bytes, in order, none overlapping.
    @ivar mended: of records that are whole again, their slots.
    @ivar emptied: of messages without a body now, their slots.
    @ivar sealed: from where to where records stand whose own CRC is made again.
    @ivar buried: of messages that have lost their places, their slots.
    @ivar dead: from where to where dead records and fillers stand.
    """

    def __init__(self, read: Read, store_ms: int, is_sealed: bool = False) -> None:
        """
        @param is_sealed: whether the records of the log have CRCs of their own.
        """
        self._read = read
        self._seal_bytes = CRC_PROPERTY_SIZE if is_sealed else 0
        self._smallest = SMALLEST_DEAD + self._seal_bytes
        self.store_ms = max(store_ms, 1)
        self.patches: list[tuple[int, bytes]] = []
        self.mended: list[Slot] = []
        self.emptied: list[Slot] = []
        self.sealed: list[tuple[int, int]] = []
        self.dead: list[tuple[int, int]] = []
        self.buried: list[Slot] = []

    def fill(
        self, start: int, end: int, slots: Sequence[Slot], ends_segment: bool
    ) -> None:
        """Fill a region.

        @param slots: the records that queues know there; those that overlap are left
            out.
        @param ends_segment: whether the region's end is the end of its segment.
        """
        used = _apart(start, end - FILLER_BYTES if ends_segment else end, slots)
        if used and 0 < used[0].position - start < self._smallest:
            del used[0]
        at = used[0].position if used else start
        if used:
            self._bury(start, at)
        for number, slot in enumerate(used):
            is_last = number + 1 == len(used)
            room = end if is_last else used[number + 1].position
            behind = slot.position + slot.size
            if is_last and (ends_segment or end - behind >= self._smallest):
                room = behind
            self._slot(slot, room)
            at = room
        if at < end and ends_segment and end - at >= FILLER_BYTES:
            self.patches.append((at, FILLER.pack(end - at, MAGIC_BLANK)))
            self.dead.append((at, end))
        else:
            self._bury(at, end)

    def correct(self, slot: Slot) -> None:
        """Set right the numbers of a record that is otherwise whole, if that does."""
        data = self._read(slot.position, slot.size)
        mended = _mended(slot, data)
        if mended is not None and mended != data:
            self._mend(slot, mended)

    def seal(self, start: int, end: int) -> None:
        """Give a record that has a CRC of its own the right one, as it is now."""
        data = self._read(start, end - start)
        self.patches.append((end - CRC_PROPERTY_SIZE, own_crc(data)))
        self.sealed.append((start, end))

    def _mend(self, slot: Slot, mended: bytes) -> None:
        """Write a record as it is when mended; its own CRC is made again if more of it
        is wrong than was set right."""
        if not is_crc_property_right(mended, 0, len(mended)):
            mended = mended[:-CRC_PROPERTY_SIZE] + own_crc(mended)
            self.sealed.append((slot.position, slot.position + slot.size))
        self.patches.append((slot.position, mended))
        self.mended.append(slot)

    def _bury(self, start: int, end: int) -> None:
        """Discard a region."""
        if start < end:
            self.dead.append((start, end))
            self._cover(start, end)

    def _cover(self, start: int, end: int) -> None:
        """Make dead records of everything in a region."""
        while start < end:
            size = end - start
            if size > MAX_DEAD:
                size = min(MAX_DEAD, size - self._smallest)
            self._dead(start, size)
            start += size

    def _dead(self, position: int, size: int) -> None:
        """A dead record; its body is what is there."""
        is_sealed = self._seal_bytes > 0 and size >= self._smallest
        length = size - (self._smallest if is_sealed else SMALLEST_DEAD)
        record = encode(
            DEAD_TOPIC,
            self._read(position + _DEAD_HEAD, length),
            b"",
            0,
            0,
            position,
            self.store_ms,
            NOBODY,
            self.store_ms,
            NOBODY,
            sys_flag=DEAD,
            append_crc=is_sealed,
        )
        behind = _DEAD_HEAD + length
        self.patches.append((position, record[:_DEAD_HEAD]))
        self.patches.append((position + behind, record[behind:]))

    def _slot(self, slot: Slot, room: int) -> None:
        """Mend a record, or empty it; what it leaves up to C{room} is dead."""
        data = self._read(slot.position, slot.size)
        mended = _mended(slot, data)
        left = room - slot.position - slot.size
        if mended is not None and (left == 0 or left >= self._smallest):
            self._mend(slot, mended)
            self._bury(slot.position + slot.size, room)
            return
        record = None
        if slot.messages == 1:
            # A batch without messages is none, and its queue may have gaps.
            # What it says is left out where it leaves no room for its place.
            seal = self._seal_bytes
            for known, seal_bytes in ((data, seal), (data, 0), (b"", seal)):
                record = self._empty(slot, known, room - slot.position, seal_bytes)
                if record is not None:
                    break
        if record is None:
            self.buried.append(slot)
            self._bury(slot.position, room)
            return
        self.patches.append((slot.position, record))
        self.emptied.append(slot)
        after = slot.position + len(record)
        self._cover(after, room)

    def _empty(
        self, slot: Slot, data: bytes, room: int, seal_bytes: int
    ) -> bytes | None:
        """A message without a body, of C{room} bytes or so few less that a dead record
        fits behind it; None if there is no way.

        @param seal_bytes: of what is added to its properties: its own CRC, or nothing.
        """
        was = self._known(slot, data)
        properties = was.property_bytes
        if slot.topic == _WAITING and REAL_TOPIC.encode() not in properties:
            properties = _NOWHERE
        if seal_bytes and properties and not properties.endswith(b"\x02"):
            properties += b"\x02"
        room -= seal_bytes
        hosts = was.born_host, was.store_host
        size = record_size(
            0, len(slot.topic), len(properties), len(hosts[0]), len(hosts[1])
        )
        joint = b"" if not properties or properties.endswith(b"\x02") else b"\x02"
        marked = properties + joint + f"{LOST}\x01{slot.size}\x02".encode()
        left = room - size - (len(marked) - len(properties))
        if left < 0 or len(marked) + self._smallest + seal_bytes > MAX_PROPERTIES:
            # No room to say that it is lost.
            marked, left = properties, room - size
            if left < self._smallest:
                marked += b"\x02" * left
        elif left < self._smallest:
            marked = marked[:-1] + b" " * left + b"\x02"
        if left < 0 or len(marked) + seal_bytes > MAX_PROPERTIES:
            return None
        return encode(
            slot.topic,
            b"",
            marked,
            slot.queue_id,
            slot.queue_offset,
            slot.position,
            was.born_ms,
            hosts[0],
            was.store_ms,
            hosts[1],
            was.flag,
            was.sys_flag & ~_NOT_EMPTY,
            was.reconsume_times,
            was.prepared_offset,
            append_crc=seal_bytes > 0,
        )

    def _known(self, slot: Slot, data: bytes) -> StoredMessage:
        """The readable part of a record, all but its body."""
        try:
            parse(data, 0, slot.position, False)
            message = decode(data)
            if not numbers_are_numbers(slot.topic, message.property_bytes):
                raise Malformed("a number in its properties is none")
        except (Broken, Blank, Malformed):
            return StoredMessage(
                "", 0, 0, 0, 0, b"", 0, 0, 0,
                self.store_ms, NOBODY, self.store_ms, NOBODY, 0, 0, b"",
            )  # fmt: skip
        message.property_bytes = _RECORD_CRC.sub(b"", message.property_bytes)
        return message


def _apart(start: int, end: int, slots: Sequence[Slot]) -> list[Slot]:
    """Those inside a region that do not overlap, in order."""
    kept: list[Slot] = []
    at = start
    for slot in sorted(slots, key=lambda each: each.position):
        if slot.size == FILLED_SIZE or slot.size < record_size(0, len(slot.topic), 0):
            continue
        if slot.position >= at and slot.position + slot.size <= end:
            kept.append(slot)
            at = slot.position + slot.size
    return kept


def _mended(slot: Slot, data: bytes) -> bytes | None:
    """A record with the numbers that its queue knows; None if that does not do."""
    if not record_size(0, len(slot.topic), 0) <= slot.size <= len(data):
        return None
    queue_offset, position = struct.unpack_from(">qq", data, 20)
    if position != slot.position and queue_offset != slot.queue_offset:
        # Another record, as in a file of the log that was copied over another one.
        return None
    fixed = bytearray(data)
    magic = MAGIC_V1 if len(slot.topic) <= MAX_V1_TOPIC_BYTES else MAGIC_V2
    fixed[:8] = struct.pack(">ii", slot.size, magic)
    fixed[12:16] = slot.queue_id.to_bytes(4, "big")
    fixed[20:36] = struct.pack(">qq", slot.queue_offset, slot.position)
    record = bytes(fixed)
    try:
        found = parse(record, 0, slot.position, True)
    except (Broken, Blank):
        return None
    if (found.size, len(found.topic)) != (slot.size, len(slot.topic)):
        return None
    end = slot.size - len(found.properties) - 2
    record = record[: end - len(slot.topic)] + slot.topic + record[end:]
    return record if numbers_are_numbers(slot.topic, found.properties) else None
