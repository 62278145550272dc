#!/usr/bin/env python3
"""CPU of the broker for each message that is popped and acknowledged.

    python3 scripts/bench/pop_cost.py [--kit KIT] [--quick] [--realtime] [--compiled]

KIT is a kit.py that runs the Java broker, which is measured in the same rounds. The
exit status is the number of bars that are missed. --quick: small loads, by which no
times are judged. --compiled measures a copy of the checkout with the compiled codec.

Both brokers are up at the same time, with their default settings, and are measured in
rounds, one after the other, as the speed of a machine changes from hour to hour. A
round sends the messages, which does not count, and pops them in batches of 32. They are
acknowledged one by one, as the official client does it, or all of a pop at once. Each
check point and acknowledgement then goes through the timer and is revived; with a short
invisible time that is over soon, and counts, too, as does what the broker does
meanwhile without any load. The best round of each counts.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.peers import Target, cpu, create_topic
from scripts.lab.pop_load import Member, consume, fill
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.lab.targets import Scale

TOPIC: Final = "Popped"
QUEUES: Final = 8
GROUP: Final = "poppers"
BODY: Final = b"x" * 128

#: Connections, and how many pops of each are under way.
MEMBERS: Final = 4
WINDOW: Final = 4

INVISIBLE_MS: Final = 10_000

#: So long after the load all of it is revived: acknowledgements are waited for.
REVIVED_SECONDS: Final = 16.0

#: The part of Java's CPU that is the bar.
BAR: Final = 1 / 3

#: So many rounds of Java do not count: it is slow for more than half a minute.
WARM_ROUNDS: Final = 5


#: How the messages of a pop are acknowledged: as the official client does it by
#: remoting, and by a Proxy that is told to.
LOADS: Final = "one by one", "at once"


class Measured(NamedTuple):
    """A round.

    @ivar us: CPU for each message while it is popped and acknowledged, in microseconds.
    @ivar whole_us: that and what comes after it.
    @ivar rate: messages a second.
    """

    us: float
    whole_us: float
    rate: float


def a_round(target: Target, load: str, count: int, after: float) -> Measured:
    """One round.

    @param load: one of L{LOADS}.
    @param after: so long it is looked at what comes after the load, in seconds.
    """
    fill(target.port, TOPIC, QUEUES, count, BODY)
    time.sleep(0.5)
    one_by_one = load == "one by one"
    members = [
        Member(target.port, TOPIC, GROUP, INVISIBLE_MS, one_by_one)
        for _ in range(MEMBERS)
    ]
    begin = cpu(target.pid)
    seconds = consume(members, WINDOW, count)
    used = cpu(target.pid) - begin
    for member in members:
        member.close()
    time.sleep(after)
    whole = cpu(target.pid) - begin
    return Measured(used / count * 1e6, whole / count * 1e6, count / seconds)


def cost(words: RowWords) -> Iterator[Figure | str]:
    """Measure in rounds."""
    scale = Scale(words.quick, words.kit)
    count = scale.of(64_000, 1600)
    rounds, after = (1, 0.5) if scale.quick else (3, REVIVED_SECONDS)
    found: dict[tuple[str, str], list[Measured]] = {}
    with contextlib.ExitStack() as stack:
        targets = {"ours": stack.enter_context(scale.ours())}
        if scale.kit is not None:
            targets["Java"] = stack.enter_context(scale.java(scale.kit))
        for name, target in targets.items():
            create_topic(target.port, TOPIC, QUEUES)
            warm = WARM_ROUNDS if name == "Java" and not scale.quick else 1
            for _ in range(warm):
                for load in LOADS:
                    one = a_round(target, load, count, 0)
                    yield f"warming {name}, {load}: {one.us:.1f} us, {one.rate:,.0f}/s"
        time.sleep(after)
        for number in range(rounds):
            for load in LOADS:
                for name, target in targets.items():
                    one = a_round(target, load, count, after)
                    found.setdefault((load, name), []).append(one)
                    yield (
                        f"round {number + 1}, {load}, {name}: {one.us:.1f} us, with "
                        f"what comes after {one.whole_us:.1f} us, {one.rate:,.0f}/s"
                    )
    for load in LOADS:
        yield from figures(load, found, [*targets])


def figures(
    load: str, found: dict[tuple[str, str], list[Measured]], names: list[str]
) -> Iterator[Figure]:
    """The best rounds of a load, and what they are of each other."""
    us = {name: min(each.us for each in found[load, name]) for name in names}
    whole = {name: min(each.whole_us for each in found[load, name]) for name in names}
    for name in names:
        yield Figure(f"{load}, {name}: popped and acknowledged", us[name], "us")
        yield Figure(f"{load}, {name}: with what comes after", whole[name], "us")
    if "Java" in names:
        part = us["ours"] / us["Java"]
        yield Figure(f"{load}: part of Java's CPU", part, "", BAR)
        part = whole["ours"] / whole["Java"]
        yield Figure(f"{load}: with what comes after", part, "", BAR)


ROWS = {"cost": cost}


def main() -> int:
    """Measure."""
    return measure_rows(ROWS, row_words(__doc__, ROWS))


if __name__ == "__main__":
    sys.exit(main())
