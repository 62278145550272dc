# -*- test-case-name: tests.store.test_log_tail -*-
"""A dispatched record as followers see it, and the interface of the log's tail."""

from __future__ import annotations

from typing import final

from zope.interface import Attribute, Interface

from rocketbroker.records import properties


@final
class DispatchedRecord:
    """A record of the log that stands in its queue and on the disk.

    @ivar position: where it stands in the log.
    @ivar size: its bytes there.
    @ivar topic: the topic.
    @ivar queue_id: the number of the queue.
    @ivar queue_offset: its offset there; half messages stand in no queue and have 0.
    @ivar sys_flag: the system flag; bits 4 and 8 mark messages of transactions.
    @ivar tag_code: the hash of its tag, 0 without one.
    @ivar store_ms: when it was stored.
    @ivar properties_string: its properties as they stand in the log.
    """

    __slots__ = (
        "position",
        "properties_string",
        "queue_id",
        "queue_offset",
        "size",
        "store_ms",
        "sys_flag",
        "tag_code",
        "topic",
    )

    def __init__(
        self,
        position: int,
        size: int,
        topic: str,
        queue_id: int,
        queue_offset: int,
        sys_flag: int,
        tag_code: int,
        store_ms: int,
        properties_string: bytes,
    ) -> None:
        self.position = position
        self.size = size
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.sys_flag = sys_flag
        self.tag_code = tag_code
        self.store_ms = store_ms
        self.properties_string = properties_string

    @property
    def end(self) -> int:
        """The position behind it: where a follower goes on that has dealt with it."""
        return self.position + self.size

    @property
    def properties(self) -> dict[str, str]:
        """Its properties; parsed anew by each access."""
        return properties.parse(self.properties_string.decode("utf-8", "replace"))


class ILogTail(Interface):
    """The tail of the log: record by record, behind the dispatch; used by one thread at
    a time."""

    position: int = Attribute("The position behind the last record that was taken.")
    lost_bytes: int = Attribute("How many bytes were not there any more, or broken.")

    def take(max_records: int) -> list[DispatchedRecord]:
        """I{Blocking.} The next records that are dispatched and on the disk.

        @return: at most C{max_records}; none if there are no others yet.
        """
