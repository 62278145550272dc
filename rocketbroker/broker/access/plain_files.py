# -*- test-case-name: tests.broker.access.test_plain_files -*-
"""The files of ACL 1.0: C{conf/plain_acl.yml} and those below C{conf/acl}.

They are looked at again and again. A file that is not in order changes nothing until
it is changed again, and so does an emptied one: an editor that truncates a file before
it writes must not lock everybody out (C{docs/facts/security-metrics.md} 2.1).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

from rocketbroker.auth.permissions import Edition
from rocketbroker.auth.plain import Rules
from rocketbroker.auth.plain_documents import Document, read, written
from rocketbroker.auth.plain_edits import replaced
from rocketbroker.errors import ConfigurationError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.settings_file import SettingsFile

#: Below the home directory, as RocketMQ has them.
DEFAULT: Final = "conf/plain_acl.yml"
FOLDER: Final = "conf/acl"

#: Directories below that one are looked into so far: a link may lead back.
MAX_DEPTH: Final = 8

#: 4.9 lets each account send batches to all topics, and make itself an administrator.
EDITION: Final = Edition.CLOSED

_ENDINGS: Final = (".yml", ".yaml")


@final
class PlainFiles:
    """The files below one home directory. All methods block.

    @ivar default: the file that gets new accounts.
    @ivar documents: what they say, as far as they are in order.
    @ivar rules: the rules of these.
    """

    def __init__(self, files: IFiles, home: str) -> None:
        self.default = f"{home}/{DEFAULT}"
        self.documents: Sequence[Document] = ()
        self.rules = Rules((), EDITION)
        self._folder = f"{home}/{FOLDER}"
        self._files = files
        self._seen: Mapping[str, int] = {}
        self._lock = threading.Lock()  # requests and looks are done in threads

    def _paths(self) -> list[str]:
        """The files in RocketMQ's order: the default one last."""
        found: list[str] = []
        self._find(self._folder, found, MAX_DEPTH)
        if self._files.exists(self.default):
            found.append(self.default)
        return found

    def _find(self, folder: str, found: list[str], depth: int) -> None:
        for name in self._files.list(folder):
            path = f"{folder}/{name}"
            if name.endswith(_ENDINGS) and path != f"{self._folder}/tools.yml":
                found.append(path)
            elif depth and self._files.is_dir(path):
                self._find(path, found, depth - 1)

    def _marks(self) -> dict[str, int]:
        found = {}
        for path in self._paths():
            try:
                found[path] = self._files.modified_ms(path)
            except OSError:
                continue  # it went away just now
        return found

    def load(self) -> None:
        """Read them all.

        @raise ConfigurationError: one is not in order, or cannot be read; one sentence.
        """
        self._seen = self._marks()
        self._take([self._read(path) for path in self._seen])

    def _take(self, documents: Sequence[Document]) -> None:
        # Both or neither: the rules may refuse them.
        self.rules = Rules(documents, EDITION)
        self.documents = documents

    def _read(self, path: str) -> Document:
        try:
            return read(path, self._files.read(path))
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be read: {error.strerror}."
            ) from error

    def look(self) -> list[str] | None:
        """Take what has changed.

        @return: sentences about what cannot be taken; C{None}: nothing has changed.
        """
        with self._lock:
            return self._look()

    def _look(self) -> list[str] | None:
        marks = self._marks()
        if marks == self._seen:
            return None
        before, self._seen = self._seen, marks
        old = {document.path: document for document in self.documents}
        documents, problems = [], []
        for path, mark in marks.items():
            document = old.get(path)
            if document is None or before.get(path) != mark:
                try:
                    document = self._changed(path, document)
                except ConfigurationError as error:
                    problems.append(f"It stays as it was: {error}")
            if document is not None:
                documents.append(document)
        try:
            self._take(documents)
        except ConfigurationError as error:
            problems.append(f"All stay as they were: {error}")
        return problems

    def _changed(self, path: str, old: Document | None) -> Document:
        """A file that has changed, or is new.

        @raise ConfigurationError: it is not in order.
        """
        new = self._read(path)
        Rules([new], EDITION)
        return new if new.members or old is None else old

    def write(self, edit: Callable[[Sequence[Document]], Document]) -> None:
        """Put a document in its place, and take it.

        @param edit: makes it of those that are there.
        @raise ValueError: as C{edit} does.
        @raise ConfigurationError: its rules are none; nothing is written.
        @raise OSError: the disk refused; the old file stands.
        """
        with self._lock:
            self._write(edit(self.documents))

    def _write(self, document: Document) -> None:
        documents = replaced(self.documents, document)
        Rules(documents, EDITION)
        text = written(document).encode()
        SettingsFile(self._files, document.path, is_secret=True).edit(lambda _: text)
        self._take(documents)
        self._seen = self._marks()
