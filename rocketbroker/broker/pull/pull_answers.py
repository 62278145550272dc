# -*- test-case-name: tests.broker.pull.test_pull -*-
"""What a read means to who pulls.

The broker sheet, sections 12.3 and 12.4.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.broker.pull.pull_checks import PullForbidden
from rocketbroker.store.interfaces import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_LOGIC_QUEUE,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    IQueue,
    ReadResult,
)
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command

#: The status of a pull that was sent elsewhere by an operator.
OFFSET_RESET: Final = "OFFSET_RESET"

_CODES: Final = {
    FOUND: ResponseCode.SUCCESS,
    MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    NO_MATCHED_LOGIC_QUEUE: ResponseCode.PULL_OFFSET_MOVED,
    NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


def code_of(status: str, offset: int) -> int:
    """The response code for what a read at C{offset} found."""
    if status in (NO_MESSAGE_IN_QUEUE, NO_MATCHED_LOGIC_QUEUE) and offset == 0:
        return ResponseCode.PULL_NOT_FOUND
    return _CODES[status]


def moved(queue: IQueue, offset: int) -> ReadResult:
    """What is read for a group that is to go on at C{offset}."""
    return ReadResult(
        OFFSET_RESET, offset, queue.min_offset, queue.max_offset, [], 0, 0
    )


def forbidden(error: PullForbidden) -> Command:
    """The answer to a pull that is not allowed."""
    return Command(error.code, {"forbiddenType": str(error.kind)}, remark=error.remark)
