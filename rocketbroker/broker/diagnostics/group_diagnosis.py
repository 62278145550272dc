# -*- test-case-name: tests.broker.diagnostics.test_group_diagnosis -*-
"""Problems of consumer groups that nothing else reports: found, logged, listed.

A heartbeat only marks its group as changed. Every few seconds the marked groups are
looked at, one after the other, as many as one look may take; all groups are, once
topics or groups have changed. Pulls that were refused
(L{rocketbroker.broker.pull.denied_pulls}) count for
as long as they come and the reason of their refusal lasts.

A problem is logged once, and once more when it is over. A problem that comes and goes
is logged again after five minutes at the earliest, so that it does not fill the log.
Nothing is kept beyond the process, as heartbeats bring it back.

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

import json
from collections.abc import Iterator
from typing import Final, final

import attrs
from twisted.logger import Logger

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.diagnostics.group_problems import (
    KINDS,
    LEADS_TO,
    Problem,
    problems_of,
)
from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.denied_pulls import (
    MAX_ADDRESSES,
    MAX_NOTED,
    DeniedPulls,
)
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

#: In the same units, what a group costs beside its members, who are one each, and what
#: a problem costs.
GROUP_WORK: Final = 50
PROBLEM_WORK: Final = 500

#: A younger problem is marked as new: while a service with other subscriptions replaces
#: the one before, its members differ. A member that went without a word is in the
#: registry for two minutes more; five leave time for a handful of restarts.
NEW_SECONDS: Final = 300.0

#: A pull that was refused counts for so long: clients ask again after some seconds,
#: those that choose their queues themselves perhaps each minute.
REFUSED_SECONDS: Final = 120.0

#: A problem that has been logged is not logged again for so long.
SILENT_SECONDS: Final = 300.0

#: So many characters a line of the log has about the members that differ; the list has
#: all.
MAX_LINE: Final = 1000


@attrs.frozen
class DiagnosisBounds:
    """What a diagnosis does, keeps and says at most.

    @ivar work: of one look, in units of a fifth of a microsecond: some 30 ms, of which
        no client waits for more than one group. Other groups wait for the next time:
        ten thousand take half a minute.
    @ivar kept: so many problems are listed. Others are counted, and looked at again
        when there is room.
    @ivar bytes: of the list as JSON: an answer has to fit into a frame of 16 MiB. A
        usual problem takes 1000, one that clients have made as large as they can
        100,000.
    @ivar logged: so many problems are logged within L{SILENT_SECONDS}, the others
        later.
    """

    work: int = 100_000
    kept: int = 1000
    bytes: int = 4 << 20
    logged: int = 100


#: Those of a broker; tests have smaller ones.
BOUNDS: Final = DiagnosisBounds()


@final
class GroupFinding:
    """A problem that is there now.

    @ivar problem: as it was seen last.
    @ivar since_ms: the time of day when it was seen first.
    @ivar since: the monotonic time of it, in seconds.
    @ivar size: of its JSON form, in bytes.
    @ivar logged: whether the log said so.
    """

    __slots__ = ("group", "logged", "problem", "since", "since_ms", "size")

    def __init__(
        self, group: str, problem: Problem, since: float, since_ms: int
    ) -> None:
        self.group = group
        self.problem = problem
        self.since = since
        self.since_ms = since_ms
        self.size = len(json.dumps(self.to_json(since)))
        self.logged = False

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
class GroupDiagnosis:
    """All problems of consumer groups.

    @ivar found: how many were found since the start, by kind.
    @ivar refusals: where pulls that are refused are noted.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        consumers: ConsumerRegistry,
        topics: TopicTable,
        groups: GroupTable,
        route_cache: RouteCache,
        refusals: DeniedPulls,
        bounds: DiagnosisBounds = BOUNDS,
    ) -> None:
        self.found = dict.fromkeys(KINDS, 0)
        self.refusals = refusals
        self._consumers = consumers
        self._topics = topics
        self._groups = groups
        self._route_cache = route_cache
        self._seconds = context.clock.seconds
        self._wall_ms = context.wall_ms
        self._bounds = bounds
        self._generations = (-1, -1)
        self._pending: dict[str, None] = {}
        self._findings: dict[str, dict[tuple[str, str], GroupFinding]] = {}
        self._kept = 0
        self._bytes = 0
        self._left_out: dict[str, int] = {}
        # By group, topic and address: when the last pull was refused.
        self._refused: dict[str, dict[str, dict[str, float]]] = {}
        # When each problem was logged, the oldest first.
        self._logged: dict[tuple[str, str, str], float] = {}

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
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

    def findings(self) -> list[GroupFinding]:
        """The problems that there are now, the oldest first."""
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

    def look(self) -> Iterator[None]:
        """Look at groups that have changed, as many as one look may take, each in a
        step."""
        self._note_refused()
        self._forget_logged()
        touched = self._consumers.touched
        for name in sorted(touched):
            self._pending[name] = None
        touched.clear()
        generations = self._topics.generation, self._groups.generation
        if generations != self._generations:
            self._generations = generations
            everything = [group.name for group in self._consumers.groups()]
            self._pending.update(dict.fromkeys(everything))
            self._pending.update(dict.fromkeys(self._refused))
        work = 0
        again: list[str] = []
        while self._pending and work < self._bounds.work:
            name = next(iter(self._pending))
            del self._pending[name]
            group = self._consumers.group(name)
            work += GROUP_WORK + (0 if group is None else len(group.members))
            if self._look_at(name):
                again.append(name)
            work += PROBLEM_WORK * len(self._findings.get(name, ()))
            yield
        for name in again:
            self._pending[name] = None
        for those in self._findings.values():
            for finding in those.values():
                if not finding.logged:
                    self._say(finding)

    def _note_refused(self) -> None:
        """Take over which pulls were refused, and forget those of long ago."""
        now = self._seconds()
        for group, topics in list(self._refused.items()):
            for topic, addresses in list(topics.items()):
                for address, seen in list(addresses.items()):
                    if now - seen > REFUSED_SECONDS:
                        del addresses[address]
                        self._pending[group] = None
                if not addresses:
                    del topics[topic]
            if not topics:
                del self._refused[group]
        count = sum(map(len, self._refused.values()))
        for (group, topic), those in self.refusals.take().items():
            topics = self._refused.setdefault(group, {})
            if topic not in topics:
                if count >= MAX_NOTED:
                    continue
                count += 1
            addresses = topics.setdefault(topic, {})
            for address in those:
                if address in addresses or len(addresses) < MAX_ADDRESSES:
                    if address not in addresses:
                        self._pending[group] = None
                    addresses[address] = now

    def _look_at(self, name: str) -> bool:
        """Look at one group; whether it has to be looked at again."""
        refused = self._refused.get(name, {})
        problems, unsettled = problems_of(
            name,
            self._consumers.group(name),
            self._topics,
            self._groups,
            self._route_cache,
            {topic: list(addresses) for topic, addresses in refused.items()},
        )
        before = self._findings.pop(name, {})
        self._left_out.pop(name, None)
        now: dict[tuple[str, str], GroupFinding] = {}
        new: list[Problem] = []
        for problem in problems:
            key = problem.kind, problem.subject
            known = before.pop(key, None)
            if known is None:
                new.append(problem)
                continue
            now[key] = self._see_again(known, problem)
        for finding in before.values():
            self._end(finding)
        if before:
            self._pending.update(dict.fromkeys(self._left_out))
        for problem in new:
            found = GroupFinding(name, problem, self._seconds(), self._wall_ms())
            if self._has_room(found):
                self._begin(found)
                now[problem.kind, problem.subject] = found
            else:
                self._left_out[name] = self._left_out.get(name, 0) + 1
        if now:
            self._findings[name] = now
        return unsettled

    def _has_room(self, finding: GroupFinding) -> bool:
        """Whether one more can be kept."""
        return (
            self._kept < self._bounds.kept
            and self._bytes + finding.size <= self._bounds.bytes
        )

    def _see_again(self, known: GroupFinding, problem: Problem) -> GroupFinding:
        """A problem that is still there; without room for it as it is, as it was."""
        if problem == known.problem:
            return known
        seen = GroupFinding(known.group, problem, known.since, known.since_ms)
        seen.logged = known.logged
        if self._bytes - known.size + seen.size > self._bounds.bytes:
            return known
        self._bytes += seen.size - known.size
        return seen

    def _begin(self, finding: GroupFinding) -> None:
        self._kept += 1
        self._bytes += finding.size
        self.found[finding.problem.kind] += 1

    def _say(self, finding: GroupFinding) -> None:
        """Log a problem, if that may be yet."""
        problem = finding.problem
        finding.logged = self._may_log(finding)
        if not finding.logged:
            return
        sides = "; ".join(
            f"{side.what!r}: {side.count} members, "
            f"{', '.join(repr(who.client_id) for who in side.members)}"
            for side in problem.sides
        )
        self._log.warn(
            "Group {group!r}: problem {kind} with {subject!r}: {sides}. {leads_to}",
            group=finding.group,
            kind=problem.kind,
            subject=problem.subject,
            sides=sides if len(sides) <= MAX_LINE else f"{sides[:MAX_LINE]}...",
            leads_to=LEADS_TO[problem.kind],
        )

    def _forget_logged(self) -> None:
        """Forget problems that were logged long ago, which may be logged again."""
        now = self._seconds()
        while self._logged:
            first = next(iter(self._logged))
            if now - self._logged[first] < SILENT_SECONDS:
                break
            del self._logged[first]

    def _may_log(self, finding: GroupFinding) -> bool:
        """Whether it was not logged lately, nor too much else."""
        key = finding.group, finding.problem.kind, finding.problem.subject
        if key in self._logged or len(self._logged) > self._bounds.logged:
            return False
        self._logged[key] = self._seconds()
        if len(self._logged) <= self._bounds.logged:
            return True
        self._log.warn(
            "Much is wrong with consumer groups; it is not all logged for "
            "{seconds} s. Request 31001 and /problems list it.",
            seconds=int(SILENT_SECONDS),
        )
        return False

    def _end(self, finding: GroupFinding) -> None:
        self._kept -= 1
        self._bytes -= finding.size
        if not finding.logged:
            return
        self._log.info(
            "Group {group!r}: problem {kind} with {subject!r} is over.",
            group=finding.group,
            kind=finding.problem.kind,
            subject=finding.problem.subject,
        )
