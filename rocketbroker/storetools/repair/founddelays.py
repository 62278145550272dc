# -*- test-case-name: tests.storetools.repair.test_founddelays -*-
"""The delay of each level, as the queues of a store tell it.

Who makes these queues again has to know when each message is to be delivered. The
record says only its level; what that was worth is a setting of the broker, which who
repairs a store may not have at hand. But an entry says the time of delivery, its record
when it was stored, and what is between is the delay.

The store sheet, sections 7.2 and 18.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from rocketbroker.config.levels import MAX_LEVELS
from rocketbroker.errors import StoreError
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.commitlog.scanner import parse
from rocketbroker.store.reader.directory import StoreReader

#: So many entries of each level are looked at, from all over its queue: a few may be
#: wrong, and some older than a change of the setting.
MAX_ASKED: Final = 200

#: No delay is longer, in ms: ten years.
MAX_MS: Final = 3_650 * 86_400_000


def delays_in(reader: StoreReader, said: str) -> str:
    """The setting messageDelayLevel, with the delays that most entries tell.

    @param said: what it is for those levels of which no entry tells it.
    """
    levels = said.split()
    for queue_id in reader.queues(SCHEDULE_TOPIC):
        delay_ms = _delay_of(reader, queue_id)
        if queue_id < MAX_LEVELS and delay_ms:
            levels += levels[-1:] * (queue_id + 1 - len(levels))
            levels[queue_id] = f"{delay_ms // 1000}s"
    return " ".join(levels)


def _delay_of(reader: StoreReader, queue_id: int) -> int:
    """What most entries of a level tell, in ms; 0 if none tells anything."""
    first = reader.min_offset(SCHEDULE_TOPIC, queue_id)
    end = reader.max_offset(SCHEDULE_TOPIC, queue_id)
    found: Counter[int] = Counter()
    for offset in range(first, end, max(1, (end - first) // MAX_ASKED)):
        position, size, code = reader.entries(SCHEDULE_TOPIC, queue_id, offset)[0]
        try:
            record = reader.record(position, size)
        except StoreError:
            continue
        delay_ms = code - parse(record, 0, position, False)[6]
        if 0 < delay_ms <= MAX_MS and delay_ms % 1000 == 0:
            found[delay_ms] += 1
    return max(found, key=found.__getitem__, default=0)
