# -*- test-case-name: tests.broker.metadata.test_queue_mappings -*-
"""The static topics of this broker: which logical queue is which queue of a broker.

A mapping in the table is never changed, it is replaced.

C{docs/facts/broker.md} 23, 26.2 (topicQueueMapping.json).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.topics import loaded_version
from rocketbroker.errors import RemoteProtocolError, SystemFailure
from rocketbroker.routing.static_topics import accepted
from rocketbroker.wire.bodies.mappings import (
    TopicQueueMappingDetail,
    TopicQueueMappingInfo,
)
from rocketbroker.wire.bodies.topics import DataVersion


@final
class QueueMappings:
    """The mappings of all static topics.

    @ivar details: by topic.
    @ivar version: moves with each change.
    """

    _log = Logger()

    def __init__(
        self, broker_name: str, file: JsonTable, wall_ms: Callable[[], int]
    ) -> None:
        self.details: dict[str, TopicQueueMappingDetail] = {}
        self.version = DataVersion(timestamp=wall_ms())
        self._broker_name = broker_name
        self._file = file
        self._wall_ms = wall_ms
        self._watchers: list[Callable[[], None]] = []

    def load(self) -> None:
        """I{Blocking.} Read the file; what makes no sense in it is left out."""
        value = self._file.load() or {}
        for topic, entry in _entries(value).items():
            try:
                detail = TopicQueueMappingDetail.from_json(entry)
            except RemoteProtocolError as error:
                self._log.warn(
                    "{path}: topic {topic}: {error}",
                    path=self._file.path,
                    topic=topic,
                    error=error,
                )
            else:
                self.details[detail.topic] = detail
        self.version = loaded_version(value, self.version)
        self._tell()

    def watch(self, changed: Callable[[], None]) -> None:
        """Call C{changed} after each change, and now."""
        self._watchers.append(changed)
        changed()

    def put(self, detail: TopicQueueMappingDetail, force: bool) -> None:
        """Take a mapping that an operator's tool sends.

        @param force: whatever is there.
        @raise SystemFailure: it may not be taken; RocketMQ's words.
        """
        if detail.bname != self._broker_name:
            raise SystemFailure(
                f"the mapping is for broker {detail.bname}, and this is "
                f"{self._broker_name}"
            )
        old = self.details.get(detail.topic)
        self.replace(accepted(old, detail, force))

    def replace(self, detail: TopicQueueMappingDetail) -> None:
        """Store a mapping as it is."""
        self.details[detail.topic] = detail
        self._changed()

    def delete(self, topic: str) -> None:
        """Forget a topic's mapping, if it has one."""
        if self.details.pop(topic, None) is not None:
            self._changed()

    def become(
        self, details: Iterable[TopicQueueMappingDetail], version: DataVersion
    ) -> None:
        """Be a copy of a master's table."""
        before = self.details, self.version
        self.details = {detail.topic: detail for detail in details}
        self.version = version
        if (self.details, self.version) != before:
            self._file.save_soon(self.to_json)
            self._tell()

    def infos(self, topics: Iterable[str]) -> dict[str, TopicQueueMappingInfo]:
        """What name servers are told of these topics; only static ones are in it."""
        details = self.details
        if not details:
            return {}
        return {topic: details[topic].info for topic in topics if topic in details}

    def _changed(self) -> None:
        self.version = self.version.next(self._wall_ms())
        self._file.save_soon(self.to_json)
        self._tell()

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()

    def details_json(self) -> dict[str, object]:
        """All mappings, for the file and for other servers; to be written."""
        return {topic: detail.written() for topic, detail in self.details.items()}

    def to_json(self) -> dict[str, object]:
        """The file."""
        return {
            "dataVersion": self.version.to_json(),
            "topicQueueMappingInfoMap": self.details_json(),
        }

    def save(self) -> Deferred[None]:
        """Write the file in a thread if the last write of it failed."""
        if not self._file.failed:
            return succeed(None)
        return self._file.save_soon(self.to_json)

    def saved(self) -> Deferred[None]:
        """Fires when all changes so far are in the file."""
        return self._file.idle()

    def kept(self) -> Deferred[None]:
        """The same, but fails if they cannot be written."""
        return self._file.kept()


def loaded_details(value: Mapping[Any, object]) -> list[TopicQueueMappingDetail]:
    """The mappings in a master's table of topics.

    @raise RemoteProtocolError: they make no sense.
    """
    table = value.get("topicQueueMappingDetailMap")
    entries = table.values() if isinstance(table, dict) else ()
    return [TopicQueueMappingDetail.from_json(entry) for entry in entries]


def _entries(value: Mapping[Any, object]) -> Mapping[object, object]:
    table = value.get("topicQueueMappingInfoMap")
    return table if isinstance(table, dict) else {}
