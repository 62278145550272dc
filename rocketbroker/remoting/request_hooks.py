# -*- test-case-name: tests.remoting.test_request_hooks -*-
"""Hooks around requests: what sees each one of a port before its responder, and after.

A port with hooks has a table of its own (L{fronted}), whose responders ask the hooks
and then those of the table behind. So a port without hooks knows nothing of them, and
one that has some cannot be got around: what is registered behind later passes by here,
too. Hot requests stay hot as long as no hook wants answers, which those have none of
that could be shown.

A hook that raises refuses the request, and what it raises becomes the answer. It runs
in the reactor's thread within each turn: a slow one slows the server.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, final

import msgspec
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import Attribute, Interface

from rocketbroker.auth.request import Asked, asked_by
from rocketbroker.remoting.interfaces import (
    Answer,
    HotResponder,
    IConnection,
    Responder,
)
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import Command

_log: Final = Logger()


class IRequestHook(Interface):
    """Sees requests."""

    codes: Collection[int] | None = Attribute(
        "The request codes that it sees: of sends (10, 310, 320, 370), of pulls (11), "
        "of all others; None: all. Of all others nothing is asked."
    )
    wants_answers: bool = Attribute(
        "Whether C{after} is called. Then no request is hot, which costs each several "
        "times as much."
    )

    def before(connection: IConnection, asked: Asked) -> None:
        """A request came.

        @raise BrokerError: it is not to be done; the answer has the code and the
            remark. Any other error is logged, and answered as SYSTEM_ERROR.
        """

    def after(connection: IConnection, asked: Asked, answer: Command | None) -> None:
        """It was done. What this raises is logged.

        @param answer: C{None}: there is none, or it comes later, as that of a pull that
            waits for messages.
        """


class IRequestHookPlugin(Interface):
    """Makes a hook. Found by Twisted's plug-in system, and chosen by the setting
    requestHooks of a broker or a name server."""

    name: str = Attribute("Its name in the setting.")

    def hook(settings: Mapping[str, str]) -> IRequestHook:
        """The hook; made once, at the start.

        @param settings: all settings of the server as text, but secrets; also those
            that only the plug-in knows.
        @raise ConfigurationError: the server cannot start so; one sentence.
        """


class _Head(msgspec.Struct):
    """The header of a hot request."""

    code: int
    version: int = 0
    extFields: Mapping[str, str] | None = None


_decode: Final = msgspec.json.Decoder(_Head).decode


def source_of(connection: IConnection) -> str:
    """The address of the other side, without its port."""
    return connection.peer.rpartition(":")[0].strip("[]")


def fronted(table: ResponderTable, hooks: Sequence[IRequestHook]) -> ResponderTable:
    """A table whose requests hooks see before those of C{table} do, in their order.

    @param table: complete, but for hot responders that come later: their requests go
        the general way then.
    """
    front = ResponderTable()
    front.latencies = table.latencies
    front.limit_waits(table.max_waits)
    for code in table.responders:
        front.register(code, _Hooked(table, code, hooks).respond)
    for entry in table.hot.values():
        hooked = _Hooked(table, entry.code, hooks)
        if not hooked.watching:
            behind = partial(getattr, entry, "responder")
            front.register_hot(entry.code, partial(hooked.respond_hot, behind))
    return front


@final
class _Hooked:
    """The hooks before one request code of a table.

    @ivar watching: those that want answers.
    """

    def __init__(
        self, table: ResponderTable, code: int, hooks: Sequence[IRequestHook]
    ) -> None:
        self._responders: Mapping[int, Responder] = table.responders
        self._code = code
        self._hooks = [
            each for each in hooks if each.codes is None or code in each.codes
        ]
        self.watching = [each for each in self._hooks if each.wants_answers]

    def respond_hot(
        self,
        responder: Callable[[], HotResponder],
        connection: IConnection,
        header: bytes,
        body: bytes,
    ) -> bool:
        """See L{HotResponder}."""
        if not self._hooks:
            return responder()(connection, header, body)
        try:
            head = _decode(header)
        except msgspec.MsgspecError:
            return False
        if head.code != self._code:
            # It has two codes: hooks and responders must not see different ones.
            return False
        asked = Asked(
            head.code,
            head.extFields,
            body,
            source=source_of(connection),
            version=head.version,
        )
        for hook in self._hooks:
            hook.before(connection, asked)
        return responder()(connection, header, body)

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """See L{Responder}."""
        if not self._hooks:
            return self._responders[self._code](connection, request)
        asked = asked_by(request, source_of(connection))
        for hook in self._hooks:
            hook.before(connection, asked)
        answer = self._responders[self._code](connection, request)
        if not self.watching:
            return answer
        if isinstance(answer, Deferred):
            return answer.addCallback(partial(self._answered, connection, asked))
        return self._answered(connection, asked, answer)

    def _answered(
        self, connection: IConnection, asked: Asked, answer: Command | None
    ) -> Command | None:
        for hook in self.watching:
            try:
                hook.after(connection, asked, answer)
            except Exception:
                _log.failure("A hook failed after request {code}.", code=asked.code)
        return answer
