# -*- test-case-name: tests.wire.test_steps -*-
"""Steps of work that ends with a result.

What takes long over a body or a table is a generator: each C{next()} of it is one short
step. A server does the steps in slices (L{rocketbroker.remoting.cooperative_tasks}),
between which it serves others.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

#: Work that ends with a result.
Steps: TypeAlias = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    """The result of work whose steps are all done now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
