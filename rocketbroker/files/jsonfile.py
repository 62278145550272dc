# -*- test-case-name: tests.files.test_jsonfile -*-
"""A small file that is replaced whole, the previous version kept as C{.bak}.

The reference overwrites such files in place and keeps the old content in C{.bak}; a
crash leaves half a file there. Here the new content goes to C{.tmp} first and is
synced; then the old file is renamed to C{.bak} and the new one to its place, and the
directory is synced. Whatever step a crash falls into, a complete version is in the file
or, when the file is missing, in C{.bak}, where the reference looks too.

The store sheet, sections 1 and 21.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, final

from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles

#: What a file is called that the disk could not read.
UNREAD: Final = ".unread"


@final
class JsonFile:
    """One such file. It knows bytes; what they mean is the caller's.

    @ivar fallbacks: how often L{load} had to take C{.bak}.
    """

    def __init__(self, files: IFiles, path: str) -> None:
        self._files = files
        self._path = path
        self._current_is_bad = False
        self._is_refused = False
        self.fallbacks = 0

    def load(self, check: Callable[[bytes], object] | None = None) -> bytes | None:
        """The content; that of C{.bak} if the file is missing, empty or unreadable.

        @param check: given the content, raises L{ValueError} if it makes no sense; then
            C{.bak} is tried.
        @return: L{None} if there is neither, or both are empty.
        @raise ValueError: C{check}'s, about C{.bak}, or about the file if there is no
            C{.bak}.
        @raise OSError: the disk refused C{.bak}, or the file if there is no C{.bak}.
        """
        wrong: OSError | ValueError | None = None
        try:
            content = self._read(self._path)
            if content:
                if check is not None:
                    check(content)
                return content
        except (OSError, ValueError) as error:
            wrong = error
            self._is_refused = isinstance(error, OSError)
        self._current_is_bad = True
        content = self._read(self._path + ".bak")
        if not content:
            if wrong is not None:
                raise wrong
            return None
        if check is not None:
            check(content)
        self.fallbacks += 1
        return content

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
            file.truncate(0)
            file.pwrite(content, 0)
            file.datasync()
        finally:
            file.close()
        if self._is_refused and files.exists(self._path):
            # The disk may read it another time.
            files.rename(self._path, self._path + UNREAD)
        # A bad file must not take the place of the good version in .bak.
        if not self._current_is_bad and files.exists(self._path):
            files.rename(self._path, self._path + ".bak")
        files.rename(temporary, self._path)
        files.sync_dir(folder)
        self._current_is_bad = self._is_refused = False

    def _read(self, path: str) -> bytes:
        try:
            return self._files.read(path)
        except FileNotFoundError:
            return b""
