# -*- test-case-name: tests.store.test_queues -*-
"""All consume queues of a store, by topic and number.

A handle is made when somebody asks for it; files come with the first entry.
"""

from __future__ import annotations

import os
from typing import final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import SIZE
from rocketbroker.store.consumequeue import Queue, is_usable
from rocketbroker.store.queuefiles import QueueFiles
from rocketbroker.store.words import Words

FOLDER = "consumequeue"


@final
class QueueTable:
    """The handles."""

    def __init__(
        self,
        files: IFiles,
        root: str,
        file_size: int,
        words: Words,
        store_host_v6: bool,
        allow_v2: bool,
    ) -> None:
        """
        @param file_size: rounded up to whole entries.
        """
        self._files = files
        self._folder = os.path.join(root, FOLDER)
        self._file_size = -(-file_size // SIZE) * SIZE
        self._words = words
        self._store_host_v6 = store_host_v6
        self._allow_v2 = allow_v2
        self._queues: dict[tuple[str, int], Queue] = {}

    def get(self, topic: str, queue_id: int) -> Queue:
        """The handle of a queue.

        @raise OSError: there is no room for the numbers of another queue.
        """
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            # A topic that cannot be stored has no directory, whatever it is called.
            name = topic if is_usable(topic) else "unusable"
            folder = os.path.join(self._folder, name, str(queue_id))
            queue = self._queues[topic, queue_id] = Queue(
                topic,
                queue_id,
                self._words,
                QueueFiles(self._files, folder, self._file_size),
                self._store_host_v6,
                self._allow_v2,
            )
        return queue

    def get_by_bytes(self, topic: bytes, queue_id: int) -> Queue | None:
        """The handle of the queue that a record names; None if it cannot be one."""
        try:
            text = topic.decode()
        except UnicodeDecodeError:
            return None
        if not is_usable(text) or queue_id < 0:
            return None
        return self.get(text, queue_id)

    def all(self) -> list[Queue]:
        """All handles."""
        return list(self._queues.values())

    def load(self) -> list[str]:
        """Make a handle for each queue that has a directory, and open its files.

        @return: sentences about what was not right.
        """
        said = []
        for topic in self._files.list(self._folder):
            folder = os.path.join(self._folder, topic)
            if not self._files.is_dir(folder) or not is_usable(topic):
                said.append(f"{folder!r} is not a topic's directory; it is ignored.")
                continue
            for name in self._files.list(folder):
                path = os.path.join(folder, name)
                number = name.isascii() and name.isdigit() and int(name) < 1 << 31
                if not number or str(int(name)) != name or not self._files.is_dir(path):
                    said.append(f"{path} is not a queue's directory; it is ignored.")
                    continue
                said += self.get(topic, int(name)).files.load()
        return said

    def of_topic(self, topic: str) -> list[Queue]:
        """All handles of a topic."""
        return [queue for queue in self.all() if queue.topic == topic]

    def remove_folder(self, topic: str) -> None:
        """Remove the directories of a topic whose queues have no files any more."""
        folder = os.path.join(self._folder, topic)
        if not is_usable(topic) or not self._files.is_dir(folder):
            return
        for name in self._files.list(folder):
            path = os.path.join(folder, name)
            if self._files.is_dir(path) and not self._files.list(path):
                self._files.remove_dir(path)
        if not self._files.list(folder):
            self._files.remove_dir(folder)
        self._files.sync_dir(self._folder)

    def close(self) -> None:
        """Close all files."""
        for queue in self.all():
            queue.close()
