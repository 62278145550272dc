"""Half messages, and the requests that end them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import Code, TransactionResolution
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.proxy.transactions import Half, end_request


class HalfTests(SynchronousTestCase):
    """L{Half}."""

    def test_idSaysWhereTheHalfIs(self) -> None:
        """The broker's own id may have any characters."""
        half = Half("b1", 10, 1, "my own id")
        self.assertEqual(half.text(), "10 1 b1 my own id")
        self.assertEqual(Half.parse(half.text()), half)

    def test_otherIdsFindNothing(self) -> None:
        """As those of RocketMQ's Proxy."""
        for text in ("01ID", "1 2 b1", "x 2 b1 01ID"):
            problem = self.assertRaises(Refusal, Half.parse, text)
            self.assertEqual(problem.code, Code.INTERNAL_SERVER_ERROR)

    def test_requestSaysTheOutcome(self) -> None:
        """Commit, rollback, or that it is not known."""
        for resolution, outcome in (
            (TransactionResolution.COMMIT, "8"),
            (TransactionResolution.ROLLBACK, "12"),
            (TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED, "0"),
        ):
            half = Half("b1", 10, 1, "tx")
            command = end_request("T", half, "id", resolution, True)
            ext = command.ext or {}
            self.assertEqual(ext["commitOrRollback"], outcome)
            self.assertEqual((ext["producerGroup"], ext["msgId"]), ("T", "id"))
            self.assertEqual(ext["commitLogOffset"], "10")
            self.assertEqual(ext["transactionId"], "tx")
            self.assertEqual(ext["fromTransactionCheck"], "true")
            self.assertEqual(command.remark, "end transaction from proxy")
