# -*- test-case-name: tests.store.dispatch.test_delays -*-
"""The tag codes of messages that wait for their time.

In the queues of the topic of delayed messages the tag code is the time of delivery. The
broker that stores one gives it; a recovery has to find it again, from the store time
and the level in the properties.

The store sheet, sections 7.2 and 18.
"""

from __future__ import annotations

import re
from typing import Final

from rocketbroker.records import names

#: Where delayed messages wait.
SCHEDULE_TOPIC: Final = names.SCHEDULE_TOPIC.encode()

#: What a level without a duration of its own adds, in ms.
UNKNOWN_LEVEL_MS: Final = 1000

#: The last time that an entry can say; a rotten store time may be near it.
LAST_MS: Final = (1 << 63) - 1

_LEVEL: Final = re.compile(rb"(?:\A|\x02)DELAY\x01(\d{1,9})(?=\x02|\Z)")


def delivery_ms(properties: bytes, store_ms: int, levels: list[int]) -> int | None:
    """When a message is to be delivered; None if it is not a delayed one."""
    found = _LEVEL.findall(properties)
    level = int(found[-1]) if found else 0
    if level == 0:
        return None
    delay_ms = levels[min(level, len(levels)) - 1] if levels else UNKNOWN_LEVEL_MS
    return min(store_ms + delay_ms, LAST_MS)
