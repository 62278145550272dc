# -*- test-case-name: tests.storetools.repair.test_run -*-
"""The steps of a repair, and copies of all that it changes.

The copies are in a directory C{repair-<time>} in the store's root::

    =============  =====================================================================
    changes.jsonl  a line for each change: path, position, length, and where in
                   before.bin the old bytes are; or where what was moved away is now;
                   or which bytes could not be read. A file that was made longer has a
                   line of length 0 at its old end; one that was not there, how long it
                   is now
    before.bin     the old bytes, one after the other
    the rest       what was moved away, under its old path
    =============  =====================================================================
"""

from __future__ import annotations

import json
import os
import time
from typing import Final, final

from rocketbroker.files.blocks import pieces
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFile, IFiles

#: So much is copied at once.
PIECE: Final = 4 << 20


@final
class Done:
    """A step that was done, or would be.

    @ivar kind: C{mended}: a record is whole again; C{emptied}: a message has lost its
        body; C{discarded}: bytes or messages that are lost; C{moved}: a directory
        is made again; C{changed}: a file; C{start}: a message of the start of the
        store; C{unrepaired}: a fault that is left.
    @ivar where: the file, or topic, queue and offset.
    @ivar position: of the first byte, in the log or the file.
    @ivar length: in bytes.
    @ivar text: in words.
    """

    __slots__ = ("kind", "length", "position", "text", "where")

    def __init__(
        self, kind: str, where: str, position: int, length: int, text: str
    ) -> None:
        self.kind = kind
        self.where = where
        self.position = position
        self.length = length
        self.text = text


@final
class Backup:
    """The directory with the copies."""

    def __init__(self, files: IFiles, root: str, wall_ms: int) -> None:
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(wall_ms // 1000))
        name = f"repair-{stamp}"
        number = 1
        while files.exists(os.path.join(root, name)):
            number += 1
            name = f"repair-{stamp}-{number}"
        self._files = files
        self._root = root
        self.folder = os.path.join(root, name)
        make_lasting(files, self.folder)
        self._list = files.open(os.path.join(self.folder, "changes.jsonl"), create=True)
        self._bytes = files.open(os.path.join(self.folder, "before.bin"), create=True)
        files.sync_dir(self.folder)
        self._listed = 0
        self._size = 0

    def keep(self, path: str, file: IFile, position: int, length: int) -> None:
        """Copy bytes that are about to change; lasting after L{sync}. Bytes that cannot
        be read are copied as zeros, and listed."""
        start = self._size
        end = min(position + length, file.size())
        for first in range(position, end, PIECE):
            for at, data, error in pieces(file, min(PIECE, end - first), first):
                self._bytes.pwrite(data, start + at - position)
                if error is not None:
                    self._note(
                        path=path, unreadable=at, length=len(data), why=error.strerror
                    )
        length = max(0, end - position)
        self._size += length
        self._note(path=path, position=position, length=length, at=start)

    def made(self, path: str, length: int) -> None:
        """Note that a file will be there that was not; lasting after L{sync}."""
        self._note(path=path, made=length)

    def move(self, path: str) -> str:
        """Move a file, or all files of a directory, here.

        @return: where they are.
        """
        to = os.path.join(self.folder, os.path.relpath(path, self._root))
        if not self._files.is_dir(path):
            self._move([path])
            return to
        folder = sorted(os.path.join(path, name) for name in self._files.list(path))
        self._move([each for each in folder if not self._files.is_dir(each)])
        return to

    def take(self, path: str) -> str:
        """Move a file, or a directory with all that is in it, here.

        @return: where it is.
        """
        self._move([path])
        return os.path.join(self.folder, os.path.relpath(path, self._root))

    def _move(self, paths: list[str]) -> None:
        moves = [
            (path, os.path.join(self.folder, os.path.relpath(path, self._root)))
            for path in paths
        ]
        for path, to in moves:
            make_lasting(self._files, os.path.dirname(to))
            self._note(path=path, moved=to)
        self.sync()
        for path, to in moves:
            self._files.rename(path, to)
        for path, to in moves[:1]:
            self._files.sync_dir(os.path.dirname(path))
            self._files.sync_dir(os.path.dirname(to))

    def sync(self) -> None:
        """Let all that was kept be on the disk."""
        self._bytes.datasync()
        self._list.datasync()

    def close(self) -> None:
        """Close the files."""
        self._bytes.close()
        self._list.close()

    def _note(self, **row: object) -> None:
        line = json.dumps(row).encode() + b"\n"
        self._list.pwrite(line, self._listed)
        self._listed += len(line)
