# -*- test-case-name: tests.replication.test_join -*-
"""The check of a joining slave: whether its log is one that the master's has grown
from.

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

#: Where the logs part before that, each attempt asks for so many times as much.
JOIN_GROWTH: Final = 16

#: How far back the beginning of a record is looked for.
MAX_RECORD_BYTES: Final = 8 << 20

#: A heartbeat may have been sent before the report was read; one of so many seconds
#: later was not.
QUIET_SECONDS: Final = 1.0

_MAGIC: Final = Struct(
    ">i"  # kind of the record
)
_MAGICS: Final = [_MAGIC.pack(magic) for magic in (MAGIC_V1, MAGIC_V2)]
_MAGIC_AT: Final = offset_of("magic")
_POSITION_AT: Final = offset_of("position")
_HEAD_BYTES: Final = _POSITION_AT + 8


class Apart(Exception):
    """The log of the master and this one do not agree; a sentence.

    @ivar is_before: whether they part before the bytes that were asked for.
    @ivar differs: whether the master has such bytes, and others.
    """

    def __init__(self, words: str, is_before: bool, differs: bool) -> None:
        super().__init__(words)
        self.is_before = is_before
        self.differs = differs


@final
class Join:
    """The end of the log, as far as the master has not sent the same yet.

    @ivar begin: where the master was asked to begin.
    @ivar end: the end of the log.
    """

    __slots__ = ("_at", "_log", "begin", "end", "quiet_since")

    def __init__(
        self,
        store: ReplicatedStore,
        segment_bytes: int,
        join_bytes: int,
        has_earlier: bool,
    ) -> None:
        """
        @param join_bytes: how much to ask for, at most.
        @param has_earlier: whether the master is known to have more than the segment in
            which this log ends. One that has not is not asked for more: it may have
            removed the others.
        """
        self._log = store.raw_log
        self.end = end = store.published_position
        first = 0 if has_earlier else (end - 1) // segment_bytes * segment_bytes
        # A report of 0 would mean that there is no log at all.
        begin = max(end - join_bytes, first, store.min_position, 1)
        self._at = self.begin = min(begin, end)
        self.quiet_since: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the master has sent all of it."""
        return self._at == self.end

    def take(self, log: bytes) -> bytes:
        """Compare what the master sends.

        @return: what is behind the end.
        @raise Apart: it differs.
        @raise OSError: this log cannot be read.
        """
        self.quiet_since = None
        size = min(len(log), self.end - self._at)
        own = self._own(size)
        if own != log[:size]:
            self._differs(
                next(n for n in range(size) if own[n : n + 1] != log[n : n + 1])
            )
        self._at += size
        return log[size:]

    def _own(self, size: int) -> bytes:
        """The bytes of this log that are to be compared next. It is the end, which the
        start has read, or an operator waits for what is found: no thread is needed."""
        own = b""
        while len(own) < size:
            piece = self._log.read(self._at + len(own), size - len(own))
            if not piece:
                break
            own += piece
        return own

    def _differs(self, after: int) -> None:
        """So many bytes more are equal, and the next is not."""
        at = self._at + after
        first = max(self.begin, at - MAX_RECORD_BYTES)
        log = b""
        while first + len(log) <= at + _HEAD_BYTES:
            piece = self._log.read(first + len(log), at + _HEAD_BYTES + 1 - first)
            if not piece:
                break
            log += piece
        start = start_of_record(log, first, at - first)
        before = None
        if start is not None:
            before = start_of_record(log, first, start - 1 - first)
        # A whole message before it is the same, or there may be others before.
        where = f"from the message at {start} on"
        if before is None:
            where = f"at {self.begin} already"
        raise Apart(
            f"the logs differ {where}, and this broker's ends at {self.end}",
            before is None,
            True,
        )

    def heartbeat(self, now: float) -> None:
        """The master has no more of it.

        @raise Apart: and will not have.
        """
        if self.quiet_since is None:
            self.quiet_since = now
        elif now - self.quiet_since >= QUIET_SECONDS:
            ends = self._at
            if ends == self.begin:
                raise Apart(
                    f"the master has nothing at {ends}, and this broker's log ends at "
                    f"{self.end}",
                    True,
                    False,
                )
            raise Apart(
                f"the master's log ends at {ends}, and this broker's at {self.end}",
                False,
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
