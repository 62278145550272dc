"""Transactions: half messages, their ends, and the broker's questions."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.received import MessageView
from rocketbroker.client.session import Session
from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.records import ids
from rocketbroker.records.sysflags import TRANSACTION_PREPARED
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from tests.client.cluster import ClientCluster

COMMIT, ROLLBACK, UNKNOWN = "8", "12", "0"


class TransactionTests(SynchronousTestCase):
    """One producer group."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.runtime = self.here.runtime
        self.mq = self.here.session(group="PG")
        self.answers: list[Any] = []
        self.asked: list[str] = []
        self.mq.check("T")(self.decide)
        self.runtime.finish(self.mq.__aenter__())

    def decide(self, message: MessageView) -> Any:
        """Answer a question of the broker's."""
        self.asked.append(message.text)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def ends(self) -> list[dict[str, str]]:
        """The ends of transactions that the broker has been told."""
        return [
            one.ext or {}
            for _, one in self.runtime.requests
            if one.code == RequestCode.END_TRANSACTION
        ]

    async def work(self, mq: Session, fails: bool) -> None:
        """Do something in a transaction."""
        async with await mq.transaction("T", "x", tag="a"):
            if fails:
                raise ValueError("it did not work")

    def test_endOfTheContextCommits(self) -> None:
        """The half message is marked, and its end names it."""
        self.runtime.finish(self.work(self.mq, False))
        (half,) = self.here.broker().stored("T")
        self.assertEqual(half.sys_flag, TRANSACTION_PREPARED)
        self.assertEqual(half.properties["TRAN_MSG"], "true")
        self.assertEqual((half.properties["PGROUP"], half.tags), ("PG", "a"))
        (end,) = self.ends()
        self.assertEqual(end["commitOrRollback"], COMMIT)
        self.assertEqual(end["commitLogOffset"], str(half.position))
        self.assertEqual(end["tranStateTableOffset"], str(half.queue_offset))
        self.assertEqual(end["msgId"], half.message_id)
        self.assertEqual(end["fromTransactionCheck"], "false")
        self.assertEqual((end["bname"], end["topic"]), ("b1", "T"))

    def test_errorRollsBack(self) -> None:
        """And is raised."""
        with self.assertRaises(ValueError):
            self.runtime.finish(self.work(self.mq, True))
        self.assertEqual([end["commitOrRollback"] for end in self.ends()], [ROLLBACK])

    def test_firstEndCounts(self) -> None:
        """By hand, once."""
        begun = self.runtime.finish(self.mq.transaction("T", "x"))
        for end in (begun.rollback, begun.commit):
            self.runtime.finish(end())
        self.assertEqual([end["commitOrRollback"] for end in self.ends()], [ROLLBACK])

    def test_unsafeHalfMessageIsRolledBack(self) -> None:
        """Before any work is done."""
        offset_id = ids.offset_id(bytes(8), 5)
        fields = {"msgId": offset_id, "queueId": "0", "queueOffset": "0"}
        faults = self.here.broker().faults
        faults[RequestCode.SEND_MESSAGE_V2] = [lambda command: answer(10, fields)]
        with self.assertRaises(RocketbrokerError):
            self.runtime.finish(self.mq.transaction("T", "x"))
        self.assertEqual([end["commitOrRollback"] for end in self.ends()], [ROLLBACK])

    def ask(self, group: str = "PG") -> None:
        """Let the broker ask what became of a half message."""
        text = {"PGROUP": group, "UNIQ_KEY": "ID", "TRAN_MSG": "true"}
        broker = self.here.broker()
        broker.put("T", 0, b"half", text)
        body = broker.queues["T", 0][-1]
        ext = {
            "topic": "HALF",
            "tranStateTableOffset": "7",
            "commitLogOffset": "1000",
            "bname": "b1",
        }
        code = RequestCode.CHECK_TRANSACTION_STATE
        (link,) = self.runtime.links_to("b1:10911")
        link.send(Command(code, ext, body, flag=ONEWAY))
        self.runtime.settle()

    def test_questionsAreAnswered(self) -> None:
        """By what the function says; an error is no answer, and is told as such."""
        self.answers += [True, False, None, ValueError("no")]
        with self.assertLogs("rocketbroker.client", "ERROR"):
            for _ in range(4):
                self.ask()
        outcomes = [end["commitOrRollback"] for end in self.ends()]
        self.assertEqual(outcomes, [COMMIT, ROLLBACK, UNKNOWN, UNKNOWN])
        end = self.ends()[0]
        self.assertEqual((end["fromTransactionCheck"], end["msgId"]), ("true", "ID"))
        self.assertEqual(end["tranStateTableOffset"], "7")
        self.assertEqual(self.asked, ["half"] * 4)

    def test_questionsAboutOthersAreLeftAlone(self) -> None:
        """Another group, or nobody to answer."""
        self.ask("other")
        self.assertEqual(self.ends(), [])

    def test_coroutineAnswersToo(self) -> None:
        """It may look somewhere first."""

        async def decide(message: MessageView) -> bool:
            await self.runtime.sleep(1.0)
            return True

        self.mq.check("T")(decide)
        self.ask()
        self.assertEqual(self.ends(), [])
        self.runtime.advance(1.0)
        self.assertEqual(len(self.ends()), 1)

    def test_brokerKnowsTheGroup(self) -> None:
        """Before anything is sent, so that it can ask about what was before."""
        self.assertEqual(len(self.here.broker().clients), 1)

    def test_mistakesSayWhatToDo(self) -> None:
        """Without a group, or a function that answers."""
        nameless = self.here.session()
        with self.assertRaises(ConfigurationError):
            nameless.check("T")
        with self.assertRaises(ConfigurationError):
            self.runtime.finish(nameless.transaction("T", "x"))
        with self.assertRaises(ConfigurationError):
            self.runtime.finish(self.mq.transaction("Unknown", "x"))
