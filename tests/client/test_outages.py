"""What is away is said once."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.outages import OutageBoard, Outages
from rocketbroker.errors import ClientClosed
from rocketbroker.testing.puppet_cluster import silent
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster


class OutageTests(SynchronousTestCase):
    """Two clients of one session."""

    def test_firstAndLastOfAllAreSaid(self) -> None:
        """Away when one cannot reach it, back when all can."""
        board = OutageBoard()
        first, second = Outages(board), Outages(board)
        with self.assertLogs("rocketbroker.client", "INFO") as logs:
            for _ in range(2):
                first.failed("b1", "no")
                second.failed("b1", "no")
            first.worked("b1")
            first.worked("b1")
            first.failed("b1", "again")
            first.worked("b1")
            self.assertEqual(len(logs.output), 1)
            second.worked("b1")
        self.assertEqual(len(logs.output), 2)

    def test_closedClientIsNotWaitedFor(self) -> None:
        """What it could not reach may be back all the same."""
        board = OutageBoard()
        first, second = Outages(board), Outages(board)
        with self.assertLogs("rocketbroker.client", "INFO") as logs:
            first.failed("b1", "no")
            second.failed("b1", "no")
            second.close()
            first.worked("b1")
        self.assertEqual(len(logs.output), 2)

    def test_closedSessionSaysNothingOfItsSends(self) -> None:
        """What was under way fails because we close, and no server is away."""
        here = ClientCluster("b1")
        mq = here.session()
        here.broker().faults[RequestCode.SEND_MESSAGE_V2] = [silent]
        sending = here.runtime.start(mq.send("T", "x"))
        here.runtime.settle()
        with self.assertNoLogs("rocketbroker.client", "INFO"):
            here.runtime.finish(mq.close())
            here.wait(lambda: sending.ended)
        self.assertRaises(ClientClosed, sending.value)

    def test_restartIsSaidOnceByASession(self) -> None:
        """Although it sends, and reads for two groups."""
        here = ClientCluster("b1")
        mq = here.session()
        for group in "GH":
            here.runtime.finish(mq.consumer("T", group).__aenter__())
        here.runtime.finish(mq.send("T", "x"))
        with self.assertLogs("rocketbroker.client", "INFO") as logs:
            here.cluster.stop("b1")
            sending = here.runtime.start(mq.send("T", "y"))
            here.runtime.advance(20.0)
            here.cluster.start("b1")
            here.runtime.advance(5.0)
        self.assertEqual(sending.value().status, 0)
        self.assertEqual(len(logs.output), 2, logs.output)
        here.runtime.finish(mq.close())
