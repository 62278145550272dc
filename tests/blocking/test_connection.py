"""One server, and the requests under way to it."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.connection import (
    HELD_BYTES,
    MAX_REFUSALS,
    ServerConnection,
)
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimeout,
)
from rocketbroker.testing.scripted import Script, ScriptedMachine, answer
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.frames import encode


def echo(command: Command) -> Command:
    """The body comes back."""
    return answer(0, body=command.body)


class ConnectionTests(SynchronousTestCase):
    """Against a scripted server."""

    def make(self, script: Script = echo) -> ServerConnection:
        """A connection to a server that does what the script says."""
        self.machine = ScriptedMachine({"a:1": script})
        return ServerConnection(self.machine, "a:1")

    def test_onUse(self) -> None:
        """Nothing is opened before the first request, and once for all of them."""
        connection = self.make()
        self.assertEqual(self.machine.streams, [])
        for body in (b"x", b"y"):
            found = connection.invoke(Command(1, body=body), 3.0)
            self.assertEqual(found.body, body)
        self.assertEqual(connection.connects, 1)
        self.assertEqual(connection.requests, 2)

    def test_closedWhileIdleIsConnectedAnew(self) -> None:
        """Unseen: nothing of the next request had gone out."""
        connection = self.make()
        for _ in range(2):
            connection.invoke(Command(1), 3.0)
            self.machine.streams[-1].hung_up = True
            self.machine.now += 120
            self.assertEqual(connection.invoke(Command(1), 3.0).code, 0)
            self.machine.now += 120
            connection.oneway(Command(1))
        self.assertEqual(connection.connects, 3)
        self.assertTrue(self.machine.streams[0].closed)

    def test_inFlight(self) -> None:
        """Answers are given to those who asked, in whatever order they come."""
        held: list[Command] = []

        def script(command: Command) -> Sequence[Command]:
            held.append(command)
            if len(held) < 3:
                return []
            return [
                answer(0, body=one.body, opaque=one.opaque) for one in reversed(held)
            ]

        connection = self.make(script)
        tickets = [
            connection.submit(Command(1, body=body), 3.0) for body in (b"1", b"2", b"3")
        ]
        self.assertEqual(connection.under_way, 3)
        bodies = [connection.collect(ticket).body for ticket in tickets]
        self.assertEqual(bodies, [b"1", b"2", b"3"])
        self.assertEqual(connection.under_way, 0)

    def test_byteByByte(self) -> None:
        """However little one read or write moves, everything arrives."""
        connection = self.make()
        self.machine.read_size = self.machine.write_size = 1
        tickets = [connection.submit(Command(1, body=b"b"), 3.0) for _ in range(3)]
        for ticket in tickets:
            self.assertEqual(connection.collect(ticket).body, b"b")

    def test_timeout(self) -> None:
        """A silent server is given up when the time is over, and closed."""
        connection = self.make(lambda command: None)
        before = self.machine.now
        with self.assertRaises(RequestTimeout):
            connection.invoke(Command(1), 3.0)
        self.assertEqual(self.machine.now, before + 3.0)
        self.assertTrue(self.machine.streams[0].closed)
        self.assertEqual(connection.under_way, 0)

    def test_timeoutTakesOthersAlong(self) -> None:
        """What else was under way is lost with the connection."""
        connection = self.make(lambda command: None)
        first = connection.submit(Command(1), 9.0)
        second = connection.submit(Command(1), 1.0)
        self.assertRaises(RequestTimeout, connection.collect, second)
        self.assertRaises(ConnectionLost, connection.collect, first)

    def test_opensAgain(self) -> None:
        """After a loss the next request opens it again."""
        silent = iter([True, False])
        connection = self.make(lambda command: None if next(silent) else echo(command))
        self.assertRaises(RequestTimeout, connection.invoke, Command(1), 1.0)
        self.assertEqual(connection.invoke(Command(1, body=b"x"), 1.0).body, b"x")
        self.assertEqual(connection.connects, 2)

    def test_hungUp(self) -> None:
        """A server that hangs up loses what is under way, at once."""

        def script(command: Command) -> Command:
            if command.code == 2:
                raise ConnectionLost
            return echo(command)

        connection = self.make(script)
        before = self.machine.now
        first = connection.submit(Command(1, body=b"x"), 3.0)
        second = connection.submit(Command(2), 3.0)
        self.assertEqual(connection.collect(first).body, b"x")
        self.assertRaises(ConnectionLost, connection.collect, second)
        self.assertEqual(self.machine.now, before)

    def test_sendToNobody(self) -> None:
        """A connection that broke unnoticed is found when it is written to."""
        connection = self.make()
        connection.invoke(Command(1), 1.0)
        self.machine.streams[0].hung_up = True
        with self.assertRaisesRegex(ConnectionLost, "^the connection to .*:.* is gone"):
            connection.submit(Command(1), 1.0)
        self.assertEqual(connection.invoke(Command(1), 1.0).code, 0)

    def test_nobody(self) -> None:
        """A server that cannot be reached is lost from the start."""
        self.machine = ScriptedMachine({})
        connection = ServerConnection(self.machine, "a:1")
        self.assertRaises(ConnectionLost, connection.submit, Command(1), 1.0)
        self.assertRaises(ConfigurationError, ServerConnection, self.machine, "a")

    def test_garbage(self) -> None:
        """What came before nonsense counts; then the connection is closed."""
        connection = self.make(lambda command: None)
        first = connection.submit(Command(1), 1.0)
        second = connection.submit(Command(1), 1.0)
        nonsense = b"HTTP/1.1 400 Bad Request\r\n\r\n"
        self.machine.streams[0].push(encode(answer(opaque=first)) + nonsense)
        self.assertRaises(RemoteProtocolError, connection.collect, second)
        self.assertTrue(self.machine.streams[0].closed)
        self.assertEqual(connection.collect(first).code, 0)

    def test_requestsOfTheServer(self) -> None:
        """What the server asks is refused if it wants an answer, and else dropped."""
        heard: list[Command] = []

        def script(command: Command) -> Sequence[Command]:
            if command.is_response:
                heard.append(command)
                return []
            return [
                Command(40, {"consumerGroup": "g"}, flag=ONEWAY, opaque=5),
                Command(307, opaque=6),
                echo(command),
            ]

        connection = self.make(script)
        self.assertEqual(connection.invoke(Command(1, body=b"x"), 1.0).body, b"x")
        connection.invoke(Command(1), 1.0)
        self.assertEqual([(one.code, one.opaque) for one in heard], [(3, 6)])
        self.assertIn("307", heard[0].remark or "")
        self.assertEqual(connection.dropped, 4)

    def test_refusalsAreLimited(self) -> None:
        """A server that only asks does not make us hold refusals without end."""
        asked = [Command(307, opaque=n) for n in range(3 * MAX_REFUSALS)]
        connection = self.make(
            lambda command: None if command.is_response else [*asked, echo(command)]
        )
        connection.invoke(Command(1), 1.0)
        connection.invoke(Command(1), 1.0)
        self.assertLessEqual(self.machine.codes().count(3), MAX_REFUSALS)

    def test_held(self) -> None:
        """Requests that may be held go out together, when an answer is waited for."""
        connection = self.make()
        tickets = [
            connection.submit(Command(1, body=b"%d" % n), 1.0, hold=True)
            for n in range(3)
        ]
        self.assertEqual(self.machine.requests, [])
        bodies = [connection.collect(ticket).body for ticket in tickets]
        self.assertEqual(bodies, [b"0", b"1", b"2"])
        self.assertEqual(connection.requests, 3)

    def test_heldAndNot(self) -> None:
        """One that is not to be held takes those before it along."""
        connection = self.make()
        connection.submit(Command(1), 1.0, hold=True)
        connection.submit(Command(2), 1.0)
        self.assertEqual(self.machine.codes(), [1, 2])

    def test_heldLimit(self) -> None:
        """No more than a limit is held."""
        connection = self.make()
        connection.submit(Command(1), 1.0, hold=True)
        connection.submit(Command(2, body=bytes(HELD_BYTES)), 1.0, hold=True)
        self.assertEqual(self.machine.codes(), [1, 2])

    def test_heldAndLost(self) -> None:
        """What was held when the connection went is lost like all else."""
        connection = self.make()
        ticket = connection.submit(Command(1), 1.0, hold=True)
        connection.close()
        self.assertRaises(ConnectionLost, connection.collect, ticket)
        self.assertEqual(connection.invoke(Command(2), 1.0).code, 0)
        self.assertEqual(self.machine.codes(), [2])

    def test_lateAnswers(self) -> None:
        """Answers that nobody waits for any more are dropped."""
        connection = self.make()
        connection.forget(connection.submit(Command(1), 1.0))
        self.assertEqual(connection.invoke(Command(1, body=b"x"), 1.0).body, b"x")
        self.assertEqual(connection.dropped, 1)

    def test_oneway(self) -> None:
        """A oneway request says so, and nothing is waited for."""
        connection = self.make(lambda command: None)
        connection.oneway(Command(15))
        self.assertTrue(self.machine.requests[0][1].is_oneway)
        self.assertEqual(connection.under_way, 0)

    def test_tooLarge(self) -> None:
        """What the protocol cannot carry is not sent, and opens nothing."""
        self.machine = ScriptedMachine({"a:1": echo})
        connection = ServerConnection(self.machine, "a:1", 1000)
        with self.assertRaises(LocalProtocolError):
            connection.submit(Command(1, body=bytes(1000)), 1.0)
        self.assertEqual(self.machine.streams, [])

    def test_close(self) -> None:
        """After closing, what is under way is lost; closing again does nothing."""
        connection = self.make(lambda command: None)
        ticket = connection.submit(Command(1), 1.0)
        connection.close()
        connection.close()
        self.assertRaises(ConnectionLost, connection.collect, ticket)
