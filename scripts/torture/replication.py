#!/usr/bin/env python3
"""What replication promises.

    python3 scripts/torture/replication.py [--rounds 200] [--seconds S] [--workers N]
        [--directory DIR] [--pairs 2] [--java 1] [--seed 1] [--quick] [--realtime]

Prints the figures of the rows that are named, or of all of them, with their bars; the
exit status is the number of bars that are missed, or of rows that could not be
measured.

The row I{episodes}: what befalls pairs of processes, in C{--rounds} rounds, and what
becomes of what was sent; see C{replication_episodes.py}. C{--pairs} of them run at a
time. With C{--java 1}, pairs of Java brokers, which are not judged. With C{--quick} it
is not judged how late an answer is.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.pair import OURS
from scripts.lab.rows import Figure, measure_rows
from scripts.torture.harness import EXAMPLES, Words, options, parsed
from scripts.torture.replication_episodes import Episode, series

#: The first few episodes show most.
QUICK = 4

#: A slave of 5.3.3 never connects to a master whose address is in its settings.
JAVA = "5.3.3", "4.9.7"


def episodes(words: Words) -> Iterator[Figure | str]:
    """What befalls pairs."""
    least = 1 if words.rounds is None or words.seconds else words.rounds
    pairs = min(words.pairs, words.rounds or words.pairs)
    context = get_context("fork")
    found: Any = context.Queue()
    makers = JAVA if words.java else (OURS, OURS)
    processes = [
        context.Process(target=several, args=(makers, number, pairs, words, found))
        for number in range(pairs)
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
            for fault in each.faults[:EXAMPLES]:
                yield f"  WRONG: {fault}"
            faults += len(each.faults)
    for process in processes:
        process.join()
    for name, count in sorted(statuses.items()):
        yield Figure(f"answered {name}", count, "")
    yield Figure("episodes", kinds.total(), "", least, True, least=True)
    yield Figure("faults", faults, "", None if words.java else 0, True)


def several(
    makers: tuple[str, str], number: int, pairs: int, words: Words, found: Any
) -> None:
    """Episodes of one pair after the other, in a process of its own.

    @param number: of this process.
    @param pairs: how many there are.
    """
    try:
        numbers = islice(words.numbers(), number, None, pairs)
        for each in series(*makers, numbers, words):
            found.put(each)
    except BaseException:
        found.put(traceback.format_exc())
    finally:
        found.put(None)


ROWS = {"episodes": episodes}


def main() -> int:
    """Measure the rows."""
    parser = options(__doc__)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--java", type=int, default=0)
    return measure_rows(ROWS, parsed(parser, 200, QUICK, ROWS))


if __name__ == "__main__":
    sys.exit(main())
