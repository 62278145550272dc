# -*- test-case-name: tests.remoting.test_table -*-
"""The responder table: the responder of each request code, with counts of its answers.

A port has one table (the main and the VIP port of a broker have two). Hot responders
are found by the first twelve bytes of a JSON header, because every known client but a
hand-made one writes the code first::

    {"code":310,        three digits and the comma
    {"code":11,"        two digits, the comma and the next key's quote
    {"code":2000        the first four of six digits

so that one look-up in a dict of bytes replaces parsing. A header that begins otherwise
goes the general way. A code of more than three digits shares its first bytes with
others: its responder looks at the code first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import inf
from typing import Final, TypeAlias, final

from zope.interface import classImplements

from rocketbroker.errors import RequestCodeNotSupported
from rocketbroker.remoting.counts import Latencies
from rocketbroker.remoting.interfaces import (
    Answer,
    HotResponder,
    HotRun,
    IConnection,
    IResponderTable,
    Responder,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

#: How many bytes of a JSON header name a hot responder.
KEY_BYTES: Final = 12

#: Counts for all request codes that have neither a responder nor a name: a peer can
#: send four billion, and each would stay in memory and in every scrape.
NOT_SERVED: Final = -1

#: The codes that have a name, served or not.
NAMED: Final = frozenset(RequestCode)

#: After so many quick requests the clock is looked at; a power of two.
QUICK_REQUESTS: Final = 16

#: Requests with answers that may take megabytes: while unread answers take too much
#: memory, a hot one waits and any other is refused.
LARGE_ANSWERS: Final = frozenset(
    {
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.PEEK_MESSAGE,
        RequestCode.QUERY_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.GET_ALL_TOPIC_CONFIG,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_ALL_CONSUMER_OFFSET,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.GET_BROKER_CONSUME_STATS,
        RequestCode.GET_ALL_PRODUCER_INFO,
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        RequestCode.GET_BROKER_CLUSTER_INFO,
    }
)


#: Sees a request before its responder does, and raises a BrokerError if that is not to
#: have it.
Check: TypeAlias = Callable[[IConnection, Command], None]


def _checked(
    check: Check, responder: Responder, connection: IConnection, request: Command
) -> Answer:
    check(connection, request)
    return responder(connection, request)


@final
class HotEntry:
    """A hot responder and the number of requests it took.

    @ivar code: the request code.
    @ivar responder: answers it.
    @ivar unwatched: after a frame whose number in its reading has any of these bits the
        clock is not looked at: looking costs a fiftieth of a quick request.
    @ivar is_large: whether its answers may take megabytes.
    @ivar run: takes several requests at once; None: nothing does.
    @ivar taken: how many requests it took so far.
    @ivar timed: how many of those the latencies know.
    """

    __slots__ = ("code", "is_large", "responder", "run", "taken", "timed", "unwatched")

    def __init__(
        self, code: int, responder: HotResponder, quick: bool, run: HotRun | None
    ) -> None:
        self.code = code
        self.responder = responder
        self.run = run
        self.unwatched = QUICK_REQUESTS - 1 if quick else 0
        self.is_large = code in LARGE_ANSWERS
        self.taken = 0
        self.timed = 0


@final
class ResponderTable:
    """The responders of a port, by request code.

    @ivar responders: the general ones, by code.
    @ivar hot: the hot ones, by the first L{KEY_BYTES} of the header.
    @ivar has_runs: whether any of these takes several requests at once.
    @ivar latencies: by request code and response code; each hot request counts as
        answered with 0 within the turn that brought it, and codes without a name as
        L{NOT_SERVED}.
    @ivar max_waits: how long a request may wait to be begun, in seconds, by code; those
        that are not named wait for ever.
    @ivar least_wait: the least of these.
    """

    __slots__ = (
        "_checks",
        "has_runs",
        "hot",
        "latencies",
        "least_wait",
        "max_waits",
        "responders",
    )

    def __init__(self) -> None:
        self.has_runs = False
        self._checks: dict[int, Check] = {}
        self.responders: dict[int, Responder] = {}
        self.hot: dict[bytes, HotEntry] = {}
        self.latencies: dict[tuple[int, int], Latencies] = {}
        self.limit_waits({})

    def register(self, code: int, responder: Responder) -> None:
        """Answer C{code} with C{responder}."""
        check = self._checks.get(code)
        if check is not None:
            responder = partial(_checked, check, responder)
        self.responders[code] = responder

    def guard(self, codes: Iterable[int], check: Check) -> None:
        """Let C{check} stand before the responders of some codes that will be
        registered, whenever that is. Other codes pay nothing for it. Not for codes with
        hot responders, which would not be asked.

        @param codes: those that nothing stands before yet.
        """
        for code in codes:
            assert code not in self.responders and code not in self._checks, code
            self._checks[code] = check

    def register_hot(
        self,
        code: int,
        responder: HotResponder,
        quick: bool = False,
        run: HotRun | None = None,
    ) -> None:
        """Let C{responder} try first when a data connection brings C{code} as JSON.

        @param code: of two digits or more. With more than three, C{responder} is given
            others with the same first bytes, too, and has to answer False; only one of
            these can be hot.
        @param quick: see L{IResponderTable.register_hot}.
        @param run: the same.
        """
        assert code >= 10, f"a hot request code has 2 digits or more: {code}"
        key = (b'{"code":%d,"' % code)[:KEY_BYTES]
        assert code not in self._checks, f"{code} is guarded"
        before = self.hot.get(key)
        assert before is None or before.code == code, (
            f"{before.code} begins like {code}"
        )
        self.has_runs = self.has_runs or run is not None
        self.hot[key] = HotEntry(code, responder, quick, run)

    def limit_waits(self, max_waits: Mapping[int, float]) -> None:
        """Refuse from now on what has waited for so many seconds, by request code."""
        self.max_waits = dict(max_waits)
        self.least_wait = min(max_waits.values(), default=inf)

    def answered(
        self, code: int, response_code: int, elapsed_s: float, count: int = 1
    ) -> None:
        """Count answers.

        @param code: of the request.
        @param response_code: of the response.
        @param elapsed_s: how long each took, in seconds.
        @param count: how many.
        """
        if (
            response_code == RequestCodeNotSupported.code
            and code not in self.responders
            and code not in NAMED
        ):
            code = NOT_SERVED
        latencies = self.latencies.get((code, response_code))
        if latencies is None:
            latencies = self.latencies[code, response_code] = Latencies()
        latencies.add(elapsed_s * 1000, count)

    def refusal(self, code: int) -> RequestCodeNotSupported:
        """The error for a request without a responder: RocketMQ's words, and its
        name."""
        name = f" ({RequestCode(code).name})" if code in NAMED else ""
        return RequestCodeNotSupported(f" request type {code}{name} not supported")

    def turn_ended(self, elapsed_s: float) -> None:
        """Count the requests of hot responders in a turn of C{elapsed_s} seconds."""
        for entry in self.hot.values():
            count = entry.taken - entry.timed
            if count:
                entry.timed += count
                self.answered(entry.code, 0, elapsed_s, count)


classImplements(ResponderTable, IResponderTable)
