# -*- test-case-name: tests.store -*-
"""The filter and the result of a read of the store.

Here and not with L{rocketbroker.store.interfaces}, since this is compiled.

Statuses: C{docs/facts/store.md} 16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

# The outcome of a read (ReadResult.status); the names are the remarks of pull answers.
FOUND: Final = "FOUND"
NO_MATCHED_MESSAGE: Final = "NO_MATCHED_MESSAGE"
MESSAGE_WAS_REMOVING: Final = "MESSAGE_WAS_REMOVING"
OFFSET_FOUND_NULL: Final = "OFFSET_FOUND_NULL"
OFFSET_OVERFLOW_BADLY: Final = "OFFSET_OVERFLOW_BADLY"
OFFSET_OVERFLOW_ONE: Final = "OFFSET_OVERFLOW_ONE"
OFFSET_TOO_SMALL: Final = "OFFSET_TOO_SMALL"
NO_MATCHED_LOGIC_QUEUE: Final = "NO_MATCHED_LOGIC_QUEUE"
NO_MESSAGE_IN_QUEUE: Final = "NO_MESSAGE_IN_QUEUE"


@final
class MessageFilter:
    """A filter of messages that needs more than their tag codes.

    @ivar codes: given a tag code, whether the message may match; None: all.
    @ivar matches: given the properties string, whether it does; None: all. It raises
        nothing.
    @ivar may_match: given store time in ms and bit map of the unit in the queue's
        extension, whether it may; None: all.
    @ivar cost: how long one call of C{matches} takes, about, in ns.
    @ivar hint: is found in each properties string that matches, and perhaps in others;
        None: not known.
    """

    __slots__ = ("codes", "cost", "hint", "matches", "may_match")

    def __init__(
        self,
        codes: Callable[[int], bool] | None,
        matches: Callable[[bytes], bool] | None,
        may_match: Callable[[int, bytes], bool] | None = None,
        cost: int = 0,
        hint: re.Pattern[bytes] | None = None,
    ) -> None:
        self.codes = codes
        self.hint = hint
        self.matches = matches
        self.may_match = may_match
        self.cost = cost


#: The filter of a read: given a tag code, whether the message is wanted; or a filter by
#: more than that; None: all messages.
Matches: TypeAlias = Callable[[int], bool] | MessageFilter | None


@final
class ReadResult:
    """The result of L{IStore.read}.

    @ivar status: one of the names above.
    @ivar next_offset: where the reader goes on.
    @ivar min_offset: the queue's first offset at that moment.
    @ivar max_offset: the queue's end at that moment.
    @ivar records: the stored records, whole, in order, in one or several pieces; those
        of L{IStore.read_warm<rocketbroker.store.interfaces.IStore.read_warm>} are views
        of files, which are to be kept no longer than the turn.
    @ivar count: how many records.
    @ivar size: their bytes.
    """

    __slots__ = (
        "count",
        "max_offset",
        "min_offset",
        "next_offset",
        "records",
        "size",
        "status",
    )

    def __init__(
        self,
        status: str,
        next_offset: int,
        min_offset: int,
        max_offset: int,
        records: Sequence[bytes | memoryview],
        count: int,
        size: int,
    ) -> None:
        self.status = status
        self.next_offset = next_offset
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.records = records
        self.count = count
        self.size = size

    def copied(self) -> list[bytes]:
        """The records, to be kept."""
        return [bytes(each) for each in self.records]
