# -*- test-case-name: tests.files.test_jsonfile -*-
"""A small file that is replaced whole, the previous version kept as C{.bak}.

RocketMQ overwrites such files in place and keeps the old content in C{.bak}; a crash
leaves half a file there. Here the new content goes to C{.tmp} first and is synced; then
the old file is renamed to C{.bak} and the new one to its place, and the directory is
synced. At whichever step a crash comes, a complete version is in the file or, when the
file is missing, in C{.bak}, where RocketMQ looks too (C{docs/facts/store.md} 1, 21).

A file that makes no sense, or that the disk cannot read, is never overwritten: saving
keeps it aside as C{.damaged}, because a person may still find the missing values in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, final

from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles

#: What is appended to the name of a damaged file; then a number if there is one.
DAMAGED: Final = ".damaged"


@final
class JsonFile:
    """One such file. It knows bytes; their meaning is the caller's.

    @ivar fallbacks: how often L{load} had to take C{.bak}.
    @ivar damaged: the files that L{load} found damaged; L{save} keeps them aside.
    """

    def __init__(self, files: IFiles, path: str, is_secret: bool = False) -> None:
        """
        @param is_secret: nobody else may read it.
        """
        self._is_secret = is_secret
        self._files = files
        self._path = path
        self._current_is_bad = False
        self.fallbacks = 0
        self.damaged: list[str] = []

    def load(self, check: Callable[[bytes], object] | None = None) -> bytes | None:
        """The content; that of C{.bak} if the file is missing, empty or unreadable.

        @param check: given the content, raises C{ValueError} if it makes no sense; then
            C{.bak} is tried.
        @return: C{None} if there is neither, or both are empty.
        @raise ValueError: C{check}'s, about C{.bak}, or about the file if there is no
            C{.bak}.
        @raise OSError: the disk refused C{.bak}, or the file if there is no C{.bak}.
        """
        self.damaged = []
        wrong: OSError | ValueError | None = None
        try:
            content = self._read(self._path, check)
            if content:
                return content
        except (OSError, ValueError) as error:
            wrong = error
        self._current_is_bad = True
        content = self._read(self._path + ".bak", check)
        if content:
            self.fallbacks += 1
            return content
        if wrong is not None:
            raise wrong
        return None

    def save(self, content: bytes) -> None:
        """Replace the content, so that a crash leaves the old or the new one.

        @raise OSError: the disk refused; the old content stands.
        """
        files = self._files
        folder = os.path.dirname(self._path)
        temporary = self._path + ".tmp"
        make_lasting(files, folder)
        file = files.open(temporary, create=True)
        try:
            if self._is_secret:
                files.restrict(temporary)
            file.truncate(0)
            file.pwrite(content, 0)
            file.datasync()
        finally:
            file.close()
        for path in self.damaged:
            self._keep_aside(path)
        # An empty file must not take the place of the good version in .bak.
        if not self._current_is_bad and files.exists(self._path):
            files.rename(self._path, self._path + ".bak")
        files.rename(temporary, self._path)
        files.sync_dir(folder)
        self._current_is_bad = False
        self.damaged = []

    def _read(self, path: str, check: Callable[[bytes], object] | None) -> bytes:
        """The content of a file; empty if it is missing."""
        try:
            content = self._files.read(path)
            if content and check is not None:
                check(content)
        except FileNotFoundError:
            return b""
        except (OSError, ValueError):
            self.damaged.append(path)
            raise
        return content

    def _keep_aside(self, path: str) -> None:
        files = self._files
        if not files.exists(path):
            return
        aside = path + DAMAGED
        number = 1
        while files.exists(aside):
            number += 1
            aside = f"{path}{DAMAGED}.{number}"
        files.rename(path, aside)
