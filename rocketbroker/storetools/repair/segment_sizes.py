# -*- test-case-name: tests.storetools.repair.test_segment_sizes -*-
"""The right length of a log's files, and the files that are missing, for a repair.

The length is that of the settings, if these are given, else that of most files; all
names must be multiples of it. It is not guessed: if neither gives a length the repair
refuses. No file is made in the place of a missing one, which may be on a disk that is
not mounted.

After a clean stop C{rocketbroker.ends} has the end of the log, if no other broker has
appended since.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.commitlog.loading import MAX_MISSING_BEHIND
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.storetools.repair.backup import Backup, Done
from rocketbroker.storetools.repair.exclusive_lock import log_files, log_folders


@final
class SegmentSizes:
    """The files of one log.

    @ivar size: how long each should be; 0 if there are none.
    @ivar wrong: start, path and length of those that are not, if none is missing.
    @ivar missing: from where to where files are missing.
    """

    def __init__(
        self, files: IFiles, root: str, commit_log: str | None, setting: int
    ) -> None:
        """
        @param setting: the length by the settings; 0 if these are not given.
        @raise StoreError: the length is not known; one sentence.
        """
        self._files = files
        self._root = root
        found = log_files(files, log_folders(root, commit_log))
        self._found = sorted(
            (start, path, files.size(path))
            for start, paths in found.items()
            for path in paths
        )
        self.size = self._size(setting) if self._found else 0
        known = self._known_end()
        self.missing = self._missing(sorted(found), known)
        last = max(found, default=0)
        self.wrong = [
            (start, path, length)
            for start, path, length in self._found
            if length != self.size
            and (length or start != last or known > start)
            and not self.missing
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there are no files, as no message has come yet."""
        return not self._found

    def _size(self, setting: int) -> int:
        lengths = Counter(length for _, _, length in self._found if length)
        if setting:
            # With other settings than these the files would be too long.
            if self._fits(setting) and max(lengths, default=0) < 2 * setting:
                return setting
        elif lengths:
            size, count = lengths.most_common(1)[0]
            if self._fits(size) and (count > 1 or len(lengths) == 1):
                return size
        elif len(self._found) == 1:
            # It is empty, and the next start makes it as long as it should be.
            return 0
        text = ", ".join(map(str, sorted(lengths))) or "0"
        text = f"The files of the log have {text} bytes. "
        if setting:
            text += f"mappedFileSizeCommitLog, which is {setting}, does not fit them."
        else:
            text += "Give -c with the broker's mappedFileSizeCommitLog."
        raise StoreError(f"{text} Nothing was changed.")

    def _fits(self, size: int) -> bool:
        return all(start % size == 0 for start, _, _ in self._found)

    def _known_end(self) -> int:
        """The end of the log at the last stop; 0 if it is not known."""
        if not self.size or self._files.exists(os.path.join(self._root, "abort")):
            return 0
        known = CleanShutdown(self._files, self._root)
        with contextlib.suppress(OSError):
            known.load()
        limit = self._found[-1][0] + (1 + MAX_MISSING_BEHIND) * self.size
        return known.published if known.published <= limit else 0

    def _missing(self, starts: list[int], known: int) -> list[tuple[int, int]]:
        size = self.size
        missing = []
        for before, after in itertools.pairwise(starts):
            if size and before + size < after:
                missing.append((before + size, after))
        end = starts[-1] + size if starts else 0
        if known > end:
            missing.append((end, -(-known // size) * size))
        return missing

    # Reports and changes.

    def unrepaired(self) -> list[Done]:
        """Files that are missing, for which a repair can do nothing."""
        found = []
        for start, end in self.missing:
            folder = os.path.dirname(self._found[0][1])
            text = f"the files of the log from position {start} to {end} are missing; "
            text += "nothing is changed while they are; a broker goes on without them"
            found.append(Done("unrepaired", folder, start, end - start, text))
        return found

    def changes(self) -> list[Done]:
        """The steps of L{mend}."""
        size = self.size
        return [
            Done(
                "changed",
                path,
                min(length, size),
                abs(length - size),
                f"it has {length} bytes and should have {size}",
            )
            for _, path, length in self.wrong
        ]

    def mend(self, copies: Backup) -> None:
        """I{Blocking.} Give each file its length; what is cut off is kept.

        @raise OSError: the disk refused.
        """
        for _, path, length in self.wrong:
            file = self._files.open(path)
            try:
                kept = min(length, self.size)
                copies.keep(path, file, kept, length - kept)
                copies.sync()
                file.truncate(self.size)
                file.datasync()
            finally:
                file.close()
