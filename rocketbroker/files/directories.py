# -*- test-case-name: tests.files.test_directories -*-
"""Directories that are still there after a crash."""

from __future__ import annotations

import os

from rocketbroker.files.interfaces import IFiles


def make_lasting(files: IFiles, path: str) -> None:
    """I{Blocking.} Make a directory and those above, their names safe on the disk.

    @param path: a relative one begins in the working directory.
    @raise OSError: it cannot be made.
    """
    missing = []
    above = path = os.path.abspath(path)
    while not files.exists(above):
        missing.append(above)
        above = os.path.dirname(above)
    files.make_dirs(path)
    for made in reversed(missing):
        files.sync_dir(os.path.dirname(made))
