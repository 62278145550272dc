"""Request 906."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.acting.ha_exchange import HAExchange, HAInfo
from rocketbroker.errors import NoPermission, SystemFailure
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.command import Command
from tests.broker.callers import Caller
from tests.broker.rig import answered, logged

MASTER = HAInfo("m:1", "m:2", 4096)
EXT = {
    "masterAddress": "m:1",
    "masterHaAddress": "m:2",
    "masterFlushOffset": "4096",
}


class HAExchangeTests(SynchronousTestCase):
    """L{HAExchange}."""

    def setUp(self) -> None:
        """A slave that a master can tell something."""
        self.caller = Caller()
        self.own = HAInfo()
        self.heard: list[HAInfo] = []
        self.busy: Deferred[None] | None = None
        self.refusal: NoPermission | None = None
        refusals = RefusalLog(lambda: 0.0)
        self.exchange = HAExchange(self.caller, lambda: self.own, self.told, refusals)

    def told(self, info: HAInfo) -> Deferred[None] | None:
        """A master says where it is."""
        if self.refusal is not None:
            raise self.refusal
        self.heard.append(info)
        return self.busy

    def request(self, ext: dict[str, str]) -> object:
        """Be asked."""
        table = ResponderTable()
        self.exchange.register(table)
        return table.responders[906](RecordedConnection(), Command(906, ext))

    def test_ask(self) -> None:
        """A request without fields asks; a slave's answer says nothing."""
        for ext, wanted in ((EXT, MASTER), ({}, HAInfo())):
            done = self.exchange.ask("m:1")
            (call,) = self.caller.take()
            self.assertEqual((call.address, call.timeout), ("m:1", 3))
            self.assertEqual((call.command.code, call.command.ext), (906, {}))
            call.answer(ext=ext)
            self.assertEqual(self.successResultOf(done), wanted)

    def test_tell(self) -> None:
        """A master tells a slave where it is; a refusal is a failure."""
        self.own = MASTER
        for code in (0, 1):
            done = self.exchange.tell("s:1")
            (call,) = self.caller.take()
            self.assertEqual((call.address, call.command.ext), ("s:1", EXT))
            call.answer(code)
            if code:
                self.failureResultOf(done, SystemFailure)
            else:
                self.successResultOf(done)

    def test_asked(self) -> None:
        """A master answers with what it is; a slave with success and nothing else."""
        self.assertEqual(answered(self.request({})).ext or {}, {})
        self.own = MASTER
        self.assertEqual(answered(self.request({})).ext, EXT)

    def test_told(self) -> None:
        """A slave takes what a master says, and answers when it is ready for it."""
        self.busy = Deferred()
        answer = self.request(EXT)
        self.assertEqual(self.heard, [MASTER])
        assert isinstance(answer, Deferred)
        self.assertNoResult(answer)
        self.busy.callback(None)
        self.assertEqual(self.successResultOf(answer).code, 0)
        self.busy = None
        self.assertEqual(answered(self.request(EXT)).code, 0)

    def test_refused(self) -> None:
        """Who is not the master is answered so, and the log has one line a second that
        says who it was."""
        self.refusal = NoPermission("follows another")

        def ask() -> None:
            for _ in range(3):
                self.assertRaises(NoPermission, self.request, EXT)

        (line,) = logged(ask)
        self.assertEqual(
            line, "Request 906 of 127.0.0.1:50000 is refused: follows another."
        )
