# -*- test-case-name: tests.broker.metadata.test_message_request_mode -*-
"""The request mode of each group and topic: pull or pop.

A group for which no mode was set has the one of defaultMessageRequestMode; retry
topics are always pulled.

C{docs/facts/broker.md} 19, 26.2 (messageRequestMode.json).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, Self, final

import attrs
from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records.names import is_retry_topic
from rocketbroker.wire.fastjson import joined, member_text
from rocketbroker.wire.fields import Fields

PULL: Final = "PULL"
POP: Final = "POP"
MODES: Final = (PULL, POP)


@attrs.frozen(kw_only=True)
class RequestMode:
    """What one group does in one topic.

    @ivar pop_share_queue_num: with how many members behind it a member shares their
        queues; all of them if it is not above 0.
    """

    topic: str
    consumer_group: str
    mode: str = PULL
    pop_share_queue_num: int = 0

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a message request mode")
        return cls(
            topic=fields.text("topic") or "",
            consumer_group=fields.text("consumerGroup") or "",
            mode=fields.choice("mode", MODES) or PULL,
            pop_share_queue_num=fields.integer("popShareQueueNum"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "consumerGroup": self.consumer_group,
            "mode": self.mode,
            "popShareQueueNum": self.pop_share_queue_num,
            "topic": self.topic,
        }

    @cached_property
    def member(self) -> str:
        """It as a member of the modes of its topic; made once."""
        return member_text(self.consumer_group, self.to_json())


@final
class MessageRequestModes:
    """The table of request modes that were set."""

    def __init__(self, options: BrokerOptions, file: JsonTable) -> None:
        self._options = options
        self._file = file
        self._modes: dict[str, dict[str, RequestMode]] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def load(self) -> None:
        """I{Blocking.} Read the file; what makes no sense in it is left out."""
        for mode in loaded_modes(self._file.load() or {}):
            self._put(mode)

    def mode(self, topic: str, group: str) -> RequestMode:
        """How a group gets the messages of a topic."""
        found = self._modes.get(topic, {}).get(group)
        if found is not None:
            return found
        if is_retry_topic(topic):
            return RequestMode(topic=topic, consumer_group=group)
        options = self._options
        return RequestMode(
            topic=topic,
            consumer_group=group,
            mode=options.default_message_request_mode,
            pop_share_queue_num=options.default_pop_share_queue_num,
        )

    def _put(self, mode: RequestMode) -> None:
        self._modes.setdefault(mode.topic, {})[mode.consumer_group] = mode

    def put(self, mode: RequestMode) -> Deferred[None]:
        """Set one.

        @return: fires when it is in the file; fails with SystemFailure if it cannot be.
        """
        self._put(mode)
        self._file.save_soon(self.written)
        return self._file.kept()

    def become(self, modes: Iterable[RequestMode]) -> None:
        """Be a copy of a master's table."""
        before, self._modes = self._modes, {}
        for mode in modes:
            self._put(mode)
        if self._modes != before:
            self._file.save_soon(self.written)

    def to_json(self) -> dict[str, object]:
        """The file."""
        return self._with(
            lambda groups: {group: mode.to_json() for group, mode in groups.items()}
        )

    def written(self) -> dict[str, object]:
        """The same to be written, with the text that each mode keeps."""
        return self._with(
            lambda groups: joined([groups[group].member for group in sorted(groups)])
        )

    def _with(
        self, of_topic: Callable[[dict[str, RequestMode]], object]
    ) -> dict[str, object]:
        topics = self._modes.items()
        table = {topic: of_topic(groups) for topic, groups in topics}
        return {"messageRequestModeMap": table}

    def save(self) -> Deferred[None]:
        """Write the file in a thread if the last write of it failed."""
        if not self._file.failed:
            return succeed(None)
        return self._file.save_soon(self.written)

    def saved(self) -> Deferred[None]:
        """Fires when all changes so far are in the file."""
        return self._file.idle()


def loaded_modes(value: Mapping[Any, object]) -> list[RequestMode]:
    """The modes that a file holds; what makes no sense is left out."""
    topics = value.get("messageRequestModeMap")
    found: list[RequestMode] = []
    for groups in topics.values() if isinstance(topics, dict) else ():
        for entry in groups.values() if isinstance(groups, dict) else ():
            with suppress(RemoteProtocolError):
                found.append(RequestMode.from_json(entry))
    return found
