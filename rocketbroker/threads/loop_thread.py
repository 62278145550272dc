# -*- test-case-name: tests.threads -*-
"""The thread that runs the event loop of a session."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Executor, Future
from contextvars import copy_context
from typing import Any, TypeVar, final

from rocketbroker.client.connections import FOREIGN
from rocketbroker.errors import ClientClosed, ConfigurationError

A = TypeVar("A")
T = TypeVar("T")


@final
class LoopThread:
    """An event loop in a thread of its own.

    It is a daemon: a program whose other threads have ended ends.

    @ivar process_id: whose thread it is; a child of a fork has none.
    """

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(
            target=self._run, name="rocketbroker", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        # What other threads wait for would never end.
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there.

        @raise RuntimeError: this is that thread, which would wait for itself.
        @raise ClientClosed: the loop has been stopped.
        @raise ConfigurationError: this is a child of the process that has the thread.
        """
        if self.process_id != os.getpid():
            coroutine.close()
            raise ConfigurationError(FOREIGN)
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                "a blocking call in the thread of the event loop would wait for ever; "
                "use rocketbroker.aio in coroutines"
            )
        with self._lock:
            if not self._stopped and self._thread.is_alive():
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        coroutine.close()
        raise ClientClosed("the session was closed before")

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for its result.

        Whatever ends the wait early, such as KeyboardInterrupt, cancels it.

        @raise ClientClosed: another thread has stopped the loop meanwhile.
        """
        future = self.submit(coroutine)
        try:
            return future.result()
        except CancelledError:
            if self._stopped:
                raise ClientClosed("the session was closed meanwhile") from None
            raise
        except BaseException:
            future.cancel()
            raise

    async def in_pool(
        self, pool: Executor, function: Callable[[A], T], argument: A
    ) -> T:
        """In a coroutine of the loop: call a function in a thread of a pool, in the
        context of that coroutine."""
        context = copy_context()

        def call() -> T:
            return context.run(function, argument)

        return await self._loop.run_in_executor(pool, call)

    def soon(self, callback: Callable[[], object]) -> None:
        """Call there, and do not wait."""
        if self.process_id == os.getpid() and self._thread.is_alive():
            self._loop.call_soon_threadsafe(callback)

    def stop(self) -> None:
        """Stop the loop, and wait until the thread has ended.

        Calls of other threads that have not returned fail.
        """
        with self._lock:
            self._stopped = True
        self.soon(self._loop.stop)
        self._thread.join()
