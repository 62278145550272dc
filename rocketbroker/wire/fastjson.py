# -*- test-case-name: tests.wire.test_fastjson -*-
"""The dialect of JSON of RocketMQ's bodies and files, in and out.

How it is read stands in L{rocketbroker.wire.json_reader}, how it is written in
L{rocketbroker.wire.json_writer}.
"""

from __future__ import annotations

from rocketbroker.wire.json_reader import (
    MAX_DEPTH,
    MAX_LENIENT_BODY,
    MAX_LENIENT_TURN_BODY,
    MAX_TURN_BODY,
    MAX_VALUES,
    ObjectKey,
    loads,
    loads_in_steps,
)
from rocketbroker.wire.json_writer import (
    JsonValue,
    Written,
    dumps,
    dumps_standard,
    joined,
    member_text,
    quoted,
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
    "JsonValue",
    "ObjectKey",
    "MAX_DEPTH",
    "MAX_LENIENT_BODY",
    "MAX_TURN_BODY",
    "MAX_LENIENT_TURN_BODY",
    "MAX_VALUES",
]
