# -*- test-case-name: tests.remoting.test_settings_change -*-
"""Requests that change settings: 25 of a broker, 318 of a name server.

A change is in force when it is answered, and written to a file, in which all else stays
as it is. If the disk refuses, the change is in force all the same, and answer and log
say that the next start will not know of it. The log says who asked, also of what was
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, final

from twisted.internet.defer import Deferred, DeferredLock, succeed
from twisted.logger import Logger

from rocketbroker.config.properties import edited, parse
from rocketbroker.errors import BrokerError, ConfigurationError, SystemFailure
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.wire.command import Command, response_to

#: The longest text of a change: all settings of a broker are a fifth of it, and taking
#: a text of many megabytes apart would keep the others waiting for seconds.
MAX_BODY: Final = 64 * 1024

#: And its most lines: eight times as many as a broker has settings.
MAX_LINES: Final = 4096

#: How long an answer waits for those who have to hear of a change.
ANNOUNCE_SECONDS: Final = 3.0


class EditedFile(Protocol):
    """L{rocketbroker.files.settings_file.SettingsFile}."""

    @property
    def path(self) -> str:
        """Where it is."""

    def edit(self, change: Callable[[bytes], bytes]) -> None:
        """I{Blocking.} Replace the content by what C{change} makes of it."""


def nobody(seconds: float) -> Deferred[None]:
    """What there is to wait for where nobody has to hear of a change."""
    return succeed(None)


@final
class SettingsChange:
    """The responder of a request that changes settings."""

    _log = Logger()

    def __init__(
        self,
        file: EditedFile,
        change: Callable[[dict[str, str]], str],
        in_thread: Callable[[Callable[[], None]], Deferred[None]],
        announced: Callable[[float], Deferred[None]] = nobody,
    ) -> None:
        """
        @param file: where changes are kept.
        @param change: takes the new values, by key, or raises; tells what changed.
        @param announced: fires when others know, or after so many seconds.
        """
        self._file = file
        self._change = change
        self._in_thread = in_thread
        self._announced = announced
        self._writing = DeferredLock()

    def settled(self) -> Deferred[None]:
        """Fires when nothing is being written any more."""
        return self._writing.run(lambda: None)

    def update(self, connection: IConnection, request: Command) -> Answer:
        """Change what the lines of the body say, all of it or nothing."""
        if not request.body:
            return response_to(request)
        if len(request.body) > MAX_BODY:
            raise SystemFailure(f"a change of settings has {MAX_BODY} bytes at most")
        if request.body.count(b"\n") + request.body.count(b"\r") > MAX_LINES:
            raise SystemFailure(f"a change of settings has {MAX_LINES} lines at most")
        try:
            texts = parse(request.body.decode("utf-8"), "request")
        except (ConfigurationError, UnicodeDecodeError) as error:
            raise SystemFailure("string2Properties error") from error
        try:
            changes = self._change(texts)
        except BrokerError as error:
            self._log.warn(
                "{peer} may not change settings: {error}",
                peer=connection.who,
                error=error,
            )
            raise
        self._log.info(
            "{peer} changed settings: {changes}; kept in {path}.",
            peer=connection.who,
            changes=changes or "none",
            path=self._file.path,
        )
        return Deferred.fromCoroutine(self._kept(texts, request))

    async def _kept(self, texts: dict[str, str], request: Command) -> Command:
        """Write the change; the answer.

        @raise SystemFailure: it cannot be written.
        """
        announced = self._announced(ANNOUNCE_SECONDS)
        file = self._file
        change = partial(edited, changes=texts, source=file.path)
        try:
            await self._writing.run(self._in_thread, partial(file.edit, change))
        except (OSError, ConfigurationError) as error:
            self._log.error(
                "The change of settings is lost with the next start, as {path} cannot "
                "be written: {error}",
                path=file.path,
                error=error,
            )
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise SystemFailure(
                f"The change is in force but could not be saved: {reason}."
            ) from error
        await announced
        return response_to(request)
