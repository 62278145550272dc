# -*- test-case-name: tests.files.test_os_errors -*-
"""Errors of the system, with file and position, for a sentence to the operator.

The system tells neither file nor position when a descriptor cannot be read; whoever has
a bad disk wants to know both.
"""

from __future__ import annotations

from typing import final


@final
class ReadError(OSError):
    """The system did not read.

    @ivar position: of the first byte of C{filename} that was not read.
    """

    position: int = 0


def located(error: OSError, path: str, position: int) -> ReadError:
    """The same error, with its place.

    @param path: which file it is.
    @param position: where reading was to go on.
    """
    found = ReadError(error.errno, error.strerror, path)
    found.position = position
    return found


def reason(error: OSError) -> str:
    """Some words on what was refused, with file and position as far as they are known;
    without a full stop."""
    words = error.strerror or str(error)
    if not error.filename:
        return words
    if isinstance(error, ReadError):
        return f"{words} ({error.filename}, position {error.position})"
    return f"{words} ({error.filename})"
