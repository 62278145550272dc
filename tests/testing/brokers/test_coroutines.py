"""Whose coroutine waits for a broker."""

from __future__ import annotations

import asyncio

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.brokers.coroutines import is_of_asyncio


class IsOfAsyncioTests(SynchronousTestCase):
    """L{is_of_asyncio}."""

    def test_taskOfAsyncioIs(self) -> None:
        """It can wait for futures of asyncio only."""

        async def ask() -> bool:
            return is_of_asyncio()

        self.assertTrue(asyncio.run(ask()))

    def test_coroutineOfTwistedOnLoopOfAsyncioIsNot(self) -> None:
        """Twisted's reactor on asyncio's loop runs them without a task."""
        found: list[bool] = []
        loop = asyncio.new_event_loop()
        loop.call_soon(lambda: found.append(is_of_asyncio()))
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        self.assertEqual(found, [False])

    def test_withoutLoopItIsNot(self) -> None:
        """Twisted's other reactors have none."""
        self.assertFalse(is_of_asyncio())
