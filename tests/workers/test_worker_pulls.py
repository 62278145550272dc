"""Pulls that workers answer themselves: which they are, what they wait for, and what
becomes of them when something changes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.record import decode_all
from rocketbroker.remoting.counts import Latencies
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.workers.pull_approvals import SETTLE_SECONDS
from rocketbroker.workers.worker import LOAD_SECONDS
from rocketbroker.workers.worker_pulls import (
    ASK_AGAIN_SECONDS,
    CHECK_SECONDS,
    REPORT_SECONDS,
)
from tests.broker.rig import UNIQUE, heartbeat, pull_ext, send_ext
from tests.workers.sendrig import PULL, SEND, SendClient, SendRig

#: A request that is a test's.
CHANGE = 99

#: A pull that waits for a message.
WAITS = {"sysFlag": "6"}


def bodies(answer: Command) -> list[bytes]:
    """The bodies of the messages in an answer."""
    return [message.body for message in decode_all(answer.body)]


class OwnPullsCase(SynchronousTestCase):
    """A broker with two workers, and topic T with some messages in queue 0."""

    settings: dict[str, str] = {}

    def setUp(self) -> None:
        """Two clients, one of each worker."""
        self.r = SendRig(2, enablePropertyFilter="true", **self.settings)
        self.addCleanup(self.r.end)
        self.one, self.two = self.r.client(), self.r.client()
        for body in (b"a", b"b", b"c"):
            self.assertEqual(self.one.sent(body).code, 0)
        self.settle()

    def settle(self) -> None:
        """All is told anew."""
        self.r.later()
        self.r.step(SETTLE_SECONDS)
        self.r.step(ASK_AGAIN_SECONDS)

    def pull(
        self,
        client: SendClient,
        offset: int | str = 0,
        queue_id: int | str = 0,
        **more: str,
    ) -> Command:
        """The answer to a pull."""
        opaque = client.ask(PULL, pull_ext(offset, queue_id, **more))
        self.r.step()
        return client.answers[opaque]

    def known(self, client: SendClient, **more: str) -> None:
        """Let a client's worker know the route. The first pull makes the group."""
        for _ in range(2):
            self.pull(client, 0, **more)
            self.settle()

    @property
    def own(self) -> int:
        """How many pulls workers have answered."""
        return sum(each.worker.own_pulls.answered for each in self.r.processes)

    def tagged(self, client: SendClient, body: bytes, tag: str) -> None:
        """Send a message with a tag."""
        properties = f"UNIQ_KEY\x01{UNIQUE}\x02TAGS\x01{tag}\x02"
        client.ask(SEND, send_ext(properties=properties), body)
        self.r.step()


class ServedTests(OwnPullsCase):
    """Which pulls they answer."""

    def test_answered(self) -> None:
        """An ordinary pull is relayed the first time, and answered by the worker then,
        with the same bytes."""
        self.pull(self.one)
        self.settle()
        first = self.pull(self.one)
        self.assertEqual(self.own, 0)
        second = self.pull(self.one)
        self.assertEqual(self.own, 1)
        self.assertEqual(bodies(second), [b"a", b"b", b"c"])
        self.assertEqual((first.ext, first.body), (second.ext, second.body))
        self.assertEqual((first.code, first.remark), (second.code, second.remark))

    def test_counted(self) -> None:
        """The owner counts them as its own, and remembers how far the group is."""
        self.known(self.one)
        broker = self.r.broker
        before = broker.pull.pulling.hot_pulls
        latencies: Latencies = broker.main.latencies[PULL, 0]
        answered = latencies.count
        self.pull(self.one, 1, sysFlag="5", commitOffset="1")
        self.r.later()
        self.r.step(REPORT_SECONDS)
        self.assertEqual(broker.pull.pulling.hot_pulls, before + 1)
        self.assertEqual(broker.main.latencies[PULL, 0].count, answered + 1)
        self.assertEqual(broker.metadata.offsets.query("G", "T", 0), 1)
        self.assertEqual(broker.metadata.offsets.pull_offset("G", "T", 0), 3)
        (counts,) = broker.pull.checks.counters()
        self.assertEqual((counts.messages, counts.pulls), (8, 3))

    def test_order(self) -> None:
        """An offset that a pull has committed does not replace a later one that came
        behind it."""
        self.known(self.one)
        self.one.ask(PULL, pull_ext(1, sysFlag="5", commitOffset="1"))
        commit = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "commitOffset": "3",
        }
        self.one.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
        self.r.step()
        self.r.step(REPORT_SECONDS)
        self.assertEqual(self.own, 1)
        self.assertEqual(self.r.broker.metadata.offsets.query("G", "T", 0), 3)

    def test_tags(self) -> None:
        """Filters by tags."""
        self.tagged(self.one, b"red", "RED")
        self.tagged(self.one, b"blue", "BLUE")
        self.r.later()
        self.known(self.one, subscription="RED")
        answer = self.pull(self.one, 0, subscription="RED")
        self.assertEqual(self.own, 1)
        self.assertEqual(bodies(answer), [b"red"])
        answer = self.pull(self.one, 0, subscription="BLUE")
        self.assertEqual(bodies(answer), [b"blue"])
        self.assertEqual(self.own, 1)

    def test_sql(self) -> None:
        """Filters by properties."""
        properties = f"UNIQ_KEY\x01{UNIQUE}\x02n\x017\x02"
        self.one.ask(SEND, send_ext(properties=properties), b"seven")
        self.settle()
        words = {"subscription": "n = 7", "expressionType": "SQL92"}
        self.known(self.one, **words)
        answer = self.pull(self.one, 0, **words)
        self.assertEqual(self.own, 1)
        self.assertEqual(bodies(answer), [b"seven"])

    def test_longExpressionIsTheOwners(self) -> None:
        """The owner answers pulls with a long expression: it compiles it in slices."""
        long = " AND ".join(f"n <> {number}" for number in range(200))
        words = {"subscription": long, "expressionType": "SQL92"}
        broker = self.r.broker
        broker.clients.filters.compiler.prepare(self, long)
        for _ in range(300):
            self.r.later()
        self.assertEqual(broker.slices.waiting, 0)
        self.known(self.one, **words)
        answer = self.pull(self.one, 0, **words)
        self.assertEqual(answer.code, ResponseCode.PULL_RETRY_IMMEDIATELY)
        self.assertEqual(self.own, 0)

    def test_noneMatches(self) -> None:
        """A filter that takes nothing lets the client go on behind what it passed."""
        self.known(self.one, subscription="NONE")
        answer = self.pull(self.one, 0, subscription="NONE")
        self.assertEqual(self.own, 1)
        self.assertEqual(answer.code, ResponseCode.PULL_RETRY_IMMEDIATELY)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "3")

    def test_subscription(self) -> None:
        """The subscription that heartbeats have brought, until they bring another."""
        self.one.ask(34, {}, heartbeat())
        self.settle()
        words = {"sysFlag": "0"}
        self.known(self.one, **words)
        before = self.own
        self.assertEqual(bodies(self.pull(self.one, 0, **words)), [b"a", b"b", b"c"])
        self.assertEqual(self.own, before + 1)
        newer = self.pull(self.one, 0, subVersion=str(1 << 60), **words)
        self.assertEqual(newer.code, 0)
        self.assertEqual(self.own, before + 1)
        self.one.ask(34, {}, heartbeat(["Other"]))
        self.r.step()
        answer = self.pull(self.one, 0, **words)
        self.assertEqual(answer.code, ResponseCode.SUBSCRIPTION_NOT_EXIST)

    def test_broadcasting(self) -> None:
        """Pulls of broadcasting groups are the owner's: it notes them by client."""
        beat = heartbeat().replace(b"CLUSTERING", b"BROADCASTING")
        self.one.ask(34, {}, beat)
        self.settle()
        self.known(self.one, sysFlag="0")
        self.known(self.one, sysFlag="0")
        self.assertEqual(self.own, 0)

    def test_elsewhere(self) -> None:
        """What is not in the queue is the owner's to explain."""
        self.known(self.one)
        for offset in (17, 3):
            answer = self.pull(self.one, offset)
            self.assertNotEqual(answer.code, 0)
        self.assertEqual(self.pull(self.one, 0, queue_id=9).code, 29)
        self.assertEqual(self.own, 0)

    def test_oldRecords(self) -> None:
        """Records from before the start are checked; a damaged one is the owner's."""
        for worker in self.r.alive:
            self.assertEqual(worker.own_pulls.version > 0, True)
        self.known(self.one)
        self.r.store.queue("T", 0).trusted_from = 3
        self.r.approvals.pulls.changed()
        self.settle()
        self.known(self.one)
        before = self.own
        self.assertEqual(bodies(self.pull(self.one, 1)), [b"b", b"c"])
        self.assertEqual(self.own, before + 1)
        damaged = self.r.disk.read("/store/commitlog/" + "0" * 20).index(b"\0\0\1b\1T")
        file = self.r.disk.open("/store/commitlog/" + "0" * 20)
        file.pwrite(b"x", damaged + 3)
        self.assertEqual(bodies(self.pull(self.one, 1)), [b"c"])
        self.assertEqual(self.own, before + 1)
        self.assertEqual(self.r.store.corruption_log.records, 1)


class WaitingTests(OwnPullsCase):
    """Pulls at the end of a queue."""

    def setUp(self) -> None:
        """A pull waits in a worker."""
        super().setUp()
        self.known(self.one, **WAITS)
        self.opaque = self.one.ask(PULL, pull_ext(3, **WAITS))
        self.r.step()
        self.held = self.r.alive[0].own_pulls.polling
        assert self.held is not None
        own = self.r.broker.pull.long_polling
        self.assertEqual((self.held.held, own.held), (1, 0))
        self.r.step(LOAD_SECONDS)
        self.assertEqual(own.held_everywhere, 1)

    def answer(self) -> Command:
        """What it got."""
        return self.one.answers[self.opaque]

    def test_woken(self) -> None:
        """It gets the message when that comes, whoever appends it; it is counted as
        one pull that has found nothing first."""
        self.r.step(REPORT_SECONDS)
        pulling = self.r.broker.pull.pulling
        before = pulling.hot_pulls, pulling.found(), pulling.missed
        self.assertEqual(self.two.sent(b"new").code, 0)
        self.r.later()
        self.assertEqual(bodies(self.answer()), [b"new"])
        self.r.step(REPORT_SECONDS)
        after = pulling.hot_pulls, pulling.found(), pulling.missed
        self.assertEqual(after, (before[0], before[1] + 1, before[2]))
        opaque = self.one.ask(PULL, pull_ext(4, **WAITS))
        self.r.step()
        self.two.sent(b"newer")
        self.r.later()
        self.assertEqual(bodies(self.one.answers[opaque]), [b"newer"])

    def test_notDispatched(self) -> None:
        """What is appended and not in the queue yet comes at once."""
        self.two.sent(b"new")
        self.r.later()
        for body in (b"newer", b"newest"):
            self.two.sent(body)
        end = self.r.store.queue("T", 0).max_offset
        self.assertLess(end, 6)
        opaque = self.one.ask(PULL, pull_ext(end, **WAITS))
        self.r.step()
        self.assertEqual(bodies(self.one.answers[opaque])[-1], b"newest")

    def test_changeInTurn(self) -> None:
        """Nothing waits here after a change, though this turn has not looked."""
        worker = self.r.alive[0]

        def change(connection: IConnection, header: bytes, body: bytes) -> bool:
            self.r.store.sharing.let_read(0)
            return True

        worker.table.register_hot(CHANGE, change)
        self.one.ask_together(
            (PULL, pull_ext(0)), (CHANGE, {}), (PULL, pull_ext(3, **WAITS))
        )
        worker.hub.doRead()
        self.r.step()
        assert self.held is not None
        self.assertEqual((self.held.held, self.r.broker.pull.long_polling.held), (1, 1))

    def test_filtered(self) -> None:
        """Others are not for it; the regular look lets it go on behind them."""
        self.two.sent(b"new")
        self.r.later()
        words = {**WAITS, "subscription": "RED"}
        self.known(self.one, **words)
        opaque = self.one.ask(PULL, pull_ext(4, **words))
        self.r.step()
        self.tagged(self.two, b"blue", "BLUE")
        self.r.later()
        self.assertNotIn(opaque, self.one.answers)
        self.tagged(self.two, b"red", "RED")
        self.r.later()
        self.assertEqual(bodies(self.one.answers[opaque]), [b"red"])
        opaque = self.one.ask(PULL, pull_ext(6, **words))
        self.r.step()
        self.tagged(self.two, b"blue", "BLUE")
        self.r.later()
        self.assertNotIn(opaque, self.one.answers)
        self.r.step(CHECK_SECONDS)
        answer = self.one.answers[opaque]
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "7")

    def test_expired(self) -> None:
        """When its time is over it is told that there was nothing."""
        self.r.step(13.5)
        self.assertNotIn(self.opaque, self.one.answers)
        self.r.step(1.0)
        self.assertEqual(self.answer().code, ResponseCode.PULL_NOT_FOUND)
        self.assertEqual(self.answer().remark, "OFFSET_OVERFLOW_ONE")

    def test_reset(self) -> None:
        """A reset lets it ask again, and then it is sent elsewhere."""
        queue = self.r.store.queue("T", 0)
        self.r.hub.turns.within(lambda: self.r.broker.pull.pulling.reset("G", queue, 1))
        self.r.step()
        self.assertEqual(self.answer().code, ResponseCode.PULL_RETRY_IMMEDIATELY)
        answer = self.pull(self.one, 3, **WAITS)
        self.assertEqual(answer.code, ResponseCode.PULL_OFFSET_MOVED)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "1")

    def test_otherVersion(self) -> None:
        """After a change it asks again when it is woken."""
        self.r.approvals.pulls.changed()
        self.settle()
        self.assertNotIn(self.opaque, self.one.answers)
        self.two.sent(b"new")
        self.r.later()
        self.assertEqual(self.answer().code, ResponseCode.PULL_RETRY_IMMEDIATELY)
        self.assertEqual((self.answer().ext or {})["nextBeginOffset"], "3")

    def test_closed(self) -> None:
        """It goes with its connection."""
        self.one.socket.close()
        self.r.clients.remove(self.one)
        self.r.step()
        assert self.held is not None
        self.assertEqual(self.held.held, 0)

    def test_workerDied(self) -> None:
        """The owner forgets that a worker which died has waited."""
        self.assertEqual(len(self.r.approvals.pulls._waiting), 1)
        self.r.processes[0].kill()
        self.assertEqual(self.r.approvals.pulls._waiting, {})


class ChangeTests(OwnPullsCase):
    """From a change on nothing is answered by what was before."""

    def setUp(self) -> None:
        """Worker 1 knows the route."""
        super().setUp()
        self.known(self.one)
        self.pull(self.one)
        self.assertEqual(self.own, 1)

    def relayed(self) -> Command:
        """The answer to a pull that the worker does not answer."""
        before = self.own
        answer = self.pull(self.one)
        self.assertEqual(self.own, before)
        return answer

    def test_topic(self) -> None:
        """A topic is deleted."""
        self.two.ask(215, {"topic": "T"})
        self.r.step()
        self.assertEqual(self.relayed().code, ResponseCode.TOPIC_NOT_EXIST)

    def test_group(self) -> None:
        """A group is changed; when all is told anew it is answered again."""
        group = b'{"groupName":"G","consumeEnable":false}'
        self.two.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group)
        self.r.step()
        self.assertEqual(self.relayed().code, ResponseCode.NO_PERMISSION)
        group = b'{"groupName":"G","consumeEnable":true}'
        self.two.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group)
        self.r.step()
        self.assertEqual(self.relayed().code, 0)
        self.settle()
        self.known(self.one)
        before = self.own
        self.pull(self.one)
        self.assertEqual(self.own, before + 1)

    def test_staticTopic(self) -> None:
        """A topic becomes a static one: its pulls are mapped."""
        detail = TopicQueueMappingDetail(topic="T", bname="b", total_queues=1)
        self.r.broker.metadata.mappings.replace(detail)
        self.settle()
        before = self.own
        for _ in range(2):
            self.pull(self.one)
            self.settle()
        self.assertEqual(self.own, before)

    def test_reset(self) -> None:
        """A reset sends the next pull elsewhere, once."""
        queue = self.r.store.queue("T", 0)
        self.r.hub.turns.within(lambda: self.r.broker.pull.pulling.reset("G", queue, 2))
        answer = self.relayed()
        self.assertEqual(answer.code, ResponseCode.PULL_OFFSET_MOVED)
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "2")

    def test_resetPending(self) -> None:
        """While a reset is pending no worker is given a route."""
        queue = self.r.store.queue("T", 0)
        self.r.hub.turns.within(lambda: self.r.broker.pull.pulling.reset("G", queue, 2))
        self.settle()
        self.assertEqual(self.relayed().code, ResponseCode.PULL_OFFSET_MOVED)
        self.assertTrue(self.r.broker.metadata.offsets.has_reset("G", "T", 0))
        self.relayed()

    def test_between(self) -> None:
        """A change between the look at the version and the read is seen, too."""
        own = self.r.alive[0].own_pulls
        reading = own._reading
        assert reading is not None
        queue = reading.queue("T", 0, self.r.store.queue("T", 0).slot, 0)
        words = queue, 0, 32, 1 << 20, None
        self.assertNotEqual(reading.read(*words, own.version), None)
        self.r.store.sharing.let_read(0)
        self.assertEqual(reading.read(*words, own.version), None)

    def test_stopped(self) -> None:
        """When the broker stops nothing is answered any more."""
        self.r.approvals.stop()
        self.relayed()


class DeletedTopicTests(OwnPullsCase):
    """A topic that is deleted and made again, of which one worker's client pulls."""

    def delete(self) -> None:
        """The other client deletes the topic."""
        opaque = self.two.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})
        self.r.step()
        self.assertEqual(self.two.answers[opaque].code, 0)

    def test_onlyLastGenerationIsPulled(self) -> None:
        """Pulls get what was sent after the last deletion, each time."""
        for generation in range(4):
            body = b"generation %d" % generation
            self.assertEqual(self.two.sent(body).code, 0)
            self.settle()
            self.known(self.one)
            before = self.own
            self.assertEqual(bodies(self.pull(self.one))[-1], body)
            self.assertEqual(self.own, before + 1)
            if generation:
                self.assertEqual(bodies(self.pull(self.one)), [body])
            self.delete()

    def test_lateReportCommitsNothingInTheNextTopic(self) -> None:
        """What a worker tells late of how far a group was in the topic that is deleted
        does not count in the one made since."""
        self.known(self.one)
        self.one.ask(PULL, pull_ext(0, sysFlag="5", commitOffset="2"))
        self.r.alive[0].hub.doRead()
        self.assertEqual(self.own, 1)
        self.delete()
        self.assertEqual(self.two.sent(b"new").code, 0)
        self.r.later()
        self.r.step(REPORT_SECONDS)
        offsets = self.r.broker.metadata.offsets
        self.assertFalse(self.r.alive[0].own_pulls.is_unreported)
        self.assertEqual(offsets.query("G", "T", 0), -1)
        self.assertEqual(offsets.pull_offset("G", "T", 0), -1)

    def test_filteredPullWaitsForTheNextTopic(self) -> None:
        """One that waits at the beginning of the new topic gets its first message,
        though another still waits where the deleted one ended."""
        words = {"subscription": "RED"}
        self.known(self.one, **words)
        self.one.ask(PULL, pull_ext(3, **words, **WAITS))
        self.r.step()
        self.delete()
        self.assertEqual(self.two.sent(b"elsewhere", queue_id=1).code, 0)
        self.settle()
        self.known(self.one, **words)
        opaque = self.one.ask(PULL, pull_ext(0, **words, **WAITS))
        self.r.step()
        polling = self.r.alive[0].own_pulls.polling
        assert polling is not None
        self.assertEqual(polling.held, 2)
        self.tagged(self.two, b"red", "RED")
        self.r.later()
        self.assertEqual(bodies(self.one.answers[opaque]), [b"red"])

    def test_changeBetweenWakeAndLook(self) -> None:
        """A wake that comes when something has changed lets all ask again that wait in
        a queue which has grown: what stands there may not be what is known of it."""
        words = {"subscription": "RED", **WAITS}
        self.known(self.one, subscription="RED")
        opaque = self.one.ask(PULL, pull_ext(3, **words))
        self.r.step()
        self.r.approvals.pulls.changed()
        self.assertEqual(self.two.sent(b"new").code, 0)
        self.r.later()
        code = self.one.answers[opaque].code
        self.assertEqual(code, ResponseCode.PULL_RETRY_IMMEDIATELY)


class NotAllowedTests(OwnPullsCase):
    """A broker whose pulls are all the owner's."""

    settings = {"rejectPullConsumerEnable": "true"}

    def test_relayed(self) -> None:
        """They are relayed."""
        self.known(self.one)
        self.pull(self.one)
        self.assertEqual(self.own, 0)
