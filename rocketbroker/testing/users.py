# -*- test-case-name: tests.files.test_open_by -*-
"""Users of files, as a test names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from zope.interface import implementer

from rocketbroker.files.interfaces import IFileUsers


@final
@implementer(IFileUsers)
class GivenUsers:
    """Nobody, or who is given.

    @ivar uses: process id and path of each file that is used.
    @ivar asked: how often it was asked for.
    """

    def __init__(self, *uses: tuple[int, str]) -> None:
        self.uses = list(uses)
        self.asked = 0

    def user_of(self, folders: Sequence[str]) -> tuple[int, str] | None:
        """See L{IFileUsers.user_of}."""
        self.asked += 1
        for process, path in self.uses:
            if any(path.startswith(f"{folder}/") for folder in folders):
                return process, path
        return None
