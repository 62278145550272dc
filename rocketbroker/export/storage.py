# -*- test-case-name: tests.export.test_storage -*-
"""The place where an export lies: a directory here, or a store elsewhere.

Ledger and data files go through this one seam. Paths are below the root, with slashes.
Two promises carry the rest: nothing has a name before it is whole, and what has a name
outlives a crash. Storages go to the tasks with the work, so they can be pickled; what
is open, as a lease or an output, stays where it was opened.
"""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Final, Protocol, final

from rocketbroker.errors import ConfigurationError
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFile, IFiles

#: The end of the names under which files are written.
DRAFT: Final = ".tmp"

#: How much is read at once by those who ask for few bytes.
BUFFER_SIZE: Final = 1024 * 1024


class Output(Protocol):
    """A file that is being written; it is visible only once it is finished.

    @ivar size: how many bytes have been written.
    """

    size: int

    def write(self, data: Any) -> None:
        """Write all bytes of a buffer.

        @raise OSError: they cannot be written.
        """

    def finish(self) -> None:
        """Put everything there, for good, and give it its name.

        @raise OSError: it cannot be done.
        """

    def abandon(self) -> None:
        """Leave nothing of it; idempotent."""


class Lease(Protocol):
    """The right to write to an export, as its only run."""

    def check(self) -> None:
        """See that it is still held: before what others would have to undo.

        @raise StoreError: it is not.
        """

    def release(self) -> None:
        """Give it back; idempotent."""


class Storage(Protocol):
    """Where an export lies.

    All calls raise C{OSError} for what the place refuses, C{FileNotFoundError} for a
    file that is not there.
    """

    @property
    def address(self) -> str:
        """The root, as users name it."""

    def where(self, path: str) -> str:
        """A file, as users name it."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""

    def size(self, path: str) -> int:
        """A file's length in bytes."""

    def list(self, folder: str) -> list[str]:
        """The names of the files directly in a folder, sorted; empty if there is none.

        What is being written has no name yet.
        """

    def read(self, path: str) -> bytes:
        """A whole small file."""

    def open(self, path: str) -> BinaryIO:
        """A file for reading, which can seek."""

    def put(self, path: str, content: bytes) -> None:
        """Make or replace a small file, whole or not at all."""

    def put_new(self, path: str, content: bytes) -> None:
        """Make a small file, whole or not at all.

        @raise FileExistsError: it is there already.
        """

    def create(self, path: str) -> Output:
        """Begin a file, in the place of one that may be there."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def remove_drafts(self, path: str) -> int:
        """Remove what attempts at a file that died have left; how many there were."""

    def take_lease(self, path: str, holder: Mapping[str, Any]) -> Lease:
        """Become the only writer.

        @param path: the file that says who writes.
        @param holder: the writer, for people.
        @raise ConfigurationError: somebody else is, or nothing can be written; one
            sentence.
        """

    def lease_holder(self, path: str) -> str:
        """What the writer there says of itself; empty if nobody writes.

        It is for people: nobody may build on it.
        """


@final
class DirectoryStorage:
    """Provides L{Storage}: a directory of this machine.

    A file is written under another name, synced and renamed, and its directory synced.
    The lease is a lock that the kernel releases when the process ends.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        """
        @param root: the directory, absolute; made when something is written.
        """
        self._files = files
        self._root = root

    @property
    def address(self) -> str:
        """See L{Storage.address}."""
        return self._root

    def where(self, path: str) -> str:
        """See L{Storage.where}."""
        return os.path.join(self._root, path)

    def exists(self, path: str) -> bool:
        """See L{Storage.exists}."""
        return self._files.exists(self.where(path))

    def size(self, path: str) -> int:
        """See L{Storage.size}."""
        return self._files.size(self.where(path))

    def list(self, folder: str) -> list[str]:
        """See L{Storage.list}."""
        found = self._files.lengths(self.where(folder))
        return [name for name, size in found if size >= 0 and not name.endswith(DRAFT)]

    def read(self, path: str) -> bytes:
        """See L{Storage.read}."""
        return self._files.read(self.where(path))

    def open(self, path: str) -> BinaryIO:
        """See L{Storage.open}."""
        file = self._files.open_readonly(self.where(path))
        return io.BufferedReader(OpenFile(file), BUFFER_SIZE)

    def put(self, path: str, content: bytes) -> None:
        """See L{Storage.put}."""
        # Only the holder of the lease calls this, so one name will do, and what a run
        # that died has left goes with the next attempt.
        output = self._output(path, "")
        try:
            output.write(content)
            output.finish()
        except BaseException:
            output.abandon()
            raise

    def put_new(self, path: str, content: bytes) -> None:
        """See L{Storage.put_new}: nobody else writes, as long as the lease is held."""
        if self.exists(path):
            raise FileExistsError(f"{self.where(path)} exists already")
        self.put(path, content)

    def create(self, path: str) -> DirectoryOutput:
        """See L{Storage.create}."""
        return self._output(path, f".{uuid.uuid4().hex}")

    def _output(self, path: str, attempt: str) -> DirectoryOutput:
        final = self.where(path)
        folder, name = os.path.split(final)
        make_lasting(self._files, folder)
        draft = os.path.join(folder, f".{name}{attempt}{DRAFT}")
        return DirectoryOutput(self._files, draft, final)

    def remove(self, path: str) -> None:
        """See L{Storage.remove}."""
        with suppress(FileNotFoundError):
            self._files.remove(self.where(path))

    def remove_drafts(self, path: str) -> int:
        """See L{Storage.remove_drafts}."""
        folder, name = os.path.split(self.where(path))
        left = [
            draft
            for draft in self._files.list(folder)
            if draft.startswith(f".{name}.") and draft.endswith(DRAFT)
        ]
        for draft in left:
            with suppress(FileNotFoundError):
                self._files.remove(os.path.join(folder, draft))
        return len(left)

    def take_lease(self, path: str, holder: Mapping[str, Any]) -> DirectoryLease:
        """See L{Storage.take_lease}."""
        name = self.where(path)
        try:
            make_lasting(self._files, os.path.dirname(name))
            file = self._files.open(name, create=True)
        except OSError as error:
            raise ConfigurationError(f"cannot write {name}: {error}") from None
        if not file.lock():
            file.close()
            raise ConfigurationError(f"another export is writing here: {name}")
        lease = DirectoryLease(file)
        try:
            file.truncate(0)
            file.pwrite(json.dumps(dict(holder)).encode("utf-8"), 0)
        except OSError as error:
            lease.release()
            raise ConfigurationError(f"cannot write {name}: {error}") from None
        return lease

    def lease_holder(self, path: str) -> str:
        """See L{Storage.lease_holder}."""
        try:
            text = self.read(path).decode("utf-8", "replace")
            if not text:
                return ""
            file = self._files.open(self.where(path))
        except OSError:
            return ""
        # A writer that died has left its text, and no lock.
        try:
            return "" if file.lock() else text
        finally:
            file.close()


@final
class DirectoryOutput:
    """Provides L{Output}.

    @ivar size: see L{Output}.
    """

    def __init__(self, files: IFiles, draft: str, path: str) -> None:
        """
        @param draft: the name until it is finished.
        @param path: the name afterwards.
        """
        self._files = files
        self._draft = draft
        self._path = path
        file: IFile = files.open(draft, create=True)
        file.truncate(0)
        self._file: IFile | None = file
        self.size = 0

    def write(self, data: Any) -> None:
        """See L{Output.write}."""
        assert self._file is not None
        self.size += self._file.pwrite(data, self.size)

    def finish(self) -> None:
        """See L{Output.finish}."""
        assert self._file is not None
        self._file.datasync()
        self._file.close()
        self._files.rename(self._draft, self._path)
        self._file = None
        self._files.sync_dir(os.path.dirname(self._path))

    def abandon(self) -> None:
        """See L{Output.abandon}."""
        if self._file is not None:
            self._file.close()
            self._file = None
            with suppress(OSError):
                self._files.remove(self._draft)


@final
class DirectoryLease:
    """Provides L{Lease}: a lock of the kernel."""

    def __init__(self, file: IFile) -> None:
        self._file: IFile | None = file

    def check(self) -> None:
        """See L{Lease.check}: the kernel takes it from nobody."""

    def release(self) -> None:
        """See L{Lease.release}."""
        if self._file is not None:
            # The lock counts; its text is only for people.
            with suppress(OSError):
                self._file.truncate(0)
            self._file.close()
            self._file = None


@final
class OpenFile(io.RawIOBase):
    """A file of the disk seam, as Python's libraries read files."""

    def __init__(self, file: IFile) -> None:
        super().__init__()
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position."""
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            offset += self._file.size()
        self._position = offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read as much as there is and fits."""
        with memoryview(buffer).cast("B") as view:
            data = self._file.pread(len(view), self._position)
            view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file; idempotent."""
        self._file.close()
        super().close()
