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

from collections.abc import Callable, Mapping, Sequence
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
    """Sees each request."""

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
    hooked = _Hooked(table, hooks)
    for code in table.responders:
        front.register(code, partial(hooked.respond, code))
    if not hooked.watching:
        for entry in table.hot.values():
            responder = partial(
                hooked.respond_hot, partial(getattr, entry, "responder")
            )
            front.register_hot(entry.code, responder)
    return front


@final
class _Hooked:
    """The hooks before one table."""

    def __init__(self, table: ResponderTable, hooks: Sequence[IRequestHook]) -> None:
        self._responders: Mapping[int, Responder] = table.responders
        self._hooks = hooks
        self.watching = [each for each in hooks if each.wants_answers]

    def respond_hot(
        self,
        responder: Callable[[], HotResponder],
        connection: IConnection,
        header: bytes,
        body: bytes,
    ) -> bool:
        """See L{HotResponder}."""
        try:
            head = _decode(header)
        except msgspec.MsgspecError:
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

    def respond(self, code: int, connection: IConnection, request: Command) -> Answer:
        """See L{Responder}."""
        asked = asked_by(request, source_of(connection))
        for hook in self._hooks:
            hook.before(connection, asked)
        answer = self._responders[code](connection, request)
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
