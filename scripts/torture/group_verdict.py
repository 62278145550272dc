"""What became of the queues and the messages of a group; see group.py.

Two owners of a queue, or none, are told by what members say, all asked ten times a
second. A member that joins or leaves meanwhile is not asked; it may own anything. Order
is told by the lines of members: all lines about one queue, by their times, go on by one
message each, or go back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

#: The queues of each member that was asked; None of one that may own anything.
Owned = Mapping[str, frozenset[int] | None]


class Line(NamedTuple):
    """One message at one member.

    @ivar at: when it was given out there, in ns of the machine's clock.
    """

    at: int
    queue: int
    offset: int
    number: int

    @classmethod
    def of(cls, text: str) -> Line:
        """As members write it."""
        return cls(*map(int, text.split()))


class Watch:
    """How long queues have had two owners, or none.

    @ivar longest: in seconds, of each: C{"two owners"}, C{"no owner"}.
    """

    def __init__(self, queues: int) -> None:
        self._queues = queues
        self._since: dict[tuple[str, int], float] = {}
        self.longest = {"two owners": 0.0, "no owner": 0.0}
        self.all_is_well = False

    def see(self, at: float, owned: Owned) -> None:
        """What members said at a time, in seconds."""
        known = [queues for queues in owned.values() if queues is not None]
        count = Counter(queue for queues in known for queue in queues)
        maybe = len(owned) - len(known)
        self.all_is_well = not maybe
        for queue in range(self._queues):
            # What one that was not asked may change is as it was.
            if count[queue] > 1 or not maybe:
                self._note("two owners", queue, at, count[queue] > 1)
            if count[queue] or not maybe:
                self._note("no owner", queue, at, not count[queue])
            self.all_is_well &= count[queue] == 1

    def _note(self, what: str, queue: int, at: float, is_so: bool) -> None:
        since = self._since.setdefault((what, queue), at)
        # Up to now, also if it has just ended: it may have lasted so long.
        self.longest[what] = max(self.longest[what], at - since)
        if not is_so:
            del self._since[what, queue]


def counts(lines: Iterable[Line], sent: int) -> Counter[str]:
    """What became of the messages 0 to C{sent}."""
    found: Counter[str] = Counter()
    by_queue: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        by_queue[line.queue].append(line)
    seen = {line.number for several in by_queue.values() for line in several}
    found["lost"] = len(set(range(sent)) - seen)
    found["handled"] = sum(map(len, by_queue.values()))
    found["handled again"] = found["handled"] - len(seen)
    for several in by_queue.values():
        several.sort()
        before = -1
        for line in several:
            found["out of order"] += line.offset > before + 1
            before = line.offset
    return found
