# -*- test-case-name: tests.files.test_settings_file -*-
"""The file of settings that a person wrote, and that a request changes.

Other than L{rocketbroker.files.jsonfile}, which serves files that only the server
writes: the file is read again for each change, so that what was edited by hand since
the start stays; its name leads to a complete version at each moment, so that a start
finds it after a crash; and it keeps its permissions, as it may hold secrets.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, final

from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles

#: Name server and broker of one process may have one file, and threads of their own.
_EDITING: Final = threading.Lock()


@final
class SettingsFile:
    """One such file. It knows bytes; their meaning is the caller's.

    @ivar path: where it is.
    """

    def __init__(self, files: IFiles, path: str, is_secret: bool = False) -> None:
        """
        @param path: absolute, and no symbolic link: its place would be taken.
        @param is_secret: nobody else may read it if it is made here.
        """
        self._is_secret = is_secret
        self.path = path
        self._files = files

    def edit(self, change: Callable[[bytes], bytes]) -> None:
        """I{Blocking.} Replace the content; the one before stands in C{.bak}.

        @param change: makes the new content from the one that is there, which is empty
            if there is no file.
        @raise OSError: the disk refused; the old content stands.
        """
        files, path = self._files, self.path
        with _EDITING:
            there = files.exists(path)
            old = files.read(path) if there else b""
            new = change(old)
            folder = os.path.dirname(path)
            make_lasting(files, folder)
            if there:
                self._put(path + ".bak", old, there)
            self._put(path, new, there)
            files.sync_dir(folder)

    def _put(self, path: str, content: bytes, there: bool) -> None:
        """Put C{content} in the place of a file, whole.

        @param there: whether there is a file whose permissions it gets.
        """
        files = self._files
        temporary = self.path + ".tmp"
        file = files.open(temporary, create=True)
        try:
            file.truncate(0)
            if there:
                files.copy_mode(self.path, temporary)
            elif self._is_secret:
                files.restrict(temporary)
            file.pwrite(content, 0)
            file.datasync()
        finally:
            file.close()
        files.rename(temporary, path)
