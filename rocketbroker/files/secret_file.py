# -*- test-case-name: tests.files.test_secret_file -*-
"""A secret in a file: the settings name the file, so that no list of them shows it."""

from __future__ import annotations

import hmac
import os
from typing import final

from rocketbroker.errors import ConfigurationError


@final
class SecretFile:
    """The content of a file, without the blanks and line ends around it.

    @ivar path: the file.
    @ivar value: what was in it when it was last in order.
    """

    def __init__(self, path: str, setting: str) -> None:
        """
        I{Blocking.}

        @param setting: names the file.
        @raise ConfigurationError: it cannot be read, or is empty; one sentence.
        """
        self.path = path
        self._setting = setting
        self._mark = self._marked()
        self.value = self._read()

    def look(self) -> None:
        """I{Blocking.} Take what is new; a file that is not in order changes nothing.

        @raise ConfigurationError: it is new and not in order; one sentence.
        """
        mark = self._marked()
        if mark != self._mark:
            self._mark = mark
            self.value = self._read()

    def is_secret(self, given: bytes) -> bool:
        """Whether somebody has given the secret; it takes as long if not."""
        return hmac.compare_digest(given, self.value)

    def _marked(self) -> tuple[int, int, int] | None:
        """What changes when somebody writes the file."""
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return state.st_ino, state.st_size, state.st_mtime_ns

    def _read(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                value = file.read().strip()
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} ({self._setting}) cannot be read: {error.strerror}."
            ) from error
        if not value:
            raise ConfigurationError(f"{self.path} ({self._setting}) is empty.")
        return value
