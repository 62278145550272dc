"""Requests that change settings."""

from __future__ import annotations

import errno
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import BrokerError, NoPermission, SystemFailure
from rocketbroker.remoting.settings_change import MAX_BODY, SettingsChange
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.threads import Threads
from rocketbroker.wire.command import Command


class File:
    """A file of settings in memory."""

    path = "/etc/x.properties"

    def __init__(self) -> None:
        self.content = b"# by hand\na=0\n"
        self.error: OSError | None = None

    def edit(self, change: Callable[[bytes], bytes]) -> None:
        """Change it, unless there is an error."""
        if self.error is not None:
            raise self.error
        self.content = change(self.content)


class SettingsChangeTests(SynchronousTestCase):
    """L{SettingsChange}."""

    def setUp(self) -> None:
        """A file, threads that wait, and others who have to hear of changes."""
        self.file = File()
        self.threads = Threads()
        self.announced: Deferred[None] = Deferred()
        self.changes: list[dict[str, str]] = []
        self.requests = SettingsChange(
            self.file, self.change, self.threads, lambda seconds: self.announced
        )

    def change(self, texts: dict[str, str]) -> str:
        """Take a change."""
        if "evil" in texts:
            raise NoPermission("no")
        self.changes.append(texts)
        return "something"

    def ask(self, body: bytes) -> Deferred[Command | None]:
        """A request that is not answered yet."""
        connection = RecordedConnection(b"\x0a\0\0\2", 4711)
        answer = self.requests.update(connection, Command(25, {}, body))
        assert isinstance(answer, Deferred)
        return answer

    def check_success(self, answer: Deferred[Command | None]) -> None:
        """The request was answered with success."""
        response = self.successResultOf(answer)
        assert response is not None
        self.assertEqual(response.code, 0)

    def test_order(self) -> None:
        """A change is in force now, and answered when it is in the file and the others
        know of it; changes are written one after the other."""
        first, second = self.ask(b"a=1\n"), self.ask(b"a=2\nb=3\n")
        self.assertEqual(self.changes, [{"a": "1"}, {"a": "2", "b": "3"}])
        self.assertEqual(len(self.threads.waiting), 1)
        settled = self.requests.settled()
        self.threads.run()
        self.assertEqual(self.file.content, b"# by hand\na=1\n")
        self.threads.run()
        self.assertEqual(self.file.content, b"# by hand\na=2\nb=3\n")
        self.successResultOf(settled)
        self.assertNoResult(first)
        self.announced.callback(None)
        for answer in (first, second):
            self.check_success(answer)

    def test_refused(self) -> None:
        """A change that is refused is logged, and not written."""
        with capturedLogs() as events:
            self.assertRaises(NoPermission, self.ask, b"a=1\nevil=1")
        self.assertEqual(self.threads.waiting, [])
        self.assertEqual(
            [formatEvent(event) for event in events],
            ["10.0.0.2:4711 may not change settings: no"],
        )

    def test_long(self) -> None:
        """A text that is longer than all settings is not even read."""
        most = b"a=" + b"1" * (MAX_BODY - 2)
        self.ask(most)
        self.assertRaises(SystemFailure, self.ask, most + b"1")
        self.assertEqual(len(self.changes), 1)

    def test_noFile(self) -> None:
        """A disk that refuses does not keep the next change from the file."""
        self.file.error = OSError(errno.EROFS, "Read-only file system")
        answer = self.ask(b"a=1\n")
        self.threads.run()
        error = self.failureResultOf(answer, BrokerError).value
        self.assertEqual(
            (error.code, str(error)),
            (
                1,
                "The change is in force but could not be saved: Read-only file system.",
            ),
        )
        self.file.error = None
        self.announced.callback(None)
        answer = self.ask(b"a=2\n")
        self.threads.run()
        self.check_success(answer)
        self.assertEqual(self.file.content, b"# by hand\na=2\n")
