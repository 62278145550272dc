"""Hooks around the requests of a port."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from rocketbroker.auth.request import Asked
from rocketbroker.errors import NoPermission
from rocketbroker.remoting.connection_group import ConnectionLimits
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.request_hooks import IRequestHook, fronted
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.command import ONEWAY, Command, response_to
from rocketbroker.wire.frames import encode
from tests.remoting.wires import HubWire

SEND = 310

#: Of commands that say nothing of theirs.
VERSION = Command(1).version


@implementer(IRequestHook)
class Hook:
    """Notes what it sees; refuses what it is told to."""

    codes: tuple[int, ...] | None = None

    def __init__(self, name: str, log: list[str], wants_answers: bool = False) -> None:
        self.name = name
        self.log = log
        self.wants_answers = wants_answers
        self.error: Exception | None = None
        self.asked: list[Asked] = []

    def before(self, connection: IConnection, asked: Asked) -> None:
        """See L{IRequestHook}."""
        self.log.append(f"{self.name} before {asked.code}")
        self.asked.append(asked)
        if self.error is not None:
            raise self.error

    def after(
        self, connection: IConnection, asked: Asked, answer: Command | None
    ) -> None:
        """See L{IRequestHook}."""
        said = None if answer is None else bytes(answer.body or b"").decode()
        self.log.append(f"{self.name} after {asked.code}: {said}")
        if self.error is not None:
            raise self.error


class HookTests(SynchronousTestCase):
    """A port with a hot and a general responder."""

    def setUp(self) -> None:
        """Two hooks, which want no answers."""
        self.log: list[str] = []
        self.table = ResponderTable()
        self.table.register(SEND, self.general)
        self.table.register(105, self.general)
        self.table.register_hot(SEND, self.hot)
        self.hooks = [Hook("one", self.log), Hook("two", self.log)]

    def serve(self) -> None:
        """A connection, whose requests the hooks see."""
        front = fronted(self.table, self.hooks)
        self.wire = HubWire(front, ConnectionLimits())
        self.addCleanup(self.wire.end)

    def general(self, connection: IConnection, command: Command) -> Answer:
        self.log.append(f"general {command.code}")
        return response_to(command, body=b"general")

    def hot(self, connection: IConnection, header: bytes, body: bytes) -> bool:
        self.log.append("hot")
        return b"cold" not in body

    def ask(self, *commands: Command) -> list[tuple[int, str | None]]:
        for command in commands:
            self.wire.feed(encode(command))
        return [(each.code, each.remark) for each in self.wire.commands()]

    def test_before(self) -> None:
        """In their order, before hot requests and others, and once for each."""
        self.serve()
        self.ask(Command(105), Command(SEND, {"a": "b"}, b"hot"))
        self.assertEqual(
            self.log,
            ["one before 105", "two before 105", "general 105"]
            + ["one before 310", "two before 310", "hot"],
        )
        (_, sent) = self.hooks[0].asked
        self.assertEqual((sent.fields, bytes(sent.body)), ({"a": "b"}, b"hot"))
        self.assertEqual((sent.source, sent.version), ("127.0.0.1", VERSION))

    def test_codes(self) -> None:
        """A hook is asked for the codes that it names; of others it knows nothing."""
        self.hooks[0].codes = (SEND,)
        self.hooks[1].codes = (106,)
        self.serve()
        self.ask(Command(105), Command(SEND, {}, b"hot"))
        self.assertEqual(self.log, ["general 105", "one before 310", "hot"])

    def test_refused(self) -> None:
        """Nothing is done, nobody further is asked, and the answer says why."""
        self.serve()
        self.hooks[0].error = NoPermission("not you")
        found = self.ask(Command(105), Command(SEND, {}, b"hot"))
        self.assertEqual(found, [(16, "not you")] * 2)
        self.assertEqual(self.log, ["one before 105", "one before 310"])
        self.assertEqual(self.ask(Command(105, flag=ONEWAY)), [])

    def test_failed(self) -> None:
        """A hook with a mistake refuses the request, too."""
        self.serve()
        self.hooks[0].error = ValueError("mistake")
        found = self.ask(Command(105), Command(SEND, {}, b"hot"))
        self.assertEqual(found, [(1, "ValueError: mistake")] * 2)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 2)
        self.assertNotIn("hot", self.log)

    def test_headersThatAreNotHot(self) -> None:
        """Those go the general way, and are seen there; so does what the hot responder
        leaves."""
        self.serve()
        frame = encode(Command(SEND, {"a": "b"}, b"x"))
        self.wire.feed(frame.replace(b'"b"', b" 12"))
        self.wire.feed(encode(Command(SEND, {}, b"cold")))
        self.assertEqual(self.log[-1], "general 310")
        self.assertNotIn("hot", self.log[:3])

    def test_headerWithTwoCodes(self) -> None:
        """What hooks see is what is done: the last one, the general way."""
        self.serve()
        frame = bytearray(encode(Command(SEND, {"a": "b"}, b"x")))
        wrong = frame[8:].replace(b'"flag":0', b'"code":105,"flag":0')
        header = len(wrong) - 1
        self.wire.feed(
            (len(wrong) + 4).to_bytes(4, "big") + header.to_bytes(4, "big") + wrong
        )
        self.assertEqual(self.log[-1], "general 105")
        self.assertNotIn("hot", self.log)
        self.assertEqual({each.code for each in self.hooks[0].asked}, {105})

    def test_replacedResponders(self) -> None:
        """What stands in the table later is not got at without the hooks."""
        self.serve()

        def other(connection: IConnection, command: Command) -> None:
            self.log.append("other")

        self.table.register(105, other)
        (entry,) = self.table.hot.values()

        def screened(connection: IConnection, header: bytes, body: bytes) -> bool:
            self.log.append("screened")
            return True

        entry.responder = screened
        self.ask(Command(105), Command(SEND, {}, b"x"))
        self.assertEqual(
            [each for each in self.log if "before" not in each], ["other", "screened"]
        )
        self.assertEqual(len(self.log), 6)

    def test_answers(self) -> None:
        """A hook that wants answers sees those of all requests; errors of it are
        logged, and the answer goes out."""
        later: Deferred[Command | None] = Deferred()
        self.table.register(106, lambda *_: later)
        self.hooks = [Hook("one", self.log, wants_answers=True)]
        self.serve()
        self.ask(Command(SEND, {}, b"x"), Command(106))
        self.assertEqual(
            self.log,
            ["one before 310", "general 310", "one after 310: general"]
            + ["one before 106"],
        )
        self.hooks[0].error = ValueError("mistake")
        later.callback(Command(0, body=b"late"))
        self.assertEqual(self.log[-1], "one after 106: late")
        self.assertEqual(len(self.wire.commands()), 1)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
