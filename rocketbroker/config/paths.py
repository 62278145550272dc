# -*- test-case-name: tests.config.test_paths -*-
"""Paths in settings, as they are meant.

A relative path begins in the directory in which the server was started, as Java's do,
wherever it goes later: twistd's C{--rundir} has another one. C{~} and C{${user.home}}
are the home directory; RocketMQ takes these two as they stand, and makes directories
of that name.
"""

from __future__ import annotations

import os
from typing import Final

#: The home directory, as properties of Java call it.
HOME: Final = "${user.home}"

#: Between the paths of a list.
COMMA: Final = ","


def resolved(path: str) -> str:
    """An absolute path; nothing stays nothing."""
    if not path:
        return path
    home = path.replace(HOME, os.path.expanduser("~"))
    return os.path.abspath(os.path.expanduser(home))


def all_resolved(paths: str) -> str:
    """The paths of a list, each absolute."""
    return COMMA.join(resolved(path.strip()) for path in paths.split(COMMA))
