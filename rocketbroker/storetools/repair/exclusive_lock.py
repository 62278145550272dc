# -*- test-case-name: tests.storetools.repair.test_exclusive_lock -*-
"""The locks of a repair, on a store's directory and on a log that lies elsewhere.

The C{lock} in the root says whether a broker uses the store. It says nothing of a log
that lies elsewhere: a copy of a broker's directory beside the log of that broker is not
in use, and its log is. So the C{lock} in the directory that holds the log is taken,
too: that is the root of its store, unless the settings name another. Then the system is
asked for processes that have files of the log, of queues or of the index open to write,
or mapped: such a process is a broker that keeps its root elsewhere, or as good as one.
"""

from __future__ import annotations

import os
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile, IFiles, IFileUsers
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.reader.log import without_log
from rocketbroker.store.store_lock import LOCK
from rocketbroker.storetools.repair.rebuild import FOLDERS


def log_folders(root: str, commit_log: str | None) -> list[str]:
    """The directories of a log.

    @param commit_log: those that were given, separated by commas; by default it is in
        the root.
    """
    folders = (commit_log or os.path.join(root, "commitlog")).split(",")
    return [folder.rstrip("/") for folder in folders if folder]


def log_files(files: IFiles, folders: list[str]) -> dict[int, list[str]]:
    """The files of a log, by the position that each is named after; a position has
    several where several directories have it."""
    found: dict[int, list[str]] = {}
    for folder in folders:
        for name in files.list(folder):
            if position_of_name(name) >= 0:
                path = os.path.join(folder, name)
                found.setdefault(position_of_name(name), []).append(path)
    return found


@final
class ExclusiveLock:
    """The locks of one repair."""

    def __init__(
        self, files: IFiles, users: IFileUsers, root: str, commit_log: str | None
    ) -> None:
        """
        @param users: the processes that use files now.
        @param root: without symbolic links, and so the directories of the log.
        """
        self._files = files
        self._users = users
        self._root = root
        self._folders = log_folders(root, commit_log)
        self._own: IFile | None = None
        self._others: list[IFile] = []

    def take(self, dry: bool) -> None:
        """Take all locks; of a directory that is no store none is made.

        @param dry: whether a lock that is not there is not made either.
        @raise StoreError: there is no store, its log is lost, or a broker uses it or
            its log.
        @raise OSError: a lock cannot be opened.
        """
        if not self._has_log():
            loss = without_log(self._files, self._root, self._folders)
            if loss and not self._has_log():
                raise StoreError(loss)
        try:
            own = os.path.join(self._root, LOCK)
            if not dry or self._files.exists(own):
                self._own = self._locked(own, self._root, not dry)
            for folder in sorted({os.path.dirname(each) for each in self._folders}):
                path = os.path.join(folder, LOCK)
                if path != own and self._files.exists(path):
                    self._others.append(self._locked(path, folder, False))
            self.look()
        except BaseException:
            self.release()
            raise

    def _has_log(self) -> bool:
        return bool(log_files(self._files, self._folders))

    def look(self) -> None:
        """I{Blocking.} Check that no process uses the files that a repair changes, with
        or without a lock.

        @raise StoreError: the process, and the file that it uses.
        """
        ours = [os.path.join(self._root, name) for name in FOLDERS]
        found = self._users.user_of(self._folders + ours)
        if found is not None:
            process, path = found
            raise StoreError(
                f"Process {process} uses {path}: it has it open to write, or mapped."
            )

    def _locked(self, path: str, folder: str, create: bool) -> IFile:
        file = self._files.open(path, create=create)
        if not file.lock():
            file.close()
            raise StoreError(f"The store {folder} is used by a broker.")
        return file

    def release_root(self) -> None:
        """Let a store be opened in the root; a log elsewhere stays locked."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def release(self) -> None:
        """Let others have everything."""
        self.release_root()
        for file in self._others:
            file.close()
        self._others.clear()
