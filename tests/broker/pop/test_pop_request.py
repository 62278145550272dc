"""Tests of L{rocketbroker.broker.pop.pop_request}: where a pop can be."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pop import pop_request
from rocketbroker.broker.pop.pop_checks import PopRoute
from rocketbroker.broker.pop.pop_request import Pop, PopInput, PopLook, PopPhase
from rocketbroker.broker.pull.pull_checks import PullCounts
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.headers.pull import PopMessageRequestHeader
from tests.broker.pop.pops import POP, PopCase, bodies, header_of
from tests.broker.rig import Rig, answered
from tests.machines import MachineContract


def one(phase: PopPhase = PopPhase.LOOKING) -> Pop:
    """A pop that has come to a phase."""
    header = PopMessageRequestHeader(
        consumer_group="G",
        topic="T",
        queue_id=-1,
        max_msg_nums=32,
        invisible_time=30_000,
        poll_time=0,
        born_time=1,
        init_mode=0,
    )
    route = PopRoute("G", "T", None, 1, PullCounts("G", "T", False))
    connection = RecordedConnection(b"\x0a\0\0\2", 4711)
    pop = Pop(connection, header, route, PopLook(1, 0, iter(()), False))
    pop.phase = phase
    return pop


class PhaseTests(MachineContract, SynchronousTestCase):
    """The phases of a pop."""

    MODULE, TABLE = "rocketbroker.broker.pop.pop_request", pop_request.TRANSITIONS
    STATES, INPUTS = PopPhase, PopInput

    def machine(self, state: PopPhase) -> Pop:
        """One that has come there."""
        return one(state)

    def state(self, machine: Pop) -> PopPhase:
        """Where it is."""
        return machine.phase

    def test_answersAfterTheLastCheckPoint(self) -> None:
        """What is stored before the last answers nothing; nor does the last before all
        queues were looked at."""
        for phase in (PopPhase.LOOKING, PopPhase.READING, PopPhase.STORING):
            pop = one(phase)
            pop.look.pending = 2
            pop.stored()
            self.assertIs(pop.phase, phase)
            self.assertNoResult(pop.done)
            pop.stored()
            self.assertIs(pop.done.called, phase is PopPhase.STORING)

    def test_answersOnce(self) -> None:
        """A second answer is a mistake."""
        pop = one()
        pop.answer(ResponseCode.POLLING_FULL)
        self.assertRaises(KeyError, pop.answer, ResponseCode.SUCCESS)
        self.assertEqual(answered(pop.done).code, ResponseCode.POLLING_FULL)


class ColdTests(PopCase):
    """Pops of two queues, which a thread has to read."""

    def setUp(self) -> None:
        """A pop has one queue's messages, and the thread is to read the other."""
        self.rig = self.make(2, accessMessageInMemoryMaxRatio="0")
        self.send("a", queue_id=0)
        self.send("b", queue_id=1)
        self.asked = self.rig.begin(POP, self.ext())
        self.rig.threads.run()

    def make(self, queues: int = 1, **settings: str) -> Rig:
        """A broker whose threads run when they are told to."""
        rig = Rig(settings, threads=True)
        self.addCleanup(rig.close)
        rig.topic("T", queues)
        rig.broker.start()
        rig.threads.run()
        return rig

    def test_checkPointStoredWhileReadingDoesNotAnswer(self) -> None:
        """The answer has the messages of both queues."""
        self.rig.batcher.flush()
        self.assertEqual(len(self.kept()), 1)
        self.assertNoResult(self.asked)
        self.rig.threads.run()
        self.rig.batcher.flush()
        self.assertEqual(bodies(answered(self.asked)), [b"b", b"a"])

    def test_queueThatIsReadIsLeftToIt(self) -> None:
        """Another pop of the group gets nothing of that queue meanwhile."""
        other = answered(self.rig.begin(POP, self.ext()))
        self.assertEqual((bodies(other), header_of(other).rest_num), ([], 1))

    def test_connectionClosedWhileReadingTakesNoMore(self) -> None:
        """It has one check point, of what it took before."""
        self.rig.batcher.flush()
        self.rig.connection.close()
        self.rig.threads.run()
        self.rig.batcher.flush()
        self.assertEqual(len(self.kept()), 1)
        self.assertNoResult(self.asked)

    def test_failedReadLeavesTheRest(self) -> None:
        """If the disk fails the pop has what it took before."""
        self.rig.disk.fail("pread", errno.EIO)
        self.rig.threads.run()
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        self.rig.batcher.flush()
        self.assertEqual(bodies(answered(self.asked)), [b"b"])
