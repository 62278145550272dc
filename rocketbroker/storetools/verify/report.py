# -*- test-case-name: tests.storetools.verify.test_log -*-
"""Faults and remarks: the findings of a check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final


@final
class Fault:
    """A fault in a store.

    @ivar kind: C{body}, C{record}, C{crc} (of a whole record), C{entry} (of a queue, or
        a unit of a batch queue), C{extension}, C{order}, C{missing}, C{file}, C{index},
        C{unreadable} (the disk refuses to read it).
    @ivar where: the file.
    @ivar position: of the first byte concerned, in the log, the queue or its extension,
        over all files of these; of C{index} in the file.
    @ivar text: the fault in words.
    @ivar region: of C{body} and C{record}, and of a file of the log that ends early:
        from where to where the log holds no good record; of others (0, 0).
    @ivar queue: of C{entry}, C{extension}, C{order} and C{missing}, and of files of a
        queue: topic and queue id.
    @ivar offsets: of C{entry}: its number and the one behind, but of batch queues; of
        C{order}: the first offset that has no record, and the one behind the last; of
        C{crc}: from where to where the record goes.
    """

    __slots__ = ("kind", "offsets", "position", "queue", "region", "text", "where")

    def __init__(
        self,
        kind: str,
        where: str,
        position: int,
        text: str,
        region: tuple[int, int] = (0, 0),
        queue: tuple[str, int] | None = None,
        offsets: tuple[int, int] = (0, 0),
    ) -> None:
        self.kind = kind
        self.where = where
        self.position = position
        self.text = text
        self.region = region
        self.queue = queue
        self.offsets = offsets


@final
class Remark:
    """A finding that may be right or wrong, and it cannot be known which.

    @ivar where: the file.
    @ivar position: in the log, over all its files.
    @ivar text: the finding in words.
    """

    __slots__ = ("position", "text", "where")

    def __init__(self, where: str, position: int, text: str) -> None:
        self.where = where
        self.position = position
        self.text = text


#: Is given each fault when it is found.
Report: TypeAlias = Callable[[Fault], None]
