# -*- test-case-name: tests.testing.brokers.test_coroutines -*-
"""Calls that wait, made by coroutines of asyncio and of Twisted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(
    function: Callable[P, T], /, *args: P.args, **options: P.kwargs
) -> T:
    """Call a function in a thread, for a coroutine of asyncio or of Twisted."""
    if is_of_asyncio():
        return await asyncio.to_thread(function, *args, **options)
    from twisted.internet.threads import deferToThread

    return await deferToThread(function, *args, **options)


def is_of_asyncio() -> bool:
    """Whether a task of asyncio runs. With Twisted none does, on asyncio's loop
    neither."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False
