"""A data path with transactions, stepped by a test."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import record
from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
    CheckTransactionStateRequestHeader,
)
from tests.broker.rig import WALL_MS, Rig, answered, send_ext

SEND = RequestCode.SEND_MESSAGE_V2
END = RequestCode.END_TRANSACTION

COMMIT, ROLLBACK, UNKNOWN = (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
)

#: The transaction bits of a half message, as it is sent.
PREPARED = 4

#: The settings of most tests: a round each 30 s, about what is 6 s old.
ROUND = 30.0


class ConnectionGroup:
    """A producer at a data path that has a topic T.

    @ivar connection: what the broker knows of it.
    """

    def __init__(self, rig: Rig, group: str = "PG") -> None:
        self.rig = rig
        self.connection = RecordedConnection()
        rig.producers.register(self.connection, "client", "JAVA", 400, group)

    def half(
        self,
        key: str,
        body: bytes,
        more: str = "",
        queue_id: int = 1,
        ahead_ms: int = 0,
        sys_flag: int = PREPARED,
    ) -> Command:
        """Send a half message; its answer.

        @param ahead_ms: how far its producer's clock is.
        """
        properties = f"UNIQ_KEY\x01{key}\x02TRAN_MSG\x01true\x02PGROUP\x01PG"
        ext = send_ext(
            queue_id=queue_id,
            properties=f"{properties}\x02{more}",
            f=str(sys_flag),
            g=str(self.rig.wall_ms() + ahead_ms),
        )
        answer = self.rig.ask(SEND, ext, body)
        assert answer.code == 0, answer.remark
        return answer

    def end(self, half: Command, outcome: int, **more: str) -> int | None:
        """End a transaction as its producer does.

        @raise BrokerError: it is refused.
        """
        assert half.ext is not None
        ext = {
            "topic": "T",
            "producerGroup": "PG",
            "tranStateTableOffset": half.ext["queueOffset"],
            "commitLogOffset": str(int(half.ext["msgId"][16:], 16)),
            "commitOrRollback": str(outcome),
            "fromTransactionCheck": "false",
            "msgId": half.ext["transactionId"],
            **more,
        }
        return self._end(ext)

    def _end(self, ext: dict[str, str]) -> int | None:
        """The code of the answer, if there is one."""
        answer = self.rig.begin(END, ext)
        self.rig.scheduler.dispatch()
        return None if answer is None else answered(answer).code

    def reply(self, question: Command, outcome: int) -> int | None:
        """End a transaction that was checked back."""
        header = CheckTransactionStateRequestHeader.from_ext(question.ext)
        ext = {
            "topic": header.topic or "",
            "producerGroup": "PG",
            "tranStateTableOffset": str(header.tran_state_table_offset),
            "commitLogOffset": str(header.commit_log_offset),
            "commitOrRollback": str(outcome),
            "fromTransactionCheck": "true",
            "msgId": header.msg_id or "",
        }
        return self._end(ext)

    def questions(self) -> list[Command]:
        """What it was asked since the last look."""
        asked, self.connection.oneways[:] = [*self.connection.oneways], []
        return asked


class TransactionCase(SynchronousTestCase):
    """A data path with a producer of group PG, and a topic T."""

    def setUp(self) -> None:
        """It is at work."""
        self.rig = self.begin()
        self.serial = 0

    def begin(
        self,
        settings: dict[str, str] | None = None,
        disk: MemoryDisk | None = None,
        threads: bool = False,
        start_ms: int = WALL_MS,
    ) -> Rig:
        """A data path at work; it is the one of the test."""
        rig = self.rig = Rig(settings or {}, threads, disk, start_ms)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.transactions.start()
        self.party = ConnectionGroup(rig)
        self.producer = self.party.connection
        return rig

    def restart(self, saved: bool = True, **settings: str) -> Rig:
        """The data path ends, and the next begins with what it has left.

        @param saved: whether it wrote down how far it is.
        """
        rig = self.rig
        rig.scheduler.dispatch()
        if saved:
            rig.store.flush()
            rig.transactions.save()
            rig.offsets.save()
        rig.transactions.stop()
        rig.close()
        return self.begin(settings, rig.disk, start_ms=rig.wall_ms())

    def join(self, group: str = "PG") -> RecordedConnection:
        """A producer comes."""
        return ConnectionGroup(self.rig, group).connection

    def half(
        self,
        body: bytes = b"body",
        more: str = "",
        queue_id: int = 1,
        ahead_ms: int = 0,
        sys_flag: int = PREPARED,
    ) -> Command:
        """Send a half message; its answer.

        @param ahead_ms: how far its producer's clock is.
        """
        self.serial += 1
        key = f"U{self.serial}"
        return self.party.half(key, body, more, queue_id, ahead_ms, sys_flag)

    def end(self, half: Command, outcome: int, **more: str) -> int | None:
        """As L{ConnectionGroup.end}."""
        return self.party.end(half, outcome, **more)

    def reply(self, question: Command, outcome: int) -> int | None:
        """As L{ConnectionGroup.reply}."""
        return self.party.reply(question, outcome)

    def questions(self) -> list[Command]:
        """As L{ConnectionGroup.questions}."""
        return self.party.questions()

    def pass_by(self, seconds: float) -> None:
        """Let time pass, second by second."""
        for _ in range(int(seconds)):
            self.rig.clock.advance(1)

    def bodies(self, topic: str = "T", queue_id: int = 1) -> list[bytes]:
        """The bodies that a queue holds."""
        return [message.body for message in self.rig.records(queue_id, topic)]

    def halves(self) -> list[record.StoredMessage]:
        """What the half queue holds."""
        return self.rig.records(0, HALF_TOPIC)

    def marks(self) -> list[bytes]:
        """What the op queue holds."""
        return self.bodies(OP_HALF_TOPIC, 0)
