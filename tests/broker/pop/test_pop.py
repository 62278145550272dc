"""Tests of L{rocketbroker.broker.pop.pop}: who gets which messages."""

from __future__ import annotations

import errno
from typing import Any

from twisted.logger import capturedLogs

from rocketbroker.broker.pop.pop import STEP_SOURCES
from rocketbroker.errors import (
    FAQ,
    InvalidParameter,
    NoPermission,
    ServiceNotAvailable,
    SubscriptionGroupNotExist,
    SubscriptionParseFailed,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import ResponseCode
from tests.broker.pop.pops import (
    INVISIBLE_MS,
    POP,
    PopCase,
    bodies,
    handles,
    header_of,
    messages,
)
from tests.broker.rig import answered


class PopTests(PopCase):
    """Request 200050."""

    def test_found(self) -> None:
        """All that is there comes, with the fields from which its handles are made."""
        self.send("a", "b", "c")
        answer = self.pop()
        self.assertEqual((answer.code, answer.remark), (0, "FOUND"))
        self.assertEqual(bodies(answer), [b"a", b"b", b"c"])
        header = header_of(answer)
        self.assertEqual(header.pop_time, self.rig.wall_ms())
        self.assertEqual(header.invisible_time, INVISIBLE_MS)
        self.assertEqual(header.rest_num, 0)
        self.assertEqual(header.start_offset_info, "0 0 0")
        self.assertEqual(header.msg_offset_info, "0 0 0,1,2")
        self.assertIsNone(header.order_count_info)

    def test_once(self) -> None:
        """What one member has is not given to another one."""
        self.send("a", "b", "c")
        self.assertEqual(self.popped(maxMsgNums=2), [b"a", b"b"])
        self.assertEqual(self.popped(), [b"c"])
        self.assertEqual(self.popped(), [])
        self.assertEqual(self.popped(consumerGroup="H"), [b"a", b"b", b"c"])

    def test_nothing(self) -> None:
        """Without messages and without waiting the answer is POLLING_TIMEOUT."""
        answer = self.pop()
        self.assertEqual(answer.code, ResponseCode.POLLING_TIMEOUT)
        self.assertEqual(answer.remark, "NO_MESSAGE_IN_QUEUE")
        self.assertEqual(header_of(answer).invisible_time, INVISIBLE_MS)

    def test_manyQueues(self) -> None:
        """A pop takes from all queues, or from the one that it names; how many are
        left is told."""
        self.rig = self.make(queues=3)
        for queue_id in range(3):
            self.send(f"{queue_id}a", f"{queue_id}b", queue_id=queue_id)
        self.assertEqual(self.popped(queueId=1), [b"1a", b"1b"])
        answer = self.pop(maxMsgNums=3)
        self.assertEqual(len(bodies(answer)), 3)
        self.assertEqual(header_of(answer).rest_num, 1)
        starts = str(header_of(answer).start_offset_info).split(";")
        self.assertEqual(sorted(starts), ["0 0 0", "0 2 0"])
        rest = self.popped()
        everything = sorted([*bodies(answer), *rest])
        self.assertEqual(everything, [b"0a", b"0b", b"2a", b"2b"])

    def test_turns(self) -> None:
        """Pops begin with one queue after the other."""
        self.rig = self.make(queues=4)
        for queue_id in range(4):
            self.send(f"{queue_id}", queue_id=queue_id)
        first = [self.popped(maxMsgNums=1)[0] for _ in range(4)]
        self.assertEqual(sorted(first), [b"0", b"1", b"2", b"3"])

    def test_tags(self) -> None:
        """Only messages of the wanted tags come; the others are passed."""
        self.send("a", tag="x")
        self.send("b", tag="y")
        self.send("c", tag="x")
        answer = self.pop(exp="x")
        self.assertEqual(bodies(answer), [b"a", b"c"])
        self.assertEqual(header_of(answer).msg_offset_info, "0 0 0,2")
        self.assertEqual(self.popped(exp="*"), [])

    def test_noneMatches(self) -> None:
        """A group whose filter takes nothing goes on behind what was looked at."""
        self.send("a", "b", tag="y")
        self.assertEqual(self.popped(exp="x"), [])
        self.pass_by(1)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 2)

    def test_initMode(self) -> None:
        """A new group begins at the first message, or if it wishes at the last; where
        the first is in memory it gets all, too."""
        self.send("a", "b", "c")
        self.assertEqual(self.popped(consumerGroup="H", initMode=1), [b"a", b"b", b"c"])
        self.rig = self.make(initPopOffsetByCheckMsgInMem="false")
        self.send("a", "b", "c")
        self.assertEqual(self.popped(consumerGroup="H", initMode=1), [b"c"])

    def test_beginsEverywhere(self) -> None:
        """A group that begins at the last message begins in all queues at once, in
        those too that its first pop does not need."""
        self.rig = self.make(queues=3, initPopOffsetByCheckMsgInMem="false")
        for queue_id in range(3):
            self.send("a", "b", queue_id=queue_id)
        answer = self.pop(maxMsgNums=1, initMode=1)
        self.assertEqual(bodies(answer), [b"b"])
        self.assertEqual(header_of(answer).rest_num, 2)
        for queue_id in range(3):
            self.send("c", queue_id=queue_id)
        answer = self.pop(maxMsgNums=1, initMode=1)
        self.assertEqual(header_of(answer).rest_num, 4)
        self.assertEqual(sorted(self.popped(initMode=1)), [b"b", b"c", b"c", b"c"])

    def test_commit(self) -> None:
        """The group's offset moves when the check point is on the disk."""
        self.send("a", "b")
        self.pop(maxMsgNums=1)
        self.pop(maxMsgNums=1)
        self.pass_by(0.2)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 0)
        self.rig.store.flush()
        self.pass_by(0.2)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 2)

    def test_reset(self) -> None:
        """A group whose offset is reset goes on there, once."""
        self.send("a", "b", "c")
        self.popped()
        self.rig.offsets.reset("G", "T", 0, 1)
        self.assertEqual(self.popped(), [b"b", b"c"])
        self.assertEqual(self.popped(), [])

    def test_resetWakes(self) -> None:
        """One that waits gets what the reset is for."""
        self.send("a", "b")
        self.popped()
        waiting = self.wait()
        self.rig.offsets.reset("G", "T", 0, 1)
        self.rig.batcher.flush()
        self.assertEqual(self.answers(waiting), [[b"b"]])

    def test_newTopic(self) -> None:
        """A topic of the same name as one that was deleted is consumed from its
        beginning, in order or not."""
        self.send("a", "b", "c")
        self.popped()
        self.popped(consumerGroup="H", order="true")
        self.rig.ask(215, {"topic": "T"})
        self.rig.topic("T", 1)
        self.send("x")
        self.assertEqual(self.popped(), [b"x"])
        self.assertEqual(self.popped(consumerGroup="H", order="true"), [b"x"])
        self.assertEqual(self.rig.broker.pop.progress.in_flight("G", "T", 0), 1)

    def test_newGroup(self) -> None:
        """So is a group whose offsets were deleted with it."""
        self.send("a")
        self.popped()
        self.rig.ask(207, {"groupName": "G", "cleanOffset": "true"})
        self.assertEqual(self.popped(), [b"a"])

    def test_beyondTheEnd(self) -> None:
        """A group whose offset is beyond its queue goes on at the end."""
        self.send("a", "b")
        self.rig.offsets.commit("G", "T", 0, 77)
        self.assertEqual(self.popped(), [])
        self.send("c")
        self.assertEqual(self.popped(), [b"c"])

    def test_fullDisk(self) -> None:
        """A disk that is full keeps nobody from reading; the offset stays until the
        check point can be written."""
        self.send("a", "b")
        self.pass_by(0.1)
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=1000)
        with capturedLogs():
            self.assertEqual(self.popped(maxMsgNums=1), [b"a"])
            self.assertEqual(self.rig.broker.pop.buffer.failures, 1)
            self.rig.disk.heal()
            self.rig.store.flush()
            self.rig.broker.pop.progress.commit()
            self.assertEqual(self.rig.offsets.query("G", "T", 0), 0)
            self.pass_by(3)
        self.rig.store.flush()
        self.pass_by(0.1)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 1)
        self.assertEqual(self.popped(), [b"b"])
        self.pass_by(34)
        self.assertEqual(sorted(self.popped()), [b"a", b"b"])


class CheckTests(PopCase):
    """What is refused."""

    def refuses(self, error: type[Exception], **more: object) -> str:
        """Such a pop is refused with that error.

        @return: what it says.
        """
        return str(self.assertRaises(error, self.rig.begin, POP, self.ext(**more)))

    def test_late(self) -> None:
        """One whose time is over is not begun."""
        born = self.rig.wall_ms() - 501
        answer = self.pop(bornTime=born)
        self.assertEqual(answer.code, ResponseCode.POLLING_TIMEOUT)
        self.assertNotIn("popTime", answer.ext or {})

    def test_names(self) -> None:
        """Unknown topics and queues, and groups that may not be made."""
        said = self.refuses(TopicNotExist, topic="X")
        self.assertEqual(said, f"topic[X] not exist, apply first please! {FAQ}")
        self.refuses(InvalidParameter, queueId=1)
        self.refuses(InvalidParameter, maxMsgNums=33)
        self.rig.change(autoCreateSubscriptionGroup="false")
        said = self.refuses(SubscriptionGroupNotExist, consumerGroup="H")
        self.assertEqual(said, f"subscription group [H] does not exist, {FAQ}")

    def test_permissions(self) -> None:
        """Who may not read does not."""
        self.rig.topic("W", 1, perm=2)
        self.refuses(NoPermission, topic="W")
        self.rig.groups.put(
            [SubscriptionGroupConfig(group_name="N", consume_enable=False)]
        )
        self.refuses(NoPermission, consumerGroup="N")
        self.rig.change(brokerPermission="2")
        self.refuses(NoPermission)

    def test_filters(self) -> None:
        """Expressions that do not compile, and those that are switched off."""
        self.refuses(SystemFailure, expType="SQL92", exp="a = 1")
        self.rig = self.make(enablePropertyFilter="true")
        self.refuses(SubscriptionParseFailed, expType="SQL92", exp="a = = 1")
        self.assertEqual(self.popped(expType="SQL92", exp="a = 1"), [])

    def test_longExpressionIsWaitedFor(self) -> None:
        """A pop with a long expression waits for its compiler."""
        self.rig = self.make(enablePropertyFilter="true")
        long = " AND ".join(f"a <> {number}" for number in range(700, 900))
        popped = self.rig.begin(POP, self.ext(expType="SQL92", exp=long))
        self.assertEqual(self.rig.broker.slices.waiting, 1)
        while self.rig.broker.slices.waiting:
            self.rig.clock.advance(0.01)
        self.assertEqual(answered(popped).code, ResponseCode.POLLING_TIMEOUT)
        self.assertEqual(self.popped(expType="SQL92", exp=long), [])

    def test_switchedOff(self) -> None:
        """Without the timer, or with the key-value store, nothing is popped."""
        self.rig = self.make(timerWheelEnable="false")
        self.refuses(SystemFailure)
        self.rig = self.make(popConsumerKVServiceEnable="true")
        self.refuses(SystemFailure)

    def test_slave(self) -> None:
        """A slave stores no check points, so that it gives nothing to pop."""
        self.rig = self.make(brokerRole="SLAVE", brokerId="1")
        self.refuses(ServiceNotAvailable)


class RetryTests(PopCase):
    """Messages that come again."""

    def test_again(self) -> None:
        """What is not acknowledged comes again when its time is over, to anybody, as a
        message of its topic."""
        self.send("a", "b")
        answer = self.pop()
        self.ack(handles(answer)[0])
        self.pass_by(30)
        self.assertEqual(self.popped(), [])
        self.pass_by(4)
        again = self.pop()
        (message,) = messages(again)
        self.assertEqual((message.topic, message.body), ("T", b"b"))
        self.assertEqual(message.reconsume_times, 1)
        first = header_of(answer).pop_time
        self.assertEqual(message.properties["1ST_POP_TIME"], str(first))
        header = header_of(again)
        handle = message.properties["POP_CK"]
        now = self.rig.wall_ms()
        queue = header.revive_qid
        self.assertEqual(handle, f"0 {now} {INVISIBLE_MS} {queue} 1 broker-a 0 0")
        self.assertEqual(header.start_offset_info, "1 0 0")
        self.assertEqual(header.msg_offset_info, "1 0 0")

    def test_ackedLater(self) -> None:
        """What came again and is acknowledged then is over."""
        self.send("a")
        self.pop()
        self.pass_by(34)
        (handle,) = handles(self.pop())
        self.assertEqual(self.ack(handle, topic="%RETRY%G_T").code, 0)
        self.pass_by(60)
        self.assertEqual(self.popped(), [])

    def test_everyTime(self) -> None:
        """It comes until it is acknowledged, each time with one more."""
        self.send("a")
        self.pop()
        for times in range(1, 5):
            self.pass_by(34)
            (message,) = messages(self.pop())
            self.assertEqual(message.reconsume_times, times)

    def test_version2(self) -> None:
        """With enableRetryTopicV2 it comes by the other name; what waits by the first
        comes, too."""
        self.send("a")
        self.pop()
        self.pass_by(34)
        self.rig.change(enableRetryTopicV2="true")
        self.send("b")
        first = [*self.popped(), *self.popped()]
        self.assertEqual(sorted(first), [b"a", b"b"])
        self.pass_by(34)
        kinds = set()
        for _ in range(4):
            answer = self.pop()
            kinds |= (
                {handle.kind for handle in handles(answer)} if answer.body else set()
            )
        self.assertEqual(kinds, {"1", "2"})

    def test_actualTopic(self) -> None:
        """With popResponseReturnActualRetryTopic it comes as it is stored."""
        self.rig.change(popResponseReturnActualRetryTopic="true")
        self.send("a")
        self.pop()
        self.pass_by(34)
        (message,) = messages(self.pop())
        self.assertEqual(message.topic, "%RETRY%G_T")
        self.assertNotIn("POP_CK", message.properties)

    def test_gone(self) -> None:
        """Nothing comes of a topic that is gone."""
        self.send("a")
        self.pop()
        self.rig.topics.delete("T")
        self.pass_by(40)
        self.assertIsNone(self.rig.topics.config("%RETRY%G_T"))


class WaitTests(PopCase):
    """Pops that wait."""

    def test_arrival(self) -> None:
        """A message wakes one of those that wait."""
        waiting = [self.wait(), self.wait()]
        self.send("a")
        self.assertEqual(self.answers(waiting[0]), [[b"a"]])
        self.assertFalse(waiting[1].called)

    def test_over(self) -> None:
        """One that gets nothing is answered in time."""
        waiting = self.wait()
        self.pass_by(14.5)
        self.assertFalse(waiting.called)
        self.pass_by(1)
        self.assertEqual(answered(waiting).code, ResponseCode.POLLING_TIMEOUT)

    def test_chain(self) -> None:
        """One that leaves some wakes the next."""
        waiting = [self.wait(maxMsgNums=1) for _ in range(3)]
        queue = self.rig.store.queue("T", 0)
        self.assertEqual(queue.max_offset, 0)
        for _ in range(3):
            self.rig.append(b"x")
        self.rig.scheduler.dispatch()
        self.rig.batcher.flush()
        self.assertEqual(self.answers(*waiting), [[b"x"]] * 3)

    def test_newcomer(self) -> None:
        """One that comes when a message was appended, and is not dispatched, does not
        get what it wakes another one for."""
        waiting = self.wait()
        self.rig.append(b"a")
        newcomer = self.rig.begin(POP, self.ext())
        self.rig.batcher.flush()
        self.assertEqual(self.answers(waiting), [[b"a"]])
        self.assertEqual(bodies(answered(newcomer)), [])

    def test_filter(self) -> None:
        """A message wakes only those that want its tag."""
        other, waiting = self.wait(exp="x"), self.wait(exp="y")
        self.send("a", tag="y")
        self.assertEqual(self.answers(waiting), [[b"a"]])
        self.assertFalse(other.called)

    def test_retry(self) -> None:
        """A message that comes again wakes, too."""
        self.send("a")
        self.pop()
        self.pass_by(25)
        waiting = self.wait()
        self.pass_by(9)
        self.assertEqual(self.answers(waiting), [[b"a"]])

    def test_full(self) -> None:
        """Of too many the last is told so."""
        self.rig.change(maxPopPollingSize="1")
        self.wait()
        answer = self.rig.ask(POP, self.ext(pollTime=15_000))
        self.assertEqual(answer.code, ResponseCode.POLLING_FULL)

    def test_closed(self) -> None:
        """A client that goes takes nothing with it."""
        self.wait()
        self.rig.connection.close()
        self.send("a")
        self.assertEqual(self.popped(), [b"a"])


class WideTests(PopCase):
    """Pops of more queues than are looked at in one turn."""

    QUEUES = 2 * STEP_SOURCES + 1

    def setUp(self) -> None:
        """A wide topic, whose queues no pop has looked at."""
        self.rig = self.make(self.QUEUES)

    def begin(self, **more: object) -> Any:
        """A pop, whose first turn is over."""
        answer = self.rig.begin(POP, self.ext(**more))
        self.rig.batcher.flush()
        return answer

    def test_allQueues(self) -> None:
        """Messages of all queues come, those of the last ones in later turns."""
        for queue_id in range(0, self.QUEUES, STEP_SOURCES):
            self.send("a", queue_id=queue_id)
        asked = self.begin()
        self.assertFalse(asked.called)
        steps = self.rig.broker.slices.steps
        self.rig.clock.advance(0)
        self.assertEqual(len(bodies(answered(asked))), 3)
        self.assertGreaterEqual(self.rig.broker.slices.steps - steps, 2)

    def test_arrivalBehindIt(self) -> None:
        """A message that comes to a queue that it has passed is not missed."""
        for order in ("false", "true"):
            waiting = self.begin(pollTime=15000, order=order)
            self.assertFalse(waiting.called)
            for queue_id in range(self.QUEUES):
                if self.rig.offsets.query("G", "T", queue_id) >= 0:
                    self.send("a", queue_id=queue_id)
                    break
            self.pass_by(1)
            self.assertEqual(bodies(answered(waiting)), [b"a"])

    def test_closed(self) -> None:
        """One whose connection closes meanwhile takes nothing more."""
        self.send("a", queue_id=0)
        self.begin()
        self.rig.connection.close()
        self.rig.clock.advance(0)
        self.assertEqual(self.kept(), [])
