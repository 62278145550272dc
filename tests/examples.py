"""How many examples property tests try: few in a working day, many on demand.

C{ROCKETBROKER_EXAMPLES=100000 python -m twisted.trial tests.wire} tries that many of
each property; without it there are L{QUICK}. Examples are derived from the test itself
and not from chance or a data base, so that a failure comes again.
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

#: Examples of each property, unless the environment says otherwise.
QUICK: Final = 100


def examples(share: float = 1.0) -> settings:
    """The settings of a property test; used as its decorator.

    @param share: of the number of examples: less than 1 for a property whose one
        example is slow, because it tries each cut of a frame, say.
    """
    count = int(os.environ.get("ROCKETBROKER_EXAMPLES", QUICK))
    return settings(
        max_examples=max(1, int(count * share)),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
