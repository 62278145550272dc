# -*- test-case-name: tests.broker.appends.test_own_appends -*-
"""Appends of the broker itself: messages that no client sends at this moment.

Delay levels, timers, POP and transactions store messages anew, many by one append, and
look at the drafts for what became of each. What follows is the same for all of them:
the append is I{announced}, so that it is dispatched soon and slaves get it, and with
SYNC_FLUSH it is I{flushed}. Nobody waits for that: each of them keeps an offset that
does not pass what the disk does not have yet, and the flush only lets it move on.

Transactions take the steps of L{OwnAppends.put} one by one: between append and
announcement they write marks behind their messages, in the same turn; marks alone are
not flushed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.store.interfaces import Draft, IStore


@final
class OwnAppends:
    """Appends what the broker itself makes.

    @ivar dispatch: enters what was appended into the queues, now.
    """

    def __init__(self, store: IStore, group_commit: GroupCommit) -> None:
        self._store = store
        self._group_commit = group_commit
        self._announce: Callable[[], None] = _to_nobody
        self.dispatch: Callable[[], None] = _to_nobody

    def watch(self, announce: Callable[[], None], dispatch: Callable[[], None]) -> None:
        """Call C{announce} after each append; let callers ask for C{dispatch}."""
        self._announce = announce
        self.dispatch = dispatch

    def put(self, drafts: list[Draft]) -> None:
        """Append, announce and flush; the drafts say what became of each."""
        self._store.append(drafts)
        self._announce()
        self.flush()

    def append(self, drafts: list[Draft]) -> None:
        """Append only; L{announce} follows in this turn."""
        self._store.append(drafts)

    def announce(self) -> None:
        """Something was appended: have it dispatched and sent to slaves."""
        self._announce()

    def flush(self) -> None:
        """Flush what was appended, if senders wait for the disk."""
        if self._group_commit.synchronous:
            self._group_commit.flush()

    def announce_for(self, drafts: list[Draft], copies: int) -> Deferred[None] | None:
        """Announce what a client asked for; flush it as that client wants.

        @param drafts: the first one says whether it does.
        @param copies: how many there have to be.
        @return: fires when the drafts are as safe as the client wants them, or after
            the time that a send may take; None: they are.
        """
        self._announce()
        group_commit = self._group_commit
        if not drafts or not (group_commit.synchronous or copies > 1):
            return None
        if not drafts[0].wait:
            group_commit.flush()
            return None
        done: Deferred[None] = Deferred()
        group_commit.admit(drafts, partial(_kept, done), copies)
        return done


def _kept(done: Deferred[None], _drafts: list[Draft], _code: int) -> None:
    done.callback(None)


def _to_nobody() -> None:
    """Nobody is told yet."""
