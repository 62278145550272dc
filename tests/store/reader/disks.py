"""Disks that change while they are read."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from rocketbroker.files.interfaces import IFiles
from rocketbroker.testing.files import MemoryDisk


@implementer(IFiles)
class ArrivingDisk:
    """A disk on which a file is made when a directory is listed."""

    def __init__(self, disk: MemoryDisk, folder: str, path: str, size: int) -> None:
        self._disk = disk
        self._folder = folder
        self._path = path
        self._size = size

    def list(self, path: str) -> list[str]:
        """See L{IFiles.list}; then the file is there."""
        found = self._disk.list(path)
        if path == self._folder and not self._disk.exists(self._path):
            file = self._disk.open(self._path, create=True)
            file.truncate(self._size)
            file.close()
        return found

    def __getattr__(self, name: str) -> Any:
        """All else is as it is."""
        return getattr(self._disk, name)
