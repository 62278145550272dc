# -*- test-case-name: tests.remoting.test_cooperative_tasks -*-
"""Long work in the reactor's thread, a bounded slice at a time.

Work over thousands of topics, groups or messages, done in one go, would keep all sends
waiting. Written as an iterator, each C{next()} of which is one short step, it is done
beside them::

    def count(self, names: Sequence[str]) -> Iterator[None]:
        for name in names:
            self.total += self.size_of(name)
            yield

    slices.run(connection, self.count(names)).addCallback(lambda _: ...)

One I{pass} takes steps for C{PASS_SECONDS}, and then leaves the reactor to sockets and
timers until the next. Owners take turns, step by step: somebody who asks for much waits
for his own work, not others for it. The works of one owner are done one after the
other, in the order in which they came.

A step is as long as its author makes it: a pass looks at the clock between steps only.
About a hundred microseconds is right; a step costs one or two itself.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final, TypeVar, final

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure
from zope.interface import implementer

from rocketbroker.remoting.counts import Longest
from rocketbroker.remoting.interfaces import ISlices
from rocketbroker.wire.steps import Steps, finished

T = TypeVar("T")

#: So long a pass takes steps; the last one may end later.
PASS_SECONDS: Final = 0.004

#: How many steps a request may take in its own turn: about as long as one pass.
FEW_STEPS: Final = 8


@final
class _Work:
    """One work that has not ended.

    @ivar name: of the generator.
    @ivar steps: C{None} when it is dropped.
    @ivar ended: fires at the end.
    """

    __slots__ = ("ended", "name", "steps")

    def __init__(self, steps: Iterator[None]) -> None:
        self.name: str = getattr(steps, "__name__", "iterator")
        self.steps: Iterator[None] | None = steps
        self.ended: Deferred[None] = Deferred(self.drop)

    def drop(self, _: object = None) -> None:
        """Take no further step; what a generator has to tidy up, it does now."""
        steps, self.steps = self.steps, None
        close = getattr(steps, "close", None)
        if close is not None and not getattr(steps, "gi_running", False):
            close()


@final
@implementer(ISlices)
class Slices:
    """All long work of one server.

    @ivar steps: how many steps were taken.
    @ivar passes: in how many passes.
    @ivar longest: how long the longest passes were, by the name of the generator whose
        step took most of each.
    """

    def __init__(self, clock: IReactorTime) -> None:
        """
        @param clock: tells how long a pass is, and calls the next.
        """
        self.steps = 0
        self.passes = 0
        self.longest: defaultdict[str, Longest] = defaultdict(Longest)
        self._clock = clock
        self._owners: dict[object, deque[_Work]] = {}
        self._order: deque[object] = deque()
        self._call: IDelayedCall | None = None

    def run(self, owner: object, work: Iterator[None]) -> Deferred[None]:
        """Do C{work} in slices, from the reactor's next round on.

        @param owner: who asks for it: a connection, or a part of the server.
        @param work: each C{next()} is one step.
        @return: fires when the iterator ends, and fails with what it raises. Cancelled,
            it drops the work.
        """
        each = _Work(work)
        works = self._owners.get(owner)
        if works is None:
            works = self._owners[owner] = deque()
            self._order.append(owner)
        works.append(each)
        if self._call is None:
            self._call = self._clock.callLater(0, self._pass)
        return each.ended

    @property
    def waiting(self) -> int:
        """How many works have not ended; dropped ones go at their turn."""
        return sum(map(len, self._owners.values()))

    def _pass(self) -> None:
        """Take steps until the time is over."""
        self._call = None
        self.passes += 1
        seconds, order = self._clock.seconds, self._order
        begin = before = seconds()
        most, name = 0.0, ""
        while order and before - begin < PASS_SECONDS:
            work = self._take_turn(order.popleft())
            now = seconds()
            if now - before >= most:
                most, name = now - before, work.name
            before = now
        self.longest[name].note(before - begin, before)
        # A work that ended may have asked for the next pass by running another.
        if order and self._call is None:
            self._call = self._clock.callLater(0, self._pass)

    def _take_turn(self, owner: object) -> _Work:
        """One step of the oldest work of C{owner}; that work."""
        works = self._owners[owner]
        work = works[0]
        error: Exception | None = None
        over = True
        if work.steps is not None:
            self.steps += 1
            try:
                next(work.steps)
            except StopIteration:
                pass
            except Exception as raised:
                error = raised
            else:
                over = work.steps is None
        if self._owners.get(owner) is not works:
            return work  # The step has stopped everything.
        if not over:
            self._order.append(owner)
            return work
        works.popleft()
        if works:
            self._order.append(owner)
        else:
            del self._owners[owner]
        if not work.ended.called:
            if error is None:
                work.ended.callback(None)
            else:
                work.ended.errback(error)
        return work

    def stop(self) -> None:
        """Drop all work: what waits for it fails with C{CancelledError}."""
        if self._call is not None:
            self._call.cancel()
            self._call = None
        owners, self._owners = self._owners, {}
        self._order.clear()
        for works in owners.values():
            for work in works:
                if not work.ended.called:
                    work.ended.cancel()


def result_of(slices: ISlices, owner: object, steps: Steps[T]) -> Deferred[T]:
    """Do work in slices; fires with its result."""
    results: list[T] = []

    def work() -> Iterator[None]:
        results.append((yield from steps))

    return slices.run(owner, work()).addCallback(lambda _: results[0])


def done(
    slices: ISlices, owner: object, steps: Steps[T], is_short: bool
) -> T | Deferred[T]:
    """Do work now if it is short, and else in slices."""
    return finished(steps) if is_short else result_of(slices, owner, steps)


def only_stopped(failure: Failure) -> None:
    """Pass over that work was dropped because its server stops."""
    failure.trap(CancelledError)  # type: ignore[no-untyped-call]


def soon(slices: ISlices, owner: object, work: Iterator[None]) -> Deferred[None]:
    """Do C{work} now if it has no more than L{FEW_STEPS}, and its rest in slices.

    What small requests ask for is done and answered in their own turn.

    @return: as that of L{ISlices.run}; fired already if all is done.
    @raise Exception: what one of the first steps raises.
    """
    for _ in range(FEW_STEPS):
        try:
            next(work)
        except StopIteration:
            return succeed(None)
    return slices.run(owner, work)
