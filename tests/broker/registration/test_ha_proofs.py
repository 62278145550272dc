"""The proof of haSecretFile in requests between brokers."""

from __future__ import annotations

import attrs
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.ha_proofs import HaProofs, ProvingCaller
from rocketbroker.errors import NoPermission
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.command import Command
from tests.broker.callers import Caller


@attrs.frozen
class Given:
    """A secret."""

    value: bytes = b"s"


class HaProofTests(SynchronousTestCase):
    """Requests as they are sent, and as they are checked."""

    def setUp(self) -> None:
        """One who calls, and one who checks."""
        self.caller = Caller()
        self.proving = ProvingCaller(self.caller, Given(), lambda: 1_000)
        self.proofs = HaProofs(Given(), lambda: 2_000, Clock().seconds)

    def test_calledWithProof(self) -> None:
        """What was to be sent is sent, and proves the secret."""
        self.proving.invoke("b:1", Command(906, {"masterAddress": "a:1"}), 3.0)
        (call,) = self.caller.take()
        self.assertEqual(call.address, "b:1")
        assert call.command.ext is not None
        self.assertEqual(call.command.ext["masterAddress"], "a:1")
        self.proofs.check(RecordedConnection(), call.command)

    def test_refusedWithoutProof(self) -> None:
        """The address has one line, whatever it asks."""
        with capturedLogs() as events:
            for code in (905, 906, 907, 908):
                error = self.assertRaises(
                    NoPermission,
                    self.proofs.check,
                    RecordedConnection(),
                    Command(code, {"masterAddress": "a:1"}),
                )
                self.assertIn(f"request {code} is refused", str(error))
        (line,) = [formatEvent(event) for event in events]
        self.assertIn("Request 905 of 127.0.0.1:", line)
        self.assertIn("it does not prove the secret (haSecretFile)", line)
