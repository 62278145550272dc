# -*- test-case-name: tests.config.test_forks -*-
"""Forks: who has to be told in a child that it is another process.

A child shares the sockets of its parent. What both send over one arrives mixed, and
closing it in the child may close it for the parent. So whoever has sockets leaves them
alone in a child, and makes its own.
"""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """What has something that belongs to one process."""

    def forked(self) -> None:
        """This is the child of a fork: what was made before is the parent's."""


_watching: Final[WeakSet[Forked]] = WeakSet()


def watch(one: Forked) -> None:
    """Tell it in each child of this process, as long as there is anybody else who has
    it."""
    _watching.add(one)


def tell() -> None:
    """This is a child: tell all."""
    for one in [*_watching]:
        one.forked()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=tell)
