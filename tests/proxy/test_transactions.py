"""Half messages, and the requests that end them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import TransactionResolution
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.transactions import Half, Halves, end_request


class HalvesTests(SynchronousTestCase):
    """L{Halves}."""

    def test_newestIsTakenOnce(self) -> None:
        """Then the one before."""
        halves = Halves(ProxySettings())
        halves.put("T", "1", "b1", 10, 1, 0.0)
        halves.put("T", "1", "b1", 20, 2, 1.0)
        self.assertEqual(halves.take("T", "1", 2.0), Half("b1", 20, 2, 31.0))
        self.assertEqual(halves.take("T", "1", 2.0), Half("b1", 10, 1, 30.0))
        self.assertIsNone(halves.take("T", "1", 2.0))
        self.assertIsNone(halves.take("U", "1", 2.0))

    def test_oldOnesAreForgotten(self) -> None:
        """After 30 seconds, and where there are more than 15."""
        halves = Halves(ProxySettings())
        for number in range(20):
            halves.put("T", "1", "b1", number, 0, 0.0)
        halves.put("T", "2", "b1", 0, 0, 10.0)
        found = 0
        while halves.take("T", "1", 1.0):
            found += 1
        self.assertEqual(found, 15)
        halves.put("T", "1", "b1", 0, 0, 0.0)
        self.assertIsNone(halves.take("T", "1", 30.0))
        halves.put("T", "1", "b1", 0, 0, 0.0)
        halves.clean(30.0)
        self.assertEqual(len(halves), 1)

    def test_requestSaysTheOutcome(self) -> None:
        """Commit, rollback, or that it is not known."""
        for resolution, outcome in (
            (TransactionResolution.COMMIT, "8"),
            (TransactionResolution.ROLLBACK, "12"),
            (TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED, "0"),
        ):
            half = Half("b1", 10, 1, 0.0)
            command = end_request("T", half, "id", "tx", resolution, True)
            ext = command.ext or {}
            self.assertEqual(ext["commitOrRollback"], outcome)
            self.assertEqual((ext["producerGroup"], ext["msgId"]), ("T", "id"))
            self.assertEqual(ext["commitLogOffset"], "10")
            self.assertEqual(ext["fromTransactionCheck"], "true")
            self.assertEqual(command.remark, "end transaction from proxy")
