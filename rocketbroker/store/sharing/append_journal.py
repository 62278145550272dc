# -*- test-case-name: tests.store.sharing.test_joined_store -*-
"""The append journal: the space that an append of another process than the owner has
reserved.

The journal is in the file of the append lock, in words::

    word     meaning
    0        the published position before the append
    1        no byte is written at this position or behind it
    2        how many pairs follow
    3...     pairs: the first word of a queue, the next offset in it before the append

It counts while the word APPENDING is L{OTHER_APPENDS}. The order of writes makes each
moment one that can be mended: first the journal, then the mark, then next offsets, the
records, PUBLISHED, and the mark again. If PUBLISHED has moved, all of the append is
there, and only the mark is left; if not, nothing of it has ever existed.

To mend twice is to mend once, so a process may die in that, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Final, final

from rocketbroker.files.interfaces import IFile
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.shared_positions import (
    APPENDING,
    NEXT,
    PUBLISHED,
    AsWords,
    Positions,
    in_words,
)

JOURNAL_BYTES: Final = 64 << 10

_START: Final = 0
_END: Final = 1
_COUNT: Final = 2
_PAIRS: Final = 3

#: One append of another process has messages for so many queues at most.
MAX_QUEUES: Final = (JOURNAL_BYTES // 8 - _PAIRS) // 2

#: So many zeros are written at once.
_AT_ONCE: Final = 1 << 20


@final
class AppendJournal:
    """The journal of reserved appends, shared by processes.

    @ivar view: its words.
    """

    def __init__(
        self, file: IFile, positions: Positions, as_words: AsWords = in_words
    ) -> None:
        """
        @param file: that of the append lock.
        @param as_words: shows its mapping as words.
        @raise OSError: it cannot be mapped.
        """
        self._map = file.map(JOURNAL_BYTES, True)
        self.view = as_words(self._map)
        self._positions = positions

    def begin(self, slots: Collection[int], end: int) -> None:
        """Note an append, before anything of it is done.

        @param slots: of the queues that get messages, L{MAX_QUEUES} at most.
        @param end: no byte is written at this position or behind it.
        """
        assert len(slots) <= MAX_QUEUES, len(slots)
        view, words = self.view, self._positions.view
        view[_START] = words[PUBLISHED]
        view[_END] = end
        view[_COUNT] = len(slots)
        at = _PAIRS
        for slot in slots:
            view[at] = slot
            view[at + 1] = words[slot + NEXT]
            at += 2

    def mend(self, segments: Segments) -> bool:
        """Undo the append that is marked, unless all of it was done; under the lock.

        If the disk refuses the zeros, later appends overwrite what is there, or a
        recovery reports it.

        @return: whether there was anything to undo.
        """
        view, words = self.view, self._positions.view
        start, end, count = view[_START], view[_END], view[_COUNT]
        undone = bool(words[PUBLISHED] == start)
        if undone:
            for at in range(_PAIRS, _PAIRS + 2 * count, 2):
                words[view[at] + NEXT] = view[at + 1]
            with contextlib.suppress(OSError):
                _clear(segments, start, end)
        words[APPENDING] = 0
        return undone


def _clear(segments: Segments, start: int, end: int) -> None:
    """Put zeros into a part of one segment."""
    segment = segments.find(start)
    if segment is None:
        return
    for position in range(start, min(end, segment.end), _AT_ONCE):
        size = min(_AT_ONCE, min(end, segment.end) - position)
        segment.file.pwrite(bytes(size), position - segment.start)
