# -*- test-case-name: tests.replication.test_join -*-
"""Joining: whether a slave's log is one that the master's has grown from.

The protocol has no way to ask whether two logs agree, and a slave of RocketMQ does not:
it sends its end, and appends whatever follows. So a master that comes back as a slave,
with messages that nobody else has, would put the new master's records behind them.

A slave of this module asks for less than it lacks: from up to C{JOIN_BYTES} before its
end. What the master sends for these must be what the log has, byte for byte, before
anything is appended; a record says when it was stored and on which broker, so two that
are equal are one, and so is all before them. If the master has not so much, its
heartbeats tell where its log ends. Any master understands that: it was only asked for
bytes. What does not agree is a C{problem}, which an operator has to decide; so that he
is told where the logs part, the next attempts ask for more, if that is before.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from rocketbroker.records.record_head import MAGIC_V1, MAGIC_V2, offset_of
from rocketbroker.replication.interfaces import ReplicatedStore

#: How much of the end of the log is compared with the master's: as much as a frame
#: brings. One record would do, but nobody can tell where the last one begins.
JOIN_BYTES: Final = 32 << 10

#: Where the logs part before that, each attempt asks for so many times as much; up to
#: this, which is kept in memory, and not beyond the start of a segment.
JOIN_GROWTH: Final = 16
MAX_JOIN_BYTES: Final = 8 << 20

#: A heartbeat may have been sent before the report was read; one of so many seconds
#: later was not.
QUIET_SECONDS: Final = 1.0

_MAGIC: Final = Struct(
    ">i"  # kind of the record
)
_MAGICS: Final = [_MAGIC.pack(magic) for magic in (MAGIC_V1, MAGIC_V2)]
_MAGIC_AT: Final = offset_of("magic")
_POSITION_AT: Final = offset_of("position")


class Apart(Exception):
    """The log of the master and this one do not agree; a sentence.

    @ivar is_before: whether they part before the bytes that were asked for.
    """

    def __init__(self, words: str, is_before: bool) -> None:
        super().__init__(words)
        self.is_before = is_before


@final
class Join:
    """The end of the log, as far as the master has not sent the same yet.

    @ivar begin: where the master was asked to begin.
    @ivar end: the end of the log.
    """

    __slots__ = ("_at", "_known", "begin", "end", "quiet_since")

    def __init__(
        self, store: ReplicatedStore, segment_bytes: int, join_bytes: int
    ) -> None:
        """
        @param join_bytes: how much to ask for, at most.
        @raise OSError: the log cannot be read.
        """
        end = store.published_position
        first = (end - 1) // segment_bytes * segment_bytes
        # A report of 0 would mean that there is no log at all.
        begin = max(end - join_bytes, first, store.min_position, 1)
        self.end = end
        self.begin = min(begin, end)
        self._known = b""
        if self.begin < end:
            # The start has just read the end of the log: no thread is needed.
            self._known = store.raw_log.read(self.begin, end - self.begin)
        self._at = 0
        self.quiet_since: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the master has sent all of it."""
        return self._at == len(self._known)

    def take(self, log: bytes) -> bytes:
        """Compare what the master sends.

        @return: what is behind the end.
        @raise Apart: it differs.
        """
        self.quiet_since = None
        size = min(len(log), len(self._known) - self._at)
        own = self._known[self._at : self._at + size]
        if own != log[:size]:
            differs = self._at + next(n for n in range(size) if own[n] != log[n])
            start = start_of_record(self._known, self.begin, differs)
            where = f"at {self.begin} already"
            if start is not None:
                where = f"from the message at {start} on"
            raise Apart(
                f"the logs differ {where}, and this broker's ends at {self.end}",
                start is None,
            )
        self._at += size
        return log[size:]

    def heartbeat(self, now: float) -> None:
        """The master has no more of it.

        @raise Apart: and will not have.
        """
        if self.quiet_since is None:
            self.quiet_since = now
        elif now - self.quiet_since >= QUIET_SECONDS:
            ends = self.begin + self._at
            if not self._at:
                raise Apart(
                    f"the master has nothing at {ends}, and this broker's log ends at "
                    f"{self.end}",
                    True,
                )
            raise Apart(
                f"the master's log ends at {ends}, and this broker's at {self.end}",
                False,
            )


def start_of_record(log: bytes, begin: int, at: int) -> int | None:
    """Where the record begins that C{log} has at an index.

    @param log: whole records, of which the first may lack its beginning.
    @param begin: the position of the first byte.
    @return: None if that record lacks its beginning.
    """
    end = at + _MAGIC_AT + _MAGIC.size
    while True:
        found = max(log.rfind(magic, 0, end) for magic in _MAGICS)
        start = found - _MAGIC_AT
        if start < 0:
            return None
        # Bytes like these may stand in a message; a record knows its position.
        at_position = start + _POSITION_AT
        if log[at_position : at_position + 8] == (begin + start).to_bytes(8):
            return begin + start
        end = found + _MAGIC.size - 1


def wider(join_bytes: int) -> int:
    """How much to ask for next, where the logs part before that much."""
    return min(join_bytes * JOIN_GROWTH, MAX_JOIN_BYTES)
