# -*- test-case-name: tests.store.test_file_names -*-
"""The names of the files of log and queues, and of the directories beside the log's."""

from __future__ import annotations


def segment_name(position: int) -> str:
    """The name of the file that begins at a position."""
    return f"{position:020d}"


def position_of_name(name: str) -> int:
    """The position in a file's name; -1 if it is no name of a segment."""
    if len(name) == 20 and name.isascii() and name.isdigit():
        return int(name)
    return -1


def beside(folder: str, name: str) -> str:
    """The directory of that name that belongs to a log's."""
    return f"{folder}.{name}"
