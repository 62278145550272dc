# -*- test-case-name: tests.export.test_arrow_storage -*-
"""Opening the storage that an address names."""

from __future__ import annotations

import os

from rocketbroker.errors import ConfigurationError
from rocketbroker.export.arrow_storage import ArrowStorage
from rocketbroker.export.storage import DirectoryStorage, Storage
from rocketbroker.files.disk import Disk


def open_storage(address: str) -> Storage:
    """The storage at an address that a user gives.

    @param address: a directory, or an address that C{pyarrow.fs} knows, as
        C{s3://bucket/path}.
    @raise ConfigurationError: it is neither.
    """
    if "://" in address and not address.startswith("file://"):
        return ArrowStorage(address)
    root = os.path.abspath(address.removeprefix("file://"))
    if os.path.exists(root) and not os.path.isdir(root):
        raise ConfigurationError(f"{root} is not a directory")
    # Whoever reads tables is not the one who exports.
    files = Disk(file_mode=0o644, directory_mode=0o777)
    return DirectoryStorage(files, root)
