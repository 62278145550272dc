# -*- test-case-name: tests.broker.test_discrepancies -*-
"""What is wrong with consumer groups and nobody else tells: found, logged, listed.

Heartbeats only leave the name of a group that has changed. Every few seconds those are
looked at, a bounded number of members at a time, and all of them once topics or groups
have changed. What is found is logged once, and once more when it is over; it is not
kept beyond the process, as heartbeats bring it back.

GET_GROUP_PROBLEMS (31001) lists it. Its body::

    {"problems": [{"kind": "subscriptions", "group": "G", "subject": "T",
                   "sinceMs": 1700000000000, "new": false, "leadsTo": "...",
                   "sides": [{"what": "a || b", "count": 1, "members": [
                       {"clientId": "10.0.0.9@1", "clientAddr": "10.0.0.9:4711",
                        "language": "JAVA", "version": 479}]}]}],
     "leftOut": 0}

The version is the ordinal of RocketMQ's releases, as in lists of connections. C{new}:
it may yet be the change from one release of a service to the next, see L{NEW_SECONDS}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.broker.bodies import with_body
from rocketbroker.broker.consumers import ConsumerRegistry
from rocketbroker.broker.group_problems import KINDS, LEADS_TO, Problem, problems_of
from rocketbroker.broker.groups import GroupTable
from rocketbroker.broker.topics import TopicTable
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

#: How often groups that have changed are looked at.
LOOK_SECONDS: Final = 5.0

#: So many members are looked at in one go, and of the last group all: a microsecond
#: each, in which nobody is served. The others wait for the next time.
MOST_MEMBERS: Final = 10_000

#: What is younger is marked as new: while a service with other subscriptions replaces
#: the one before, its members differ. A member that went without a word is in the
#: registry for two minutes more; five leave time for a handful of restarts.
NEW_SECONDS: Final = 300.0

#: So many problems are kept and listed: each takes some kilobytes. Others are counted,
#: and looked at again when there is room.
MOST_KEPT: Final = 1000


@final
class Finding:
    """A problem that is there now.

    @ivar problem: as it was seen last.
    @ivar since_ms: the time of day when it was seen first.
    @ivar since: the monotonic time of it, in seconds.
    """

    __slots__ = ("group", "problem", "since", "since_ms")

    def __init__(
        self, group: str, problem: Problem, since: float, since_ms: int
    ) -> None:
        self.group = group
        self.problem = problem
        self.since = since
        self.since_ms = since_ms

    def to_json(self, now: float) -> dict[str, object]:
        """As the request lists it."""
        problem = self.problem
        return {
            "kind": problem.kind,
            "group": self.group,
            "subject": problem.subject,
            "sinceMs": self.since_ms,
            "new": now - self.since < NEW_SECONDS,
            "leadsTo": LEADS_TO[problem.kind],
            "sides": [side.to_json() for side in problem.sides],
        }


@final
class Discrepancies:
    """All problems of consumer groups.

    @ivar found: how many were found since the start, by kind.
    """

    _log = Logger()

    def __init__(
        self,
        consumers: ConsumerRegistry,
        topics: TopicTable,
        groups: GroupTable,
        seconds: Callable[[], float],
        wall_ms: Callable[[], int],
        most_kept: int = MOST_KEPT,
        most_members: int = MOST_MEMBERS,
    ) -> None:
        """
        @param seconds: the monotonic time.
        """
        self.found = dict.fromkeys(KINDS, 0)
        self._consumers = consumers
        self._topics = topics
        self._groups = groups
        self._seconds = seconds
        self._wall_ms = wall_ms
        self._most_kept = most_kept
        self._most_members = most_members
        self._generations = (-1, -1)
        self._pending: dict[str, None] = {}
        self._findings: dict[str, dict[tuple[str, str], Finding]] = {}
        self._kept = 0
        self._left_out: dict[str, int] = {}

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.GET_GROUP_PROBLEMS, self.problems)

    def problems(self, connection: IConnection, request: Command) -> Command:
        """Request 31001, of ours: see the head of this module.

        The field C{group} of the request picks one group.
        """
        return with_body(request, self.to_json((request.ext or {}).get("group")))

    def to_json(self, group: str | None = None) -> dict[str, object]:
        """All problems, or those of one group."""
        now = self._seconds()
        return {
            "problems": [
                finding.to_json(now)
                for finding in self.findings()
                if group is None or finding.group == group
            ],
            "leftOut": self.left_out,
        }

    def findings(self) -> list[Finding]:
        """What is there now, the oldest first."""
        found = [f for those in self._findings.values() for f in those.values()]
        return sorted(found, key=lambda finding: finding.since)

    def counts(self) -> dict[tuple[str, bool], int]:
        """How many problems there are now, by kind and whether they are new."""
        counted = {(kind, new): 0 for kind in KINDS for new in (False, True)}
        newest = self._seconds() - NEW_SECONDS
        for finding in self.findings():
            counted[finding.problem.kind, finding.since > newest] += 1
        return counted

    @property
    def left_out(self) -> int:
        """How many problems there was no room for."""
        return sum(self._left_out.values())

    def look(self) -> None:
        """Look at groups that have changed, as many as one go may take."""
        touched = self._consumers.touched
        for name in sorted(touched):
            self._pending[name] = None
        touched.clear()
        generations = self._topics.generation, self._groups.generation
        if generations != self._generations:
            self._generations = generations
            everything = [group.name for group in self._consumers.groups()]
            self._pending.update(dict.fromkeys(everything))
        looked = 0
        again: list[str] = []
        while self._pending and looked < self._most_members:
            name = next(iter(self._pending))
            del self._pending[name]
            group = self._consumers.group(name)
            looked += 1 if group is None else len(group.members)
            if self._look_at(name):
                again.append(name)
        for name in again:
            self._pending[name] = None

    def _look_at(self, name: str) -> bool:
        """Look at one group; whether it has to be looked at again."""
        group = self._consumers.group(name)
        problems: list[Problem] = []
        unsettled = False
        if group is not None:
            problems, unsettled = problems_of(group, self._topics, self._groups)
        before = self._findings.pop(name, {})
        self._kept -= len(before)
        self._left_out.pop(name, None)
        now: dict[tuple[str, str], Finding] = {}
        for problem in problems:
            key = problem.kind, problem.subject
            finding = before.pop(key, None)
            if finding is not None:
                finding.problem = problem
            elif self._kept + len(before) + len(now) < self._most_kept:
                finding = self._begin(name, problem)
            else:
                self._left_out[name] = self._left_out.get(name, 0) + 1
                continue
            now[key] = finding
        for finding in before.values():
            self._end(finding)
        if before:
            self._pending.update(dict.fromkeys(self._left_out))
        if now:
            self._findings[name] = now
            self._kept += len(now)
        return unsettled

    def _begin(self, group: str, problem: Problem) -> Finding:
        self.found[problem.kind] += 1
        self._log.warn(
            "Group {group!r}: problem {kind} with {subject!r}: {sides}. {leads_to}",
            group=group,
            kind=problem.kind,
            subject=problem.subject,
            sides="; ".join(
                f"{side.what!r}: {side.count} members, "
                f"{', '.join(repr(who.client_id) for who in side.members)}"
                for side in problem.sides
            ),
            leads_to=LEADS_TO[problem.kind],
        )
        return Finding(group, problem, self._seconds(), self._wall_ms())

    def _end(self, finding: Finding) -> None:
        self._log.info(
            "Group {group!r}: problem {kind} with {subject!r} is over.",
            group=finding.group,
            kind=finding.problem.kind,
            subject=finding.problem.subject,
        )
