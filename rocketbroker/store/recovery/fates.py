# -*- test-case-name: tests.store.recovery.test_fates -*-
"""Whether a queue without entries, of which the log has messages, is lost.

The topic may have been deleted and made again: then these messages are nobody's any
more. No broker writes down when that was, but the other queues of the topic tell it
mostly. None of them can begin before the topic was made again; and where the log has
messages of one, too, from before it begins, the topic was deleted indeed.

A start decides by this (L{rocketbroker.store.recovery.unentered}), and so do the tools
(L{rocketbroker.storetools.verify.files}). Where nothing tells, a start changes nothing
and says it, since most often the topic was deleted; who knows better has the verb
C{repair}.

The store sheet, sections 7 and 17.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

#: How the verb C{repair} is told what nothing else tells.
OPTION: Final = "--restore-queues"


class Fate(Enum):
    """What became of such a queue."""

    #: It should have these messages.
    LOST = auto()

    #: It should not: its topic was deleted after them.
    DELETED = auto()

    #: One or the other.
    UNKNOWN = auto()


def fate_of(begins: Iterable[int], position: int, has_older: bool) -> Fate:
    """What became of a queue without entries.

    @param begins: where the record of the first entry is of each other queue of the
        topic that has entries; 0 if its first files were removed since.
    @param position: where a record of the queue is.
    @param has_older: whether the log has records of one of the others from before that
        begins.
    """
    begin = min(begins, default=-1)
    if begin < 0:
        return Fate.UNKNOWN
    if begin < position:
        return Fate.LOST
    return Fate.DELETED if has_older else Fate.UNKNOWN


def unknown(what: str, position: int) -> str:
    """A sentence about queues of which nothing tells it.

    @param what: which queues of a topic have no entries.
    @param position: where the log has a record of one.
    """
    return (
        f"{what}, though the log has messages there, one at position {position}: the "
        "topic was deleted and made again, or they are lost. Then, before it gets new "
        f"messages, rocketbroker store repair {OPTION} makes its queues again."
    )
