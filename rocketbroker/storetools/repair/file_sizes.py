# -*- test-case-name: tests.storetools.repair.test_run -*-
"""The settings that fit the files of a store, so that it can be opened without its
broker's."""

from __future__ import annotations

import os

import attrs

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.extension import FOLDER as EXTENSIONS
from rocketbroker.store.consumequeue.table import FOLDER as QUEUES
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.lookup import file_size_in, queues_in
from rocketbroker.storetools.verify.queues import SHARED_PREFIX


def fitted(reader: StoreReader, options: StoreOptions, log_size: int) -> StoreOptions:
    """The settings with the sizes that the files have.

    @param log_size: that of the log's files.
    """
    files, root = reader.files, reader.root
    # Queues that are there are made again, whether the settings were given or not.
    has_lmqs = any(topic.startswith(SHARED_PREFIX) for topic in reader.topics())
    has_extensions = bool(queues_in(files, os.path.join(root, EXTENSIONS)))

    def size_in(folder: str, setting: int, unit: int) -> int:
        return file_size_in(files, os.path.join(root, folder), setting, unit)

    return attrs.evolve(
        options,
        enable_lmq=options.enable_lmq or has_lmqs,
        enable_multi_dispatch=options.enable_multi_dispatch or has_lmqs,
        enable_consume_queue_ext=options.enable_consume_queue_ext or has_extensions,
        mapped_file_size_consume_queue_ext=size_in(
            EXTENSIONS, options.mapped_file_size_consume_queue_ext, 1
        ),
        mapper_file_size_batch_consume_queue=size_in(
            BATCHES, options.mapper_file_size_batch_consume_queue, BATCH_SIZE
        ),
        mapped_file_size_commit_log=log_size,
        mapped_file_size_consume_queue=size_in(
            QUEUES, options.mapped_file_size_consume_queue, SIZE
        ),
    )


def batch_topics(files: IFiles, root: str) -> set[str]:
    """The topics that have batch queues."""
    return {topic for topic, _ in queues_in(files, os.path.join(root, BATCHES))}
