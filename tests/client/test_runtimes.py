"""What every runtime does, as far as no socket is needed."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.connections import Connections
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.runtimes.machine import reason
from rocketbroker.client.runtimes.on_asyncio import AsyncioRuntime
from rocketbroker.client.runtimes.on_twisted import TwistedRuntime
from rocketbroker.client.waits import Tasks
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.errors import ConnectionLost, RequestTimeout
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.runtime import MemoryRuntime
from rocketbroker.wire.command import Command, response_to

# Trial would run a contract that is a test case by itself.
if TYPE_CHECKING:
    Case = SynchronousTestCase
else:
    Case = object

T = TypeVar("T")

#: A coroutine function of a runtime.
Scenario = Callable[[Runtime], Coroutine[Any, Any, T]]


class RuntimeContract(Case):
    """Futures, tasks and timers."""

    def outcome(self, scenario: Scenario[T]) -> T:
        """What a scenario returns."""
        raise AssertionError("made by those that inherit it")

    def test_futureGivesItsResult(self) -> None:
        """Set before or after it is awaited; an error is raised."""

        async def scenario(runtime: Runtime) -> list[object]:
            early, late, failing = (runtime.future() for _ in range(3))
            early.set_result(1)
            runtime.call_later(0, late.set_result, 2)
            runtime.call_later(0.001, failing.set_exception, ValueError("3"))
            told: list[object] = [early.done(), await early, await late]
            try:
                await failing
            except ValueError as problem:
                told.append(str(problem))
            return told

        self.assertEqual(self.outcome(scenario), [True, 1, 2, "3"])

    def test_callsComeInTheirOrder(self) -> None:
        """By time, those of one turn as they were asked for; a cancelled one not."""

        async def scenario(runtime: Runtime) -> list[str]:
            told: list[str] = []
            runtime.call_later(0.002, told.append, "late")
            runtime.call_later(0, told.append, "first")
            gone = runtime.call_later(0, told.append, "gone")
            runtime.call_later(0, told.append, "second")
            gone.cancel()
            gone.cancel()
            told.append("now")
            await runtime.sleep(0.05)
            return told

        self.assertEqual(self.outcome(scenario), ["now", "first", "second", "late"])

    def test_taskBeginsInTheNextTurn(self) -> None:
        """Not inside of the call that makes it."""

        async def scenario(runtime: Runtime) -> list[str]:
            told: list[str] = []
            tasks = Tasks(runtime)

            async def work() -> None:
                told.append("begun")

            tasks.spawn(work())
            told.append("spawned")
            await tasks.all_ended()
            return told

        self.assertEqual(self.outcome(scenario), ["spawned", "begun"])

    def test_cancelledTaskCleansUp(self) -> None:
        """It may wait once more in its last part; its future is done."""

        async def scenario(runtime: Runtime) -> list[object]:
            told: list[object] = []
            tasks = Tasks(runtime)
            future = runtime.future()

            async def work() -> None:
                try:
                    await future
                except runtime.cancelled:
                    told.append("cancelled")
                    raise
                finally:
                    await runtime.sleep(0)
                    told.append("clean")

            tasks.spawn(work())
            await runtime.sleep(0.001)
            await tasks.end()
            return [*told, future.done()]

        self.assertEqual(self.outcome(scenario), ["cancelled", "clean", True])

    def test_clocksAndIdentity(self) -> None:
        """Time goes forward, and the address has 4 or 16 bytes."""

        async def scenario(runtime: Runtime) -> None:
            before, wall = runtime.monotonic(), runtime.wall_ms()
            await runtime.sleep(0.001)
            self.assertGreater(runtime.monotonic(), before)
            self.assertGreaterEqual(runtime.wall_ms(), wall)
            self.assertIn(len(runtime.identity().address), (4, 16))

        self.outcome(scenario)


class MemoryRuntimeTests(RuntimeContract, SynchronousTestCase):
    """The one of tests."""

    def outcome(self, scenario: Scenario[T]) -> T:
        """See L{RuntimeContract}."""
        runtime = MemoryRuntime()
        outcome = runtime.start(scenario(runtime))
        runtime.advance(1.0)
        return outcome.value()


class AsyncioRuntimeTests(RuntimeContract, SynchronousTestCase):
    """The one on asyncio."""

    def outcome(self, scenario: Scenario[T]) -> T:
        """See L{RuntimeContract}."""
        return asyncio.run(scenario(AsyncioRuntime()))


class TwistedRuntimeTests(RuntimeContract, SynchronousTestCase):
    """The one on Twisted, on a reactor whose network is in memory."""

    def setUp(self) -> None:
        self.network = MemoryNetwork()
        self.runtime = TwistedRuntime(cast(Any, self.network))

    def outcome(self, scenario: Scenario[T]) -> T:
        """See L{RuntimeContract}."""
        return self.finish(scenario(self.runtime))

    def finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that ends within a second."""
        done = Deferred.fromCoroutine(coroutine)
        for _ in range(1000):
            self.network.advance(0.001)
        return self.successResultOf(done)

    def server(self) -> int:
        """A server that answers with what it got; its port."""
        table = ResponderTable()

        def echo(connection: IConnection, command: Command) -> Command:
            return response_to(command, body=command.body)

        table.register(1, echo)
        server = RemotingServer(cast(Any, self.network), RemotingServerOptions(), table)
        return server.listen(0)

    def test_requestsFindTheirWay(self) -> None:
        """There and back; and again after the connection was lost."""
        port = self.server()
        connections = Connections(self.runtime)
        address = f"127.0.0.1:{port}"

        async def ask(body: bytes) -> bytes:
            return (await connections.ask(address, Command(1, {}, body), 0.5)).body

        self.assertEqual(self.finish(ask(b"one")), b"one")
        self.network.break_all(port)
        self.network.settle()
        self.assertEqual(self.finish(ask(b"two")), b"two")
        self.assertEqual(connections.to(address).connects, 2)
        self.finish(connections.close())
        self.assertEqual(self.network.transports, [])
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_nobodyListens(self) -> None:
        """Refused, or silent until the time is over, or no longer wanted."""
        connections = Connections(self.runtime)
        self.network.silent.add(2)
        for port in (1, 2):
            address = f"127.0.0.1:{port}"
            asking = connections.ask(address, Command(1), 0.5)
            failed = Deferred.fromCoroutine(asking)
            self.network.advance(0.6)
            self.failureResultOf(failed, ConnectionLost, RequestTimeout)
        waiting = Deferred.fromCoroutine(
            connections.ask("127.0.0.1:2", Command(1), 0.5)
        )
        self.network.settle()
        self.finish(connections.close())
        self.failureResultOf(waiting)
        self.assertEqual(self.network.getDelayedCalls(), [])


class ReasonTests(SynchronousTestCase):
    """Why a socket failed, in words."""

    def test_reasonIsNeverEmpty(self) -> None:
        """Whatever the system gives."""
        refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed")
        self.assertEqual(reason(refused), os.strerror(errno.ECONNREFUSED))
        self.assertEqual(reason(OSError(5, "no disk")), "no disk")
        self.assertEqual(reason(TimeoutError()), "no answer in time")
        self.assertEqual(reason(UnicodeError("x")), "no host has such a name")
