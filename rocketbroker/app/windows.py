# -*- test-case-name: tests.app.test_windows -*-
"""Windows, where clients and the commands on a cluster run, and servers do not.

A store needs locks, mappings and calls of POSIX systems, for which Python has no
modules there. Who imports one of these is told so in a sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from twisted.python import usage

#: Modules of Python that Windows lacks.
POSIX_MODULES: Final = ("fcntl", "resource")

SENTENCE: Final = (
    "rocketbroker's servers, and its commands for this machine and for a store's "
    "directory, do not run on Windows. Its clients and the commands on a cluster do; "
    "run the servers in WSL, in a container, or on another machine."
)


class Options(usage.Options):
    """The command line of a server, where there can be none."""

    def parseOptions(self, options: Sequence[str] | None = None) -> NoReturn:
        """End the program."""
        sys.stderr.write(SENTENCE + "\n")
        raise SystemExit(1)


def makeService(options: Any) -> NoReturn:
    """There is none."""
    raise AssertionError("its options have ended the program")
