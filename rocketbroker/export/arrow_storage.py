# -*- test-case-name: tests.export.test_arrow_storage -*-
"""An export in a store that C{pyarrow.fs} knows: S3 and its like, GCS, Azure, HDFS.

Most of these cannot rename: they copy. But there an upload has no name until it is
complete. So the bytes are gathered in a temporary file here and uploaded at the end, in
one go: whoever gives up, or dies, before or in the middle has published nothing.
Rejected: uploading while the bytes come, because pyarrow completes an upload whenever
its stream is closed, also by the garbage collector (apache/arrow#40502). HDFS renames,
so there the upload has another name until it is complete.

I{The lease.} Such stores have no locks, and pyarrow no conditional writes. What they
have is that a listing shows every object written before it. So each run writes an
object of its own and then lists: of two runs at least one sees the other, and a run
that sees another gives way. An object that has not been renewed for L{LEASE_SECONDS},
by the store's clock alone, is of a run that died.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from threading import Event, Thread
from typing import Any, BinaryIO, Final, final

import pyarrow as pa
from pyarrow import fs

from rocketbroker.errors import ConfigurationError, StoreError
from rocketbroker.export.storage import DRAFT

#: A run that has not renewed its lease for so long has lost it.
LEASE_SECONDS: Final = 60.0

#: It is renewed so many times in this time.
RENEWALS: Final = 4

#: File systems that rename, by C{FileSystem.type_name}.
RENAMING: Final = frozenset({"hdfs", "local"})

#: Keys and passwords in an address, and options of the store.
SECRETS: Final = re.compile(r"(?<=://)[^/?@]*@|\?.*$")


@final
class ArrowStorage:
    """Provides L{Storage<rocketbroker.export.storage.Storage>}: below an address.

    It is pickled as its address: each process connects by itself, with the credentials
    that it finds in its own environment.
    """

    def __init__(self, uri: str, lease_seconds: float = LEASE_SECONDS) -> None:
        """
        @param uri: see C{pyarrow.fs.FileSystem.from_uri}.
        @raise ConfigurationError: there is no such file system.
        """
        self._uri = uri
        self._lease_seconds = lease_seconds
        try:
            self._files, base = fs.FileSystem.from_uri(uri)
        except (pa.ArrowException, OSError) as error:
            raise ConfigurationError(
                f"{self.address} is no place for an export: {one_line(error)}"
            ) from None
        self._base = base.rstrip("/")
        if not self._base:
            raise ConfigurationError(f"{self.address} names no place for an export")
        self._renames = self._files.type_name in RENAMING

    def __reduce__(self) -> tuple[type[ArrowStorage], tuple[str, float]]:
        return type(self), (self._uri, self._lease_seconds)

    @property
    def address(self) -> str:
        """See L{Storage.address}; without keys, passwords and options."""
        return SECRETS.sub("", self._uri).rstrip("/")

    def where(self, path: str) -> str:
        """See L{Storage.where}."""
        return f"{self.address}/{path}"

    def _name(self, path: str) -> str:
        return f"{self._base}/{path}"

    def _info(self, path: str) -> Any:
        return self._files.get_file_info(self._name(path))

    def exists(self, path: str) -> bool:
        """See L{Storage.exists}."""
        return bool(self._info(path).type == fs.FileType.File)

    def size(self, path: str) -> int:
        """See L{Storage.size}."""
        info = self._info(path)
        if info.type != fs.FileType.File:
            raise FileNotFoundError(f"{self.where(path)} is not there")
        return int(info.size)

    def _infos(self, folder: str) -> list[Any]:
        chosen = fs.FileSelector(self._name(folder), allow_not_found=True)
        found = self._files.get_file_info(chosen)
        return [info for info in found if info.type == fs.FileType.File]

    def list(self, folder: str) -> list[str]:
        """See L{Storage.list}."""
        names = [info.base_name for info in self._infos(folder)]
        return sorted(name for name in names if not name.endswith(DRAFT))

    def read(self, path: str) -> bytes:
        """See L{Storage.read}."""
        with self._files.open_input_stream(self._name(path)) as stream:
            return bytes(stream.read())

    def open(self, path: str) -> BinaryIO:
        """See L{Storage.open}."""
        file: BinaryIO = self._files.open_input_file(self._name(path))
        return file

    def put(self, path: str, content: bytes) -> None:
        """See L{Storage.put}."""
        output = self.create(path)
        try:
            output.write(content)
            output.finish()
        finally:
            output.abandon()

    def put_new(self, path: str, content: bytes) -> None:
        """See L{Storage.put_new}: nobody else writes, as long as the lease is held."""
        if self.exists(path):
            raise FileExistsError(f"{self.where(path)} exists already")
        self.put(path, content)

    def create(self, path: str) -> ArrowOutput:
        """See L{Storage.create}."""
        return ArrowOutput(self, path)

    def upload(self, path: str, data: Any) -> None:
        """Make a file of the bytes of a buffer, whole or not at all."""
        name = draft = self._name(path)
        if self._renames:
            folder, _, last = name.rpartition("/")
            self._files.create_dir(folder, recursive=True)
            draft = f"{folder}/.{last}.{uuid.uuid4().hex}{DRAFT}"
        try:
            with self._files.open_output_stream(draft) as stream:
                # In one call, so that nothing of this process can come in between.
                stream.write(data)
        except BaseException:
            if self._renames:
                with suppress(OSError):
                    self._files.delete_file(draft)
            # Elsewhere an upload that failed has published nothing.
            raise
        if draft != name:
            self._files.move(draft, name)

    def remove_drafts(self, path: str) -> int:
        """See L{Storage.remove_drafts}."""
        if not self._renames:
            return 0
        folder, _, name = path.rpartition("/")
        left = [
            info.path
            for info in self._infos(folder)
            if info.base_name.startswith(f".{name}.") and info.path.endswith(DRAFT)
        ]
        for draft in left:
            with suppress(FileNotFoundError):
                self._files.delete_file(draft)
        return len(left)

    def remove(self, path: str) -> None:
        """Remove a file; nothing if it is not there."""
        with suppress(FileNotFoundError):
            self._files.delete_file(self._name(path))

    def take_lease(self, path: str, holder: Mapping[str, Any]) -> ArrowLease:
        """See L{Storage.take_lease}."""
        lease = ArrowLease(self, path, holder, self._lease_seconds)
        try:
            others = lease.take()
        except OSError as error:
            lease.release()
            raise ConfigurationError(
                f"cannot write {self.where(path)}: {one_line(error)}"
            ) from None
        if others:
            lease.release()
            raise ConfigurationError(
                f"another export is writing here: {self.where(path)} says {others}; if "
                f"that one died, wait {self._lease_seconds:.0f} seconds"
            )
        lease.keep()
        return lease

    def lease_holder(self, path: str) -> str:
        """See L{Storage.lease_holder}; by this machine's clock."""
        folder, _, prefix = path.rpartition("/")
        for name, changed in self.changed(folder).items():
            lapsed = time.time() - changed >= self._lease_seconds
            if name.startswith(f"{prefix}.") and not lapsed:
                with suppress(FileNotFoundError):
                    return self.read(f"{folder}/{name}").decode("utf-8", "replace")
        return ""

    def changed(self, folder: str) -> dict[str, float]:
        """The files in a folder, each with the seconds of the store's clock when it was
        last written."""
        found = self._infos(folder)
        return {info.base_name: info.mtime_ns / 1e9 for info in found}


@final
class ArrowOutput:
    """Provides L{Output<rocketbroker.export.storage.Output>}: uploaded at its end.

    @ivar size: see there.
    """

    def __init__(self, storage: ArrowStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._spool = tempfile.TemporaryFile(prefix="rocketbroker-")  # noqa: SIM115
        self.size = 0

    def write(self, data: Any) -> None:
        """See L{Output.write}."""
        self._spool.write(data)
        self.size += memoryview(data).nbytes

    def finish(self) -> None:
        """See L{Output.finish}."""
        self._spool.flush()
        # Nothing cannot be mapped.
        number = self._spool.fileno()
        data = mmap(number, 0, access=ACCESS_READ) if self.size else b""
        self._storage.upload(self._path, data)
        self._spool.close()

    def abandon(self) -> None:
        """See L{Output.abandon}."""
        self._spool.close()


@final
class ArrowLease:
    """Provides L{Lease<rocketbroker.export.storage.Lease>}: an object that is renewed.

    It lies beside the path of the lease, under a name of its own.
    """

    def __init__(
        self,
        storage: ArrowStorage,
        path: str,
        holder: Mapping[str, Any],
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        @param seconds: it lapses when it was not renewed for so long.
        """
        self._storage = storage
        self._folder, _, self._prefix = path.rpartition("/")
        self._name = f"{self._prefix}.{uuid.uuid4().hex}"
        self._content = json.dumps(dict(holder)).encode("utf-8")
        self._seconds = seconds
        self._monotonic = monotonic
        self._renewed = 0.0
        self._over = Event()
        self._thread: Thread | None = None

    @property
    def _path(self) -> str:
        return f"{self._folder}/{self._name}"

    def take(self) -> str:
        """Write the object, and look for others.

        @return: what one says that is not of a run that died; empty if there is none.
        """
        self._write()
        leases = self._storage.changed(self._folder)
        now = leases.pop(self._name, 0.0)
        for name, changed in leases.items():
            if not name.startswith(f"{self._prefix}."):
                continue
            path = f"{self._folder}/{name}"
            if now - changed >= self._seconds:
                self._storage.remove(path)
                continue
            try:
                return self._storage.read(path).decode("utf-8", "replace")
            except FileNotFoundError:
                # It has just been given back.
                continue
        return ""

    def keep(self) -> None:
        """Renew it now and then, in a thread, until it is released."""
        self._thread = Thread(target=self._renewing, name="lease", daemon=True)
        self._thread.start()

    def _renewing(self) -> None:
        while not self._over.wait(self._seconds / RENEWALS):
            # A store that does not answer may do so next time.
            with suppress(OSError):
                self.renew()

    def _write(self) -> None:
        began = self._monotonic()
        self._storage.put(self._path, self._content)
        self._renewed = began

    def renew(self) -> None:
        """Say that its holder lives, unless another run has taken it for dead."""
        if not self._is_over() and self._storage.exists(self._path):
            self._write()

    def _is_over(self) -> bool:
        return self._monotonic() - self._renewed >= self._seconds

    def check(self) -> None:
        """See L{Lease.check}."""
        if self._is_over() or not self._storage.exists(self._path):
            where = self._storage.where(f"{self._folder}/{self._prefix}")
            raise StoreError(
                f"the lease {where} was lost: this run stood still for too long, and "
                "another may be writing"
            )

    def release(self) -> None:
        """See L{Lease.release}."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        # Who cannot remove it now leaves it to lapse.
        with suppress(OSError):
            self._storage.remove(self._path)


def one_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
