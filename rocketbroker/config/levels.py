# -*- test-case-name: tests.config.test_levels -*-
"""C{messageDelayLevel}: how long a message of each delay level waits.

C{1s 5s 1m}: level 1 is a second, level 3 a minute. C{docs/facts/store.md 18}.
"""

from __future__ import annotations

import re
from typing import Final

#: The delays of levels 1 to 18 unless the setting says otherwise.
DELAY_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

#: Each level is a queue, with files and memory of its own. RocketMQ has no bound;
#: it makes 18 queues.
MAX_LEVELS: Final = 1000

_UNITS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

#: Nine digits of days are a time stamp that a record can hold.
_LEVEL: Final = re.compile(r"([0-9]{1,9})([smhd])\Z")


def parse_levels(text: str) -> list[int]:
    """The delay of each level in ms.

    @raise ValueError: what a level must be instead.
    """
    delays = []
    for word in text.split():
        match = _LEVEL.match(word)
        if match is None:
            raise ValueError(
                f"the level {word!r} must be a number and one of s, m, h, d, as in 30s"
            )
        delays.append(int(match[1]) * _UNITS[match[2]])
    if not 0 < len(delays) <= MAX_LEVELS:
        raise ValueError(f"there must be 1 to {MAX_LEVELS} levels")
    return delays
