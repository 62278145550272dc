# -*- test-case-name: tests.client.test_broadcast -*-
"""Offsets of consumers that broadcast: in a file, as Java's clients keep them.

The file stands in a folder of the client id and the group, so a Java client with the
same id goes on where ours was. C{docs/facts/client.md} 18.1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, final

import attrs

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.queues import MessageQueue as QueueBody
from rocketbroker.wire.fields import Fields

#: The client's instance name, unless another is given: the folder is to be the same
#: after the next start.
INSTANCE_NAME: Final = "DEFAULT"

_log: Final = logging.getLogger("rocketbroker.client")


@attrs.frozen
class OffsetFolder:
    """Where files with offsets are.

    @ivar files: the disk.
    @ivar path: of the folder.
    """

    files: IFiles
    path: str

    def of_group(self, client_id: str, group: str, folder: str | None) -> FileOffsets:
        """The offsets of one group.

        @param folder: instead of this one.
        """
        path = f"{folder or self.path}/{client_id}/{group}/offsets.json"
        return FileOffsets(self.files, path)


@final
class FileOffsets:
    """The offsets of one group on this machine."""

    def __init__(self, files: IFiles, path: str) -> None:
        self._file = JsonFile(files, path)
        self._path = path

    async def read(self, queue: MessageQueue) -> int | None:
        """See L{rocketbroker.client.offsets.OffsetStore}."""
        return self._load().get(queue)

    async def write(self, offsets: Mapping[MessageQueue, int], wait: bool) -> None:
        """See L{rocketbroker.client.offsets.OffsetStore}."""
        table = {**self._load(), **offsets}
        written = {QueueBody(*queue): offset for queue, offset in table.items()}
        try:
            self._file.save(fastjson.dumps({"offsetTable": written}))
        except OSError as problem:
            _log.error("Offsets cannot be kept in %s: %s", self._path, problem)

    def _load(self) -> dict[MessageQueue, int]:
        try:
            content = self._file.load(_parsed)
        except (OSError, ValueError) as problem:
            _log.error("Offsets cannot be read from %s: %s", self._path, problem)
            return {}
        return _parsed(content) if content else {}


def _parsed(content: bytes) -> dict[MessageQueue, int]:
    """The offsets in a file.

    @raise ValueError: it makes no sense.
    """
    found: dict[MessageQueue, int] = {}
    try:
        fields = Fields(fastjson.loads(content), "a table of offsets")
        for key, offset in fields.members("offsetTable").items():
            queue = QueueBody.from_json(key)
            if isinstance(offset, int):
                name = MessageQueue(queue.topic, queue.broker_name, queue.queue_id)
                found[name] = offset
    except RemoteProtocolError as problem:
        raise ValueError(str(problem)) from None
    return found
