#!/usr/bin/env python3
"""What replication promises.

    python3 scripts/torture/replication.py [--count 200] [--pairs 2] [--java 1]
                                           [--quick] [--realtime]

Prints the figures of the rows that are named, or of all of them, with their bars; the
exit status is the number of bars that are missed, or of rows that could not be
measured.

The row I{episodes}: what befalls pairs of processes, C{--count} times, and what becomes
of what was sent; see C{replication_episodes.py}. C{--pairs} of them run at a
time. With C{--java 1}, pairs of Java brokers, which are not judged. With C{--quick} it
is not judged how late an answer is.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.pair import OURS
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.torture.replication_episodes import Episode, series

#: A few episodes that show most.
QUICK = [0, 1, 2, 3]

#: A slave of 5.3.3 never connects to a master whose address is in its settings.
JAVA = "5.3.3", "4.9.7"


def episodes(words: RowWords) -> Iterator[Figure | str]:
    """What befalls pairs."""
    numbers = QUICK if words.quick else [*range(words.count)]
    pairs = min(words.pairs, len(numbers))
    context = get_context("fork")
    found: Any = context.Queue()
    makers = JAVA if words.java else (OURS, OURS)
    processes = [
        context.Process(
            target=several, args=(makers, part, words.seed, not words.quick, found)
        )
        for part in (numbers[n::pairs] for n in range(pairs))
    ]
    for process in processes:
        process.start()
    kinds: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    faults = 0
    running = pairs
    while running:
        each: Episode | str | None = found.get()
        if each is None:
            running -= 1
        elif isinstance(each, str):
            faults += 1
            yield each
        else:
            kinds[each.name] += 1
            statuses += each.statuses
            yield f"{each.name}: {dict(each.statuses)} ({each.seconds:.1f} s)"
            for fault in each.faults[:10]:
                yield f"  WRONG: {fault}"
            faults += len(each.faults)
    for process in processes:
        process.join()
    for name, count in sorted(statuses.items()):
        yield Figure(f"answered {name}", count, "")
    yield Figure("episodes", kinds.total(), "", len(numbers), True, least=True)
    yield Figure("faults", faults, "", None if words.java else 0, True)


def several(
    makers: tuple[str, str], numbers: list[int], seed: int, is_timed: bool, found: Any
) -> None:
    """Episodes of one pair after the other, in a process of its own."""
    try:
        for each in series(*makers, numbers, seed, is_timed):
            found.put(each)
    except BaseException:
        found.put(traceback.format_exc())
    finally:
        found.put(None)


ROWS = {"episodes": episodes}


def main() -> int:
    """Measure the rows."""
    words = row_words(__doc__, ROWS, count=200, pairs=2, seed=1, java=0)
    return measure_rows(ROWS, words)


if __name__ == "__main__":
    sys.exit(main())
