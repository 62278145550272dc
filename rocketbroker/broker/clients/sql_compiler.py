# -*- test-case-name: tests.broker.clients.test_sql_compiler -*-
"""The compiler of SQL92 expressions: who needs one waits for it, and nobody else.

An expression is compiled when a request first needs it, which may never be: a heartbeat
brings hundreds, and each start finds those of all groups in a file. Nearly all are
short, and are compiled at once. A longer one takes up to a fifth of a second: it is
compiled in slices (L{rocketbroker.remoting.cooperative_tasks}), beside the requests of
others, while its own request waits.

What needs an expression asks with L{SqlCompiler.find}. That raises L{NotCompiled} if
somebody has to wait, which L{SqlCompiler.waiting} does for all requests of a responder.
The outcome is kept (L{rocketbroker.filtering.sql}), so the request finds it when it is
served again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Final, final

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from rocketbroker.errors import SubscriptionParseFailed, SystemBusy
from rocketbroker.filtering import tags
from rocketbroker.remoting.interfaces import Answer, IConnection, ISlices
from rocketbroker.wire.command import Command
from rocketbroker.wire.steps import Steps

if TYPE_CHECKING:
    from rocketbroker.filtering import sql

#: Expressions up to this length are compiled in the turn that needs them: the dearest
#: take five milliseconds.
MAX_AT_ONCE: Final = 1024

#: How many characters of expressions wait to be compiled, at the most: they take five
#: seconds of the processor. Who comes then is told that the broker is busy.
MAX_WAITING: Final = 1 << 20


class NotCompiled(SystemBusy):
    """An expression has to be compiled first.

    @ivar expression: the expression.
    """

    def __init__(self, expression: str) -> None:
        super().__init__("the SQL92 expression is not compiled yet, try again")
        self.expression = expression


def check_type(kind: str) -> None:
    """Refuse expressions of other types.

    @raise SubscriptionParseFailed: it is one.
    """
    if kind != tags.SQL92:
        raise SubscriptionParseFailed(f"there is no type of filter {kind[:64]!r}")


def known_filter(expression: str) -> sql.SqlFilter | None:
    """The filter of an expression, if it is compiled; the compiler is imported when
    somebody has an expression.

    @raise SubscriptionParseFailed: it was none.
    """
    from rocketbroker.filtering import sql

    return sql.known(expression)


def compiled_now(expression: str) -> sql.SqlFilter:
    """The filter of an expression, compiled within the turn.

    @raise SubscriptionParseFailed: it is none.
    """
    from rocketbroker.filtering import sql

    return sql.compiled(expression)


@final
class SqlCompiler:
    """The compiler of SQL expressions, which works in slices.

    @ivar compiled: how many were compiled, or were none.
    """

    def __init__(self, slices: ISlices) -> None:
        self.compiled = 0
        self._slices = slices
        self._waiting: dict[str, list[Deferred[None]]] = {}
        self._size = 0

    def find(self, expression: str, kind: str) -> sql.SqlFilter:
        """The filter of an expression that a client sent.

        @raise SubscriptionParseFailed: it does not compile, or its type is unknown.
        @raise NotCompiled: it takes long, and has to be waited for.
        """
        check_type(kind)
        known = known_filter(expression)
        if known is not None:
            return known
        if len(expression) > MAX_AT_ONCE:
            raise NotCompiled(expression)
        self.compiled += 1
        return compiled_now(expression)

    def prepare(self, owner: object, expression: str) -> Deferred[None]:
        """Compile an expression in slices.

        @param owner: who needs it: owners take turns.
        @return: fires when it is compiled, or is known to be none; fails with
            L{SystemBusy} if too many wait.
        """
        done: Deferred[None] = Deferred()
        waiting = self._waiting.get(expression)
        if waiting is not None:
            waiting.append(done)
            return done
        if self._size + len(expression) > MAX_WAITING:
            return fail(
                SystemBusy(
                    f"{self._size} characters of SQL92 expressions wait to be compiled,"
                    f" at most {MAX_WAITING}: try again"
                )
            )
        self._size += len(expression)
        self._waiting[expression] = [done]
        work = self._slices.run(owner, self._compile(expression))
        work.addErrback(self._dropped, expression)
        return done

    def _compile(self, expression: str) -> Steps[None]:
        from rocketbroker.filtering import sql

        self.compiled += 1
        # That it is none is kept, too.
        with suppress(SubscriptionParseFailed):
            yield from sql.in_steps(expression)
        for each in self._ended(expression):
            each.callback(None)
            yield

    def _ended(self, expression: str) -> list[Deferred[None]]:
        self._size -= len(expression)
        return self._waiting.pop(expression)

    def _dropped(self, failure: Failure, expression: str) -> None:
        """The broker stops, or it failed."""
        if expression in self._waiting:
            for each in self._ended(expression):
                each.errback(failure)

    def waiting(
        self, responder: Callable[[IConnection, Command], Answer]
    ) -> Callable[[IConnection, Command], Answer]:
        """A responder whose requests wait for the expressions that they need."""

        @wraps(responder)
        def respond(connection: IConnection, request: Command) -> Answer:
            try:
                return responder(connection, request)
            except NotCompiled as error:
                ready = self.prepare(connection, error.expression)
            return ready.addCallback(lambda _: respond(connection, request))

        return respond
