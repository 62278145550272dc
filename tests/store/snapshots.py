"""Files of a store as they are, to be put back."""

from __future__ import annotations

from rocketbroker.store.file_names import segment_name
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT


def log_file(start: int = 0) -> str:
    """The path of a segment."""
    return f"{ROOT}/commitlog/{segment_name(start)}"


def snapshot(disk: MemoryDisk) -> dict[str, bytes]:
    """All files, as they are."""
    found: dict[str, bytes] = {}

    def walk(path: str) -> None:
        for name in disk.list(path):
            below = f"{path}/{name}"
            if disk.is_dir(below):
                walk(below)
            else:
                found[below] = disk.read(below)

    walk(ROOT)
    return found


def restored(files: dict[str, bytes]) -> MemoryDisk:
    """A disk with these files."""
    disk = MemoryDisk()
    for path, content in files.items():
        disk.make_dirs(path.rpartition("/")[0])
        file = disk.open(path, create=True)
        file.truncate(len(content))
        file.pwrite(content.rstrip(b"\0"), 0)
        file.close()
    return disk
