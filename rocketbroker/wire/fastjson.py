# -*- test-case-name: tests.wire.test_fastjson -*-
"""The dialect of JSON of RocketMQ's bodies and files, in and out.

How it is read stands in L{rocketbroker.wire.reading}, how it is written in
L{rocketbroker.wire.emitting}.
"""

from __future__ import annotations

from rocketbroker.wire.emitting import (
    Emitted,
    Written,
    dumps,
    dumps_standard,
    joined,
    member_text,
    quoted,
)
from rocketbroker.wire.reading import (
    MAX_DEPTH,
    MAX_LENIENT_BODY,
    MAX_LENIENT_TURN_BODY,
    MAX_TURN_BODY,
    MAX_VALUES,
    ObjectKey,
    loads,
    loads_in_steps,
)

__all__ = [
    "loads",
    "loads_in_steps",
    "dumps",
    "dumps_standard",
    "joined",
    "member_text",
    "quoted",
    "Written",
    "Emitted",
    "ObjectKey",
    "MAX_DEPTH",
    "MAX_LENIENT_BODY",
    "MAX_TURN_BODY",
    "MAX_LENIENT_TURN_BODY",
    "MAX_VALUES",
]
