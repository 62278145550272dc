# -*- test-case-name: tests.store.commitlog.test_loading -*-
"""Files that are taken out of a store, and kept."""

from __future__ import annotations

import os
from typing import Final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.file_names import beside

GIVEN_UP: Final = "given-up"


def set_aside(files: IFiles, path: str, folder: str = "") -> str:
    """I{Blocking.} Take a segment out of the log, or a file out of its queue, and keep
    it.

    @param folder: where; by default beside the directory that it is in.
    @return: where it is.
    @raise OSError: it cannot be kept there.
    """
    folder = folder or beside(os.path.dirname(path), GIVEN_UP)
    files.make_dirs(folder)
    name = kept = os.path.join(folder, os.path.basename(path))
    number = 1
    while files.exists(kept):
        kept = f"{name}.{number}"
        number += 1
    files.rename(path, kept)
    files.sync_dir(folder)
    return kept


def kept_beside(path: str) -> str:
    """The directory where a file of a queue is kept: beside that of all queues."""
    folder, number = os.path.split(os.path.dirname(path))
    parent, topic = os.path.split(folder)
    return os.path.join(beside(parent, GIVEN_UP), topic, number)
