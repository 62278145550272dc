"""A broker while another process holds the append lock: each of its parts takes "not
now", and loses nothing."""

from __future__ import annotations

from twisted.logger import capturedLogs

from rocketbroker.errors import SystemBusy
from rocketbroker.records.names import HALF_TOPIC
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode, ResponseCode
from tests.broker.delays import DelayingCase
from tests.broker.pop.pops import INVISIBLE_MS, PopCase, handles, messages
from tests.broker.rig import pull_ext, send_ext
from tests.broker.timer.case import TimerCase
from tests.broker.transactions import COMMIT, ROLLBACK, ROUND, TransactionCase

SEND = RequestCode.SEND_MESSAGE_V2
BUSY = ResponseCode.SYSTEM_BUSY


class RequestTests(DelayingCase):
    """Requests of clients and administrators."""

    def setUp(self) -> None:
        """A broker whose store others may join."""
        self.begin(workers="1")

    def test_sendsAreAnsweredBusyAndPullsServed(self) -> None:
        """Sends of either way are answered SYSTEM_BUSY, counted, and stored when they
        are sent again; a pull and a query are answered meanwhile."""
        rig = self.rig
        rig.ask(SEND, send_ext(), b"first")
        file = rig.hold_lock()
        self.assertTrue(rig.hot(SEND, send_ext(), b"hot"))
        answer = rig.ask(SEND, send_ext(properties="DELAY\x011\x02"), b"slow")
        (hot,) = rig.answers()
        for each in (hot, answer):
            self.assertEqual(each.code, BUSY)
            self.assertIn("the append lock is held", each.remark or "")
        self.assertEqual(rig.batcher.refused["append_stalled"], 2)
        self.assertIn("append lock", rig.broker.not_ready() or "No name server")
        rig.scheduler.dispatch()
        self.assertEqual(rig.ask(RequestCode.PULL_MESSAGE, pull_ext()).code, 0)
        file.close()
        self.assertEqual(rig.ask(SEND, send_ext(), b"hot").code, 0)
        self.assertEqual(self.bodies(), [b"first", b"hot"])

    def test_sentBackMessageIsRefused(self) -> None:
        """A message that a consumer sends back is refused, and taken afterwards."""
        rig = self.rig
        rig.groups.put([SubscriptionGroupConfig(group_name="G")])
        sent = rig.append()
        rig.scheduler.dispatch()
        ext = {"offset": str(sent.position), "group": "G", "delayLevel": "1"}
        file = rig.hold_lock()
        answer = rig.ask(RequestCode.CONSUMER_SEND_MSG_BACK, ext)
        self.assertEqual((answer.code, answer.remark), (BUSY, "OS_PAGE_CACHE_BUSY"))
        file.close()
        answer = rig.ask(RequestCode.CONSUMER_SEND_MSG_BACK, ext)
        self.assertEqual(answer.code, 0)

    def test_topicIsNotHalfDeleted(self) -> None:
        """The deletion of a topic is refused before anything is done."""
        rig = self.rig
        file = rig.hold_lock()
        ext = {"topic": "T"}
        delete = RequestCode.DELETE_TOPIC_IN_BROKER
        self.assertRaises(SystemBusy, rig.ask, delete, ext)
        self.assertIsNotNone(rig.topics.config("T"))
        file.close()
        self.assertEqual(rig.ask(delete, ext).code, 0)

    def test_delayedMessageIsDeliveredAfterwards(self) -> None:
        """What is due meanwhile is delivered when the lock is free, once and in
        order."""
        for number in range(3):
            self.send(1, b"%d" % number)
        file = self.rig.hold_lock()
        self.pass_by(5)
        self.assertEqual(self.bodies(), [])
        file.close()
        self.pass_by(5)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2"])


class WheelTests(TimerCase):
    """Messages for any time."""

    def setUp(self) -> None:
        """A broker whose store others may join."""
        super().setUp()
        self.begin(workers="1")

    def test_timerMessageIsDeliveredAfterwards(self) -> None:
        """What is due meanwhile is delivered when the lock is free, once and in
        order."""
        for number in range(3):
            self.send(2, b"%d" % number)
        self.pass_by(0.5)
        file = self.rig.hold_lock()
        self.pass_by(5)
        self.assertEqual(self.bodies(), [])
        file.close()
        self.pass_by(5)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2"])


class TransactionTests(TransactionCase):
    """Transactions."""

    def setUp(self) -> None:
        """A broker whose store others may join."""
        super().setUp()
        self.begin({"workers": "1"})

    def test_commitIsRefusedAndDoneAgain(self) -> None:
        """A commit is refused, the transaction stays open, and is ended afterwards."""
        half = self.half()
        file = self.rig.hold_lock()
        self.assertRaises(SystemBusy, self.end, half, COMMIT)
        file.close()
        self.assertEqual(self.bodies(), [])
        self.assertEqual(self.end(half, COMMIT), 0)
        self.assertEqual(self.bodies(), [b"body"])

    def test_markOfRollbackIsWrittenAfterwards(self) -> None:
        """The mark of a rollback waits, and is written by a later round."""
        half = self.half()
        file = self.rig.hold_lock()
        self.end(half, ROLLBACK)
        self.assertEqual(self.marks(), [])
        file.close()
        self.pass_by(ROUND + 1)
        self.assertEqual(len(self.marks()), 1)
        self.assertEqual(self.questions(), [])

    def test_halfIsCheckedBackAfterwards(self) -> None:
        """A half that is to be checked back is so by a later round."""
        self.half()
        file = self.rig.hold_lock()
        with capturedLogs():
            self.pass_by(2 * ROUND)
        self.assertEqual(self.questions(), [])
        file.close()
        self.pass_by(ROUND + 1)
        self.assertEqual(len(self.questions()), 1)
        self.assertEqual(len(self.rig.records(0, HALF_TOPIC)), 2)

    def test_resumedCheckIsRefused(self) -> None:
        """An administrator who puts a half back is told to try again."""
        half = self.half()
        assert half.ext is not None
        ext = {"msgId": half.ext["msgId"]}
        file = self.rig.hold_lock()
        resume = RequestCode.RESUME_CHECK_HALF_MESSAGE
        self.assertRaises(SystemBusy, self.rig.ask, resume, ext)
        file.close()
        self.assertEqual(self.rig.ask(resume, ext).code, 0)


class PopTests(PopCase):
    """Consumption by POP."""

    def setUp(self) -> None:
        """A broker whose store others may join."""
        self.rig = self.make(workers="1")

    def test_checkPointIsWrittenAfterwards(self) -> None:
        """A check point that cannot be written stays in memory, and is written later:
        its message comes again when its time is over."""
        self.send("a")
        file = self.rig.hold_lock()
        self.assertEqual(self.popped(), [b"a"])
        self.assertEqual(self.kept(), [])
        self.pass_by(5)
        file.close()
        self.pass_by(5)
        self.assertEqual(len(self.kept()), 1)
        self.pass_by(INVISIBLE_MS / 1000)
        self.assertEqual(self.popped(), [b"a"])

    def test_acknowledgementIsRefused(self) -> None:
        """An acknowledgement is refused, by either way, and taken afterwards."""
        self.send("a", "b")
        first, second = handles(self.pop())
        file = self.rig.hold_lock()
        self.assertEqual(self.ack(first).code, BUSY)
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "extraInfo": second.text(),
            "offset": str(second.offset),
        }
        self.assertTrue(self.rig.hot(RequestCode.ACK_MESSAGE, ext))
        self.rig.batcher.flush()
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, BUSY)
        file.close()
        for handle in (first, second):
            self.assertEqual(self.ack(handle).code, 0)
        self.pass_by(40)
        self.assertEqual(self.popped(), [])

    def test_revivedMessageIsStoredAfterwards(self) -> None:
        """What is to be given out again meanwhile comes once, when the lock is free,
        by no check point of its own: that was no attempt."""
        self.rig = self.make(workers="1", skipWhenCKRePutReachMaxTimes="true")
        self.send("a")
        self.pop()
        self.pass_by(31)
        file = self.rig.hold_lock()
        self.pass_by(30)
        file.close()
        self.pass_by(10)
        (message,) = messages(self.pop())
        self.assertEqual(message.body, b"a")
        self.assertEqual(self.rig.broker.pop.revive.re_put, 0)
        self.assertEqual(len(self.rig.records(0, "%RETRY%G_T")), 1)
