# -*- test-case-name: tests.files.test_misplaced_files -*-
"""Something else in the place where a file or directory of ours belongs.

A directory that is called like a file, a file like a directory, a link that leads
nowhere: left there by a copy that went wrong, or by a hand. It is never removed, nor
looked into; it keeps its name with C{.aside} behind it.
"""

from __future__ import annotations

import os
from typing import Final

from rocketbroker.files.interfaces import IFiles

ASIDE: Final = ".aside"


def clear_for_file(files: IFiles, path: str) -> list[str]:
    """I{Blocking.} Let a file be opened or made at a path.

    @return: a sentence, if anything was in the way.
    @raise OSError: it cannot be moved.
    """
    if is_no_file(files, path):
        return [f"{path} is no file; it is now {_move(files, path)}."]
    return []


def clear_for_folder(files: IFiles, path: str, links: bool = True) -> list[str]:
    """I{Blocking.} Let a directory be made at a path.

    @param links: whether links that lead nowhere are in the way, too; they may lead to
        a disk that is not mounted.
    @return: a sentence, if anything was in the way.
    @raise OSError: it cannot be moved.
    """
    if files.is_dir(path):
        return []
    if files.exists(path) or (links and leads_nowhere(files, path)):
        return [f"{path} is no directory; it is now {_move(files, path)}."]
    return []


def is_no_file(files: IFiles, path: str) -> bool:
    """Whether something else is at a path; not if nothing is."""
    return files.is_dir(path) or leads_nowhere(files, path)


def leads_nowhere(files: IFiles, path: str) -> bool:
    """Whether a path is a link without a target."""
    folder, name = os.path.split(path)
    return not files.exists(path) and name in files.list(folder)


def _move(files: IFiles, path: str) -> str:
    """Give something a name beside its own."""
    folder = os.path.dirname(path)
    names = files.list(folder)
    kept = path + ASIDE
    number = 1
    while os.path.basename(kept) in names:
        kept = f"{path}{ASIDE}.{number}"
        number += 1
    files.rename(path, kept)
    files.sync_dir(folder)
    return kept
