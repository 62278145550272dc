#!/usr/bin/env python3
"""What POP promises.

    python3 scripts/torture/pop.py [--rounds 300] [--seconds S] [--workers N]
        [--directory DIR] [--java N] [--kit KIT] [--quick] [--realtime] [--compiled]
        [ROW ...]

Prints the figures of the rows that are named, or of all of them, with their bars; the
exit status is the number of bars that are missed, or of rows that could not be
measured.

The row I{kills}: kill -9 in each of C{--rounds} rounds of a run with pops,
acknowledgements, changes of invisible times, timers and recalls; see C{pop_kills.py}.
With C{--java N}, N kills of a Java broker with the same load, which is not judged.

The row I{order}: 20 joins and leaves of members that pop in order, and of 20 handlings
one fails; with KIT, a kit.py that runs the Java broker, that one, too, which is not
judged; see C{pop_order.py}.

The row I{clients}: so does the official client, in the mode POP.

--quick: small loads, by which no times are judged.

--compiled measures a copy of the checkout with the compiled codec.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.pair import OURS
from scripts.lab.rows import Figure, measure_rows
from scripts.lab.targets import Scale
from scripts.torture import pop_kills, pop_order
from scripts.torture.harness import Words, options, parsed


def kills(words: Words) -> Iterator[Figure | str]:
    """What kills do to messages in flight."""
    yield from pop_kills.rows(OURS, words.numbers(), words)
    if words.java:
        yield from pop_kills.rows("5.3.3", iter(range(words.java)), words)


def order(words: Words) -> Iterator[Figure | str]:
    """Messages that are popped in order."""
    yield from pop_order.order(Scale(words.quick, words.kit))


def clients(words: Words) -> Iterator[Figure | str]:
    """Official clients."""
    yield from pop_order.by_clients(Scale(words.quick, words.kit))


ROWS = {"kills": kills, "order": order, "clients": clients}


def main() -> int:
    """Measure the rows."""
    parser = options(__doc__)
    parser.add_argument("--java", type=int, default=0)
    return measure_rows(ROWS, parsed(parser, 300, 2, ROWS))


if __name__ == "__main__":
    sys.exit(main())
