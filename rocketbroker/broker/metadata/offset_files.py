# -*- test-case-name: tests.broker.metadata.test_offset_files -*-
"""The two files of consumer offsets, of which a broker writes one.

RocketMQ keeps all offsets in C{lmqConsumerOffset.json} while enableLmq is on and in
C{consumerOffset.json} while it is off, and looks at the other file never again: whoever
changes the setting of a broker in use sets all groups back. So a start of ours reads
both (L{merged}). For each group and queue the newer file counts; an offset that only
one file has is taken from that one.

B{Which file is newer.} The time of the data version tells, not its counter as
elsewhere: with enableLmq a Java broker begins a new version at each start, with the
time of the start and the counter 0.

B{Once only.} What a file has taken over it names by the other file's version, as
L{TAKEN_OVER}. As long as the other file has that version it is not looked at: the
offsets of groups and topics that were deleted since are still in it.

C{docs/facts/broker.md} 16.2 and 26.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rocketbroker.broker.metadata.offset_texts import Offsets
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.fields import integer_of

#: The file without enableLmq, and the file with it.
PLAIN_FILE: Final = "consumerOffset.json"
LIGHT_FILE: Final = "lmqConsumerOffset.json"

#: The table of the file with the offsets of groups of LMQs, one each: an LMQ has the
#: queue id 0.
LIGHT_TABLE: Final = "lmqOffsetTable"

#: Which version of the other file a file has taken over. RocketMQ does not read it.
TAKEN_OVER: Final = "takenOver"


class MergedOffsets(NamedTuple):
    """What a start finds in both files."""

    offsets: Offsets
    version: DataVersion
    #: Of the other file, when its offsets were last taken over; None: never.
    taken_over: DataVersion | None
    #: Whether that happened just now, so that there is something to write.
    is_new: bool


def merged(
    own: Mapping[Any, object] | None,
    other: Mapping[Any, object] | None,
    now_ms: int,
) -> MergedOffsets:
    """The offsets of both files.

    @param own: the file of the setting in force; None if there is none.
    @param other: the file that is not written any more.
    @param now_ms: the time of a new version. The version is newer than that of both
        files if offsets were taken over.
    """
    own_version = version_in(own)
    offsets = offsets_in(own) if own is not None else {}
    version = own_version or DataVersion(timestamp=now_ms)
    taken_over = version_in(own, TAKEN_OVER)
    if other is None:
        return MergedOffsets(offsets, version, taken_over, False)
    its_version = version_in(other) or DataVersion()
    if its_version == taken_over:
        return MergedOffsets(offsets, version, taken_over, False)
    is_newer = own_version is None or its_version.timestamp > own_version.timestamp
    for key, queues in offsets_in(other).items():
        known = offsets.get(key, {})
        offsets[key] = known | queues if is_newer else queues | known
    made = DataVersion(
        counter=max(version.counter, its_version.counter) + 1,
        timestamp=max(version.timestamp + 1, its_version.timestamp + 1, now_ms),
        state_version=max(version.state_version, its_version.state_version),
    )
    return MergedOffsets(offsets, made, its_version, True)


def version_in(
    value: Mapping[Any, object] | None, name: str = "dataVersion"
) -> DataVersion | None:
    """A data version in a file; None if there is none that makes sense."""
    if value is None or value.get(name) is None:
        return None
    try:
        return DataVersion.from_json(value[name])
    except RemoteProtocolError:
        return None


def offsets_in(value: Mapping[Any, object]) -> Offsets:
    """All offsets that a file holds; what makes no sense is left out."""
    found = loaded_offsets(value.get("offsetTable"))
    found.update(loaded_offsets(with_queues(value.get(LIGHT_TABLE))))
    return found


def with_queues(value: object) -> object:
    """Offsets without queues, as those of queue 0."""
    if not isinstance(value, dict):
        return {}
    return {key: {0: offset} for key, offset in value.items()}


def loaded_offsets(value: object) -> Offsets:
    """The offset table as a file holds it; what makes no sense is left out."""
    if not isinstance(value, dict):
        return {}
    found: Offsets = {}
    for key, queues in value.items():
        for name, offset in queues.items() if isinstance(queues, dict) else ():
            queue_id = integer_of(name)
            if (
                queue_id is not None
                and 0 <= queue_id < 1 << 31
                and isinstance(offset, int)
                and -(1 << 63) <= offset < 1 << 63
            ):
                found.setdefault(str(key), {})[queue_id] = offset
    return found
