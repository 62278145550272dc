# -*- test-case-name: tests.store.index.test_service -*-
"""The opening of index files at a start, and the removal of those that may be wrong.

After a clean stop all files that fit the log are believed. After any other stop only
those that the checkpoint has noted as flushed; and none behind one that is not
believed, as its entries must come before theirs. A file that is not believed is
removed, and built again from the log.

C{docs/facts/store.md} 12 and 15.1.
"""

from __future__ import annotations

import os

from rocketbroker.files.misplaced_files import is_no_file
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.index.file import IndexFile, file_size


def believed_files(
    open_files: OpenFiles,
    folder: str,
    sizes: tuple[int, int],
    checkpoint: Checkpoint | None,
    published: int,
    report: list[str],
) -> list[IndexFile]:
    """I{Blocking.} Open the files that are believed, and remove others.

    @param open_files: opens them.
    @param sizes: the slots and the entries of a file, as they are set.
    @param checkpoint: the flushed time and position; None after a clean stop.
    @param published: where the log ends.
    @param report: receives sentences about files that are ignored or removed.
    @raise OSError: the disk refused.
    """
    kept: list[IndexFile] = []
    believed = True
    files = open_files.files
    for name in files.list(folder):
        found = _open(open_files, os.path.join(folder, name), name, sizes, report)
        if found is None:
            continue
        wrong = found.load()
        if wrong:
            report.append(
                f"The header of {found.path} {wrong}; it is built again from the log."
            )
        # Only full files are put on the disk, and noted.
        is_safe = checkpoint is None or (
            found.room <= 0
            and checkpoint.has_index_file(found.end_ms, found.end_position)
        )
        is_within = found.end_position < max(published, 1)
        believed = believed and not wrong and is_safe and is_within
        if believed:
            kept.append(found)
        else:
            found.close()
            files.remove(found.path)
    return kept


def _open(
    open_files: OpenFiles,
    path: str,
    name: str,
    sizes: tuple[int, int],
    report: list[str],
) -> IndexFile | None:
    """A file of the index; None and a sentence if it is not one."""
    if not (name.isascii() and name.isdigit()) or is_no_file(open_files.files, path):
        report.append(f"{path!r} is not an index file; it is ignored.")
        return None
    size = open_files.files.size(path)
    if size and size != file_size(*sizes):
        report.append(
            f"{path} ({size} bytes) does not fit maxHashSlotNum and maxIndexNum; it is "
            "ignored."
        )
        return None
    return IndexFile(open_files, path, *sizes)
