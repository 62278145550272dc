"""A process that joins a store and appends to it until it is killed.

C{python -m tests.integration.joining DIRECTORY SLOT VERSION} appends messages to queue
T/0 and tells after each append which offsets are stored.
"""

from __future__ import annotations

import sys
import time

from rocketbroker.files.disk import Disk
from rocketbroker.store.sharing.joined_store import JoinedStore
from tests.store.stores import STORE_HOST, draft, options

#: Messages of one append.
COUNT = 50

#: The segments of the store: many appends fit.
SEGMENT = 4 << 20


def main(root: str, slot: int, version: int) -> None:
    """Append until the end."""
    given = options(store_path_root_dir=root, mapped_file_size_commit_log=SEGMENT)
    store = JoinedStore(Disk(), given, lambda: time.time_ns() // 1_000_000, STORE_HOST)
    queue = store.queue("T", 0, slot)
    while True:
        drafts = [draft(queue, b"theirs") for _ in range(COUNT)]
        if store.append(drafts, version):
            print(drafts[-1].queue_offset, flush=True)
        time.sleep(0.001)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
