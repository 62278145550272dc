# -*- test-case-name: tests.store -*-
"""The commit log as bytes, for replication: what a master sends, and a slave stores.

C{docs/facts/ha.md} 2 to 4.
"""

from __future__ import annotations

from zope.interface import Attribute, Interface


class IRawLog(Interface):
    """The log of an open store as bytes, C{IStore.raw_log}."""

    master_flushed: int = Attribute(
        "Of a slave: where its master's log ended when the master started, as far as "
        "it was told. It is kept beside the log, and nothing depends on it."
    )

    def append(position: int, data: bytes) -> int:
        """I{Blocking where the disk is slow.} Append records that a master has stored,
        as they are, at the same positions, and publish them.

        Only whole records are taken, a filler with all bytes up to the end of its
        segment as one. An empty store takes any start of a segment as its first.

        @param position: where the first byte belongs: the published position.
        @param data: bytes of the log, beginning with a record; the last may be cut off.
        @return: how many of them were taken.
        @raise StoreError: they do not belong there, or make no sense; one sentence.
            Nothing is published of what makes no sense.
        @raise ServiceNotAvailable: the disk does not take them now.
        """

    def read(position: int, max_bytes: int) -> bytes:
        """I{Blocking if cold.} Published bytes of one segment, from C{position} on.

        @return: empty if there are none: the end is reached, or they are removed.
        @raise OSError: the disk cannot be read.
        """

    def is_cold(position: int) -> bool:
        """Whether L{read} may wait for the disk there, so that it needs a thread."""

    def truncate(position: int) -> None:
        """I{Blocking.} Discard the log from C{position} on, and what queues and index
        have of it. A crash on the way leaves all of it done, or none.

        Nobody should read meanwhile, and readers of the log's tail begin anew.

        @param position: where a record begins, or the log ends.
        @raise StoreError: no record begins there, or the log has it no more.
        @raise ServiceNotAvailable: the store is closed.
        @raise OSError: the disk refused. Nothing can be appended until the same is
            called again, and succeeds; or the next start finishes it.
        """
