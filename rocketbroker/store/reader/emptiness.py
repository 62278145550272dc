# -*- test-case-name: tests.store.reader.test_emptiness -*-
"""A directory without a file of the log: what it is.

RocketMQ's broker makes the first file of its log when the first message comes. Until
then its store has a C{checkpoint} and an empty directory for the log, whether it runs,
was stopped or was killed; both are there before it takes requests. That is a store, and
it is empty. (Ours always has a file of the log.)

The last file of a log is never removed by age, and a queue gets its first file after
the log. So if queues have files, the log is lost, or it is elsewhere; and the next
start of any broker removes these queues.

The store sheet, sections 15.1 and 15.5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.commitlog.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.file_names import position_of_name


def without_log(files: IFiles, root: str, folders: Sequence[str]) -> str:
    """Look at a directory in which no file of a log was found.

    Beside a broker of RocketMQ's the first may have come since: who finds something
    lost looks for the log once more.

    @param folders: the directories where the log should be.
    @return: what is lost, in a sentence; empty if it is a store without messages.
    @raise StoreError: it is no store; one sentence.
    """
    places = " or ".join(folders)
    queue = next(_queues_with_files(files, root), "")
    if queue:
        return (
            f"The log is lost, or elsewhere (--commit-log): {places} has no file of "
            f"it, and queues have files, as {queue} has; the start of a broker removes "
            "them."
        )
    if files.exists(os.path.join(root, CHECKPOINT)) and any(map(files.is_dir, folders)):
        return ""
    raise StoreError(f"There is no store in {root}: no file of a log in {places}.")


def _queues_with_files(files: IFiles, root: str) -> Iterator[str]:
    """The names of all queues that have a file."""
    for kind in ("consumequeue", BATCHES):
        for topic in files.list(os.path.join(root, kind)):
            for queue_id in files.list(os.path.join(root, kind, topic)):
                for name in files.list(os.path.join(root, kind, topic, queue_id)):
                    if position_of_name(name) >= 0:
                        yield f"{topic}/{queue_id}"
