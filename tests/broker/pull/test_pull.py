"""Tests of L{rocketbroker.broker.pull.pull}."""

from __future__ import annotations

import errno
from typing import Any

from rocketbroker.broker.pull import long_polling, pull, pull_messages
from rocketbroker.broker.pull.long_polling import CHECK_SECONDS
from rocketbroker.broker.pull.room import HELD_PULLS
from rocketbroker.store.interfaces import Arrival, IStore
from rocketbroker.store.reads import FOUND, ReadResult
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode, ResponseCode
from tests.broker.pull.pulls import (
    AGAIN,
    MOVED,
    NOT_FOUND,
    PULL,
    SEND,
    PullCase,
    bodies,
)
from tests.broker.rig import Rig, answered, pull_ext, send_ext

LITE = RequestCode.LITE_PULL_MESSAGE


class Copying:
    """A store whose statuses are equal to the constants, but not the same objects."""

    def __init__(self, store: IStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_warm(self, *arguments: Any) -> ReadResult | None:
        """A read with a status of its own."""
        result = self._store.read_warm(*arguments)
        if result is not None:
            result.status = "".join(list(result.status))
        return result


class AnswerTests(PullCase):
    """What a pull is answered at once."""

    def test_statusByValue(self) -> None:
        """A status is compared by its value: plug-ins bring strings of their own."""
        self.rig = self.prepared(Rig({}, wrap=Copying))
        self.send("a", "b")
        self.rig.scheduler.dispatch()
        ext = pull_ext(0)
        self.assertTrue(self.rig.hot(PULL, ext))
        self.rig.answers()
        self.assertEqual(self.rig.pulling._not_hot, 0)

    def test_emptyBatchQueue(self) -> None:
        """The smallest offset of an empty queue of a topic with batch queues is -1."""
        self.rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        answer = self.pull(0, topic="B")
        assert answer.ext is not None
        ends = answer.ext["minOffset"], answer.ext["maxOffset"]
        self.assertEqual(ends, ("-1", "0"))

    def test_found(self) -> None:
        """Messages from the offset on, and where to go on."""
        self.send("a", "b", "c")
        answer = self.pull(1)
        self.assertEqual((answer.code, answer.remark), (0, FOUND))
        self.assertEqual(bodies(answer), [b"b", b"c"])
        self.assertEqual(
            answer.ext,
            {
                "suggestWhichBrokerId": "0",
                "nextBeginOffset": "3",
                "minOffset": "0",
                "maxOffset": "3",
                "topicSysFlag": "0",
                "groupSysFlag": "0",
            },
        )

    def test_end(self) -> None:
        """At the end of the queue nothing is found."""
        self.send("a")
        answer = self.pull(1)
        self.assertEqual(
            (answer.code, answer.remark), (NOT_FOUND, "OFFSET_OVERFLOW_ONE")
        )
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "1")

    def test_beyondEnd(self) -> None:
        """Beyond it the offset is illegal, and the answer says where the end is."""
        self.send("a")
        answer = self.pull(9)
        self.assertEqual((answer.code, answer.remark), (MOVED, "OFFSET_OVERFLOW_BADLY"))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "1")

    def test_beforeBeginning(self) -> None:
        """Before the beginning too."""
        self.send("a")
        self.rig.scheduler.dispatch()
        ext = pull_ext(-1)
        self.assertFalse(self.rig.hot(PULL, ext))
        answer = answered(self.rig.begin(PULL, ext))
        self.assertEqual((answer.code, answer.remark), (MOVED, "OFFSET_TOO_SMALL"))

    def test_empty(self) -> None:
        """An empty queue has nothing at 0, and any other offset is illegal."""
        self.assertEqual(self.pull(0).code, NOT_FOUND)
        self.assertEqual(self.pull(5).code, MOVED)
        self.assertEqual(self.pull(5).remark, "NO_MESSAGE_IN_QUEUE")

    def test_justAppended(self) -> None:
        """A pull at the end sees what was appended but not dispatched yet."""
        self.send("a")
        self.rig.scheduler.dispatch()
        self.rig.append(b"b")
        self.assertEqual(bodies(self.pull(1)), [b"b"])

    def test_tags(self) -> None:
        """Only messages with the wanted tags are given."""
        self.send("a", tag="A")
        self.send("b", tag="B")
        self.send("c", tag="C")
        self.assertEqual(bodies(self.pull(0, subscription="A || C")), [b"a", b"c"])

    def test_noMatch(self) -> None:
        """If none has one the client goes on behind them at once."""
        self.send("a", "b", tag="A")
        answer = self.pull(0, subscription="B")
        self.assertEqual((answer.code, answer.remark), (AGAIN, "NO_MATCHED_MESSAGE"))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "2")

    def test_count(self) -> None:
        """It gives as many as are asked for, at least one."""
        self.send("a", "b", "c")
        self.assertEqual(bodies(self.pull(0, maxMsgNums="2")), [b"a", b"b"])
        self.assertEqual(bodies(self.pull(0, maxMsgNums="0")), [b"a"])
        self.assertEqual(bodies(self.pull(0, maxMsgNums="-1")), [b"a"])

    def test_bytes(self) -> None:
        """No more than 256 KiB are given at once to who does not say."""
        self.rig = self.make(mappedFileSizeCommitLog="1048576")
        self.send(*[b"x" * 60_000] * 6)
        self.assertEqual(len(bodies(self.pull(0))), 4)

    def test_flags(self) -> None:
        """The system flags of topic and group are in the answer."""
        self.rig.topic("T", 4, topic_sys_flag=2)
        self.send("a")
        self.assertEqual((self.pull(0).ext or {})["topicSysFlag"], "2")

    def test_lite(self) -> None:
        """Request 361 is answered alike, unless it is not wanted."""
        self.send("a")
        self.assertEqual(bodies(self.rig.ask(LITE, pull_ext())), [b"a"])
        self.rig = self.make(litePullMessageEnable="false")
        answer = self.rig.ask(LITE, pull_ext())
        self.assertEqual(
            (answer.code, answer.ext),
            (ResponseCode.NO_PERMISSION, {"forbiddenType": "1"}),
        )

    def test_forbidden(self) -> None:
        """What a check forbids is left to the general way, which gives the reason."""
        self.rig.topic("T", 4, perm=2)
        self.assertFalse(self.rig.hot(PULL, pull_ext()))
        answer = answered(self.rig.begin(PULL, pull_ext()))
        self.assertEqual(
            (answer.code, answer.ext),
            (ResponseCode.NO_PERMISSION, {"forbiddenType": "3"}),
        )

    def test_oneway(self) -> None:
        """A pull that wants no answer goes the general way."""
        self.assertFalse(self.rig.hot(PULL, pull_ext(), flag=2))

    def test_counted(self) -> None:
        """What a group is given of a topic is counted."""
        self.send("a", "b")
        self.pull(0)
        (counts,) = self.rig.pull_checks.counters()
        self.assertEqual((counts.group, counts.topic, counts.messages), ("G", "T", 4))
        self.assertEqual(counts.bytes, 2 * self.rig.store.published_position)


class LimitTests(PullCase):
    """How much one pull brings."""

    def begin(self, **settings: str) -> None:
        """A broker with those settings, and segments that hold a lot."""
        self.rig = self.make(
            False,
            mappedFileSizeCommitLog="4194304",
            mappedFileSizeConsumeQueue="20000",
            **settings,
        )

    def test_messages(self) -> None:
        """32 messages and no more, whatever a client asks for, as RocketMQ."""
        self.begin()
        self.send(*["x"] * 40)
        for asked in ("32", "33", "100", "2000000000"):
            self.assertEqual(len(bodies(self.pull(0, maxMsgNums=asked))), 32)
        self.assertEqual(len(bodies(self.pull(0, maxMsgNums="0"))), 1)

    def test_operators(self) -> None:
        """The settings lower and raise both limits; the bytes that a client names do
        not count, as in RocketMQ."""
        self.begin(
            maxTransferCountOnMessageInMemory="20",
            maxTransferBytesOnMessageInMemory="900000",
        )
        self.send(*[b"x" * 50_000] * 40)
        for asked in ("32", "100"):
            answer = self.pull(0, maxMsgNums=asked, maxMsgBytes="262144")
            self.assertEqual(len(bodies(answer)), 17)
        self.begin(maxTransferCountOnMessageInMemory="20")
        self.send(*["x"] * 40)
        for asked in ("32", "100"):
            self.assertEqual(len(bodies(self.pull(0, maxMsgNums=asked))), 20)

    def test_more(self) -> None:
        """With rocketbrokerMaxPullMessages clients that ask for more get more."""
        self.begin(rocketbrokerMaxPullMessages="35")
        self.send(*["x"] * 40)
        self.assertEqual(len(bodies(self.pull(0, maxMsgNums="32"))), 32)
        self.assertEqual(len(bodies(self.pull(0, maxMsgNums="34"))), 34)
        self.assertEqual(len(bodies(self.pull(0, maxMsgNums="100"))), 35)

    def test_moreBytes(self) -> None:
        """They get as many bytes as they name, at most rocketbrokerMaxPullBytes."""
        self.begin(
            rocketbrokerMaxPullMessages="100", rocketbrokerMaxPullBytes="1500000"
        )
        self.send(*[b"x" * 50_000] * 40)
        for asked, given in (("1000000", 19), ("2000000000", 29)):
            answer = self.pull(0, maxMsgNums="100", maxMsgBytes=asked)
            self.assertEqual(len(bodies(answer)), given)
        self.assertEqual(len(bodies(self.pull(0, maxMsgNums="100"))), 29)
        self.assertEqual(len(bodies(self.pull(0, maxMsgNums="32"))), 5)


class CommitTests(PullCase):
    """What a pull tells about the group's progress."""

    def test_commit(self) -> None:
        """With flag 1 the consumer's offset is committed."""
        self.send("a", "b")
        self.pull(1, sysFlag="5", commitOffset="1")
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 1)

    def test_noCommit(self) -> None:
        """Without it, it is not; but where the group pulls next is remembered."""
        self.send("a", "b")
        self.pull(0, commitOffset="1")
        self.assertEqual(self.rig.offsets.query("G", "T", 0), -1)
        self.assertEqual(self.rig.offsets.pull_offset("G", "T", 0), 2)

    def test_negative(self) -> None:
        """An offset below zero is nobody's progress."""
        self.send("a")
        self.pull(0, sysFlag="5", commitOffset="-1")
        self.assertEqual(self.rig.offsets.commits, 0)

    def test_beforeHolding(self) -> None:
        """One that is held has committed before, and does not again when woken."""
        self.hold(0, sysFlag="7", commitOffset="0")
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 0)
        self.rig.offsets.commit("G", "T", 0, 9)
        self.send("a")
        self.rig.scheduler.dispatch()
        self.assertEqual(len(self.rig.answers()), 1)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 9)

    def test_resetSwitchedOff(self) -> None:
        """With useServerSideResetOffset off no pull is told."""
        self.rig = self.make(useServerSideResetOffset="false")
        self.send("a", "b")
        self.rig.pulling.reset("G", self.rig.store.queue("T", 0), 1)
        self.assertEqual(bodies(self.pull(0)), [b"a", b"b"])


class HeldTests(PullCase):
    """Pulls that wait."""

    def test_notAnyMore(self) -> None:
        """Who may not pull any more when it is woken gets no message: it is to ask
        again, and told why then."""
        off = SubscriptionGroupConfig(group_name="G", consume_enable=False)
        general = self.rig.begin(PULL, pull_ext(0, sysFlag="6"))
        self.hold(0)
        self.rig.groups.put([off])
        self.send("a")
        self.rig.clock.advance(0.001)
        for answer in (*self.rig.answers(), answered(general)):
            self.assertEqual((answer.code, bodies(answer)), (AGAIN, []))
            self.assertEqual((answer.ext or {})["nextBeginOffset"], "0")
        self.assertEqual(answered(self.rig.begin(PULL, pull_ext(0))).code, 16)

    def test_message(self) -> None:
        """A message that comes is the answer, however the pull came."""
        self.hold(0, opaque=5)
        general = self.rig.begin(PULL, pull_ext(0, sysFlag="6"))
        self.assertEqual((self.rig.answers(), self.rig.long_polling.held), ([], 2))
        self.send("a")
        self.rig.clock.advance(0.001)
        (hot,) = self.rig.answers()
        self.assertEqual((hot.opaque, hot.code, bodies(hot)), (5, 0, [b"a"]))
        self.assertEqual(bodies(answered(general)), [b"a"])

    def test_noFlag(self) -> None:
        """One that does not want to wait does not."""
        self.assertEqual(self.pull(0).code, NOT_FOUND)
        self.assertEqual(self.rig.long_polling.held, 0)

    def test_onlyAtTheEnd(self) -> None:
        """An illegal offset does not wait, nor does one where nothing matched."""
        self.send("a", tag="A")
        self.assertEqual(self.pull(7, sysFlag="6").code, MOVED)
        self.assertEqual(self.pull(0, sysFlag="6", subscription="B").code, AGAIN)
        self.assertEqual(self.rig.long_polling.held, 0)

    def test_time(self) -> None:
        """When the time is over nothing was found."""
        self.hold(0, suspendTimeoutMillis="1500")
        self.rig.clock.advance(1.4)
        self.assertEqual(self.rig.answers(), [])
        self.rig.clock.advance(0.1)
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, NOT_FOUND)
        self.assertEqual(self.rig.long_polling.held, 0)

    def test_longTime(self) -> None:
        """Nobody waits for longer than an hour."""
        self.hold(0, suspendTimeoutMillis=str(1 << 62))
        self.rig.clock.advance(pull_messages.MAX_SUSPENDED_SECONDS)
        self.assertEqual([answer.code for answer in self.rig.answers()], [NOT_FOUND])

    def test_longSubscription(self) -> None:
        """One with a subscription that is too long to be kept is answered at once."""
        most = long_polling.MAX_KEPT_CHARACTERS
        self.hold(0, subscription="x" * most)
        self.assertEqual(self.rig.answers(), [])
        self.hold(0, subscription="x" * (most + 1))
        self.assertEqual([answer.code for answer in self.rig.answers()], [NOT_FOUND])
        self.assertEqual(len(self.rig.pull_checks._routes), 1)

    def test_filter(self) -> None:
        """A message that is not wanted does not wake it; one that is does."""
        self.hold(0, subscription="B")
        self.send("a", tag="A")
        self.rig.clock.advance(0.001)
        self.assertEqual(self.rig.answers(), [])
        self.send("b", tag="B")
        self.rig.clock.advance(0.001)
        (answer,) = self.rig.answers()
        self.assertEqual(bodies(answer), [b"b"])

    def test_check(self) -> None:
        """Unwanted messages move it on after a while."""
        broker = self.rig.broker
        broker.services.begin(HELD_PULLS, broker.pull.long_polling.check)
        self.hold(0, subscription="B")
        self.send("a", tag="A")
        self.rig.clock.advance(CHECK_SECONDS)
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, AGAIN)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "1")

    def test_closed(self) -> None:
        """It goes with its connection."""
        self.hold(0)
        self.rig.connection.close()
        self.assertEqual(self.rig.long_polling.held, 0)
        self.send("a")
        self.rig.clock.advance(20)
        self.assertEqual(self.rig.answers(), [])

    def test_closedWhileWoken(self) -> None:
        """One that is woken for a connection that just went is not answered."""
        self.hold(0)
        self.rig.connection.closed = True
        self.send("a")
        self.rig.clock.advance(0.001)
        self.assertEqual(self.rig.offsets.pull_offset("G", "T", 0), 0)

    def test_congested(self) -> None:
        """A connection with much unsent gets a word instead of messages."""
        self.hold(0)
        self.rig.connection.congested = True
        self.send("a")
        self.rig.clock.advance(0.001)
        (answer,) = self.rig.answers()
        self.assertEqual((answer.code, answer.body), (AGAIN, b""))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "0")

    def test_crowded(self) -> None:
        """So does any while unread answers take too much memory."""
        self.hold(0)
        self.rig.connection.crowded = True
        self.send("a")
        self.rig.clock.advance(0.001)
        (answer,) = self.rig.answers()
        self.assertEqual((answer.code, answer.body), (AGAIN, b""))

    def test_tooMany(self) -> None:
        """With too many held the answer comes at once."""
        self.rig = self.make(pullThreadPoolQueueCapacity="1")
        self.hold(0, opaque=1)
        self.hold(0, opaque=2)
        (answer,) = self.rig.answers()
        self.assertEqual((answer.opaque, answer.code), (2, NOT_FOUND))

    def test_synchronousFlush(self) -> None:
        """With SYNC_FLUSH a message is given once it is on the disk."""
        self.rig = self.make(threads=True, flushDiskType="SYNC_FLUSH")
        self.hold(0)
        self.rig.begin(SEND, send_ext(), b"a")
        self.rig.batcher.flush()
        self.rig.clock.advance(0.001)
        self.assertEqual(self.rig.answers(), [])
        self.rig.threads.run()
        self.rig.clock.advance(0.001)
        self.assertEqual(len(self.rig.answers()), 1)

    def test_spuriousWaking(self) -> None:
        """One that is woken and finds nothing is answered, not held again."""
        self.hold(0)
        queue = self.rig.store.queue("T", 0)
        (held,) = self.rig.long_polling._queues[queue]
        self.rig.long_polling._resume(held)
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, NOT_FOUND)
        self.assertEqual(self.rig.long_polling.held, 0)
        self.rig.long_polling.wake(Arrival(queue, []))


class ColdTests(PullCase):
    """Messages that only the disk has."""

    def setUp(self) -> None:
        """All but the newest is cold; reads happen when a test says so."""
        self.rig = self.make(threads=True, accessMessageInMemoryMaxRatio="0")
        self.send("a", "b", "c")
        self.rig.scheduler.dispatch()

    def test_thread(self) -> None:
        """They are read in a thread."""
        self.assertTrue(self.rig.hot(PULL, pull_ext(0)))
        general = self.rig.begin(PULL, pull_ext(0))
        self.assertEqual((self.rig.answers(), self.rig.pulling.cold), ([], 2))
        self.rig.threads.run()
        (hot,) = self.rig.answers()
        self.assertEqual(bodies(hot)[0], b"a")
        self.assertEqual(bodies(answered(general)), bodies(hot))
        self.assertEqual((self.rig.pulling.cold, self.rig.pulling.cold_pulls), (0, 2))

    def test_failure(self) -> None:
        """If the disk fails that pull alone is answered so, in words."""
        self.rig.hot(PULL, pull_ext(0))
        self.rig.disk.fail("pread", errno.EIO, times=9)
        self.rig.threads.run()
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, ResponseCode.SYSTEM_ERROR)
        self.assertEqual(self.rig.pulling.cold, 0)

    def test_crowded(self) -> None:
        """What was read while unread answers took too much memory is not kept."""
        self.rig.hot(PULL, pull_ext(0))
        self.rig.connection.crowded = True
        self.rig.threads.run()
        (answer,) = self.rig.answers()
        self.assertEqual((answer.code, answer.body), (AGAIN, b""))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "0")

    def test_topicDeletedWhileReading(self) -> None:
        """What was read of a topic that was deleted meanwhile is not given, and where
        the group was in it is not remembered."""
        self.rig.hot(PULL, pull_ext(0, sysFlag="5", commitOffset="2"))
        self.rig.store.delete_topic("T")
        self.rig.offsets.forget_topic("T")
        self.rig.threads.run()
        (answer,) = self.rig.answers()
        self.assertEqual((answer.code, answer.body), (AGAIN, b""))
        self.assertEqual(self.rig.offsets.queues("G", "T"), {})
        self.assertEqual(self.rig.offsets.pull_offset("G", "T", 0), -1)

    def test_tooLate(self) -> None:
        """A pull that waits too long for a thread hears so, and nothing is read."""
        self.rig.hot(PULL, pull_ext(0))
        general = self.rig.begin(PULL, pull_ext(0))
        self.rig.clock.advance(5.0)
        (answer,) = self.rig.answers()
        self.assertEqual(answer.code, ResponseCode.SYSTEM_BUSY)
        self.assertIn("[TIMEOUT_CLEAN_QUEUE]broker busy", answer.remark or "")
        self.assertEqual(answered(general).code, ResponseCode.SYSTEM_BUSY)
        self.assertEqual(self.rig.pulling.cold, 0)
        self.rig.threads.run()
        self.assertEqual(self.rig.answers(), [])

    def test_tooMany(self) -> None:
        """When too many wait for the disk the next hears to slow down."""
        for _ in range(pull.MAX_COLD + 1):
            self.rig.hot(PULL, pull_ext(0))
        (answer,) = self.rig.answers()
        self.assertIn("[OVERLOAD]system busy", answer.remark or "")
        general = answered(self.rig.begin(PULL, pull_ext(0)))
        self.assertEqual({answer.code, general.code}, {ResponseCode.SYSTEM_BUSY})
        self.assertEqual(self.rig.pulling.cold_overloads, 2)
