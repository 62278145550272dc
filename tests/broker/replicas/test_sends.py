"""What a synchronous master and a slave do with messages that come in."""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.ack_rule import IN_SYNC_REPLICAS_NOT_ENOUGH, AckRule
from rocketbroker.broker.appends.append_batcher import AppendBatcher, problem_of
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ServiceNotAvailable, SlaveNotAvailable, SystemBusy
from rocketbroker.records.batches import encode_part
from rocketbroker.store.interfaces import PUT_OK, SERVICE_NOT_AVAILABLE, Draft
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST, Rig, send_ext
from tests.broker.send.sent_back import SendBackCase
from tests.broker.transactions import COMMIT, ROLLBACK, TransactionCase

SEND = RequestCode.SEND_MESSAGE_V2
SYNC = {"brokerRole": "SYNC_MASTER"}
SLAVE = {"brokerRole": "SLAVE", "brokerId": "1"}


class CopiesTests(SynchronousTestCase):
    """Sends to a synchronous master."""

    PLAIN = "UNIQ_KEY\x01U\x02"
    DOES_NOT_WAIT = PLAIN + "WAIT\x01false\x02"

    def make(self, **settings: str) -> Rig:
        """A master that waits for a slave, and has answered the first send to T."""
        rig = Rig({"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2", **settings})
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.begin(SEND, send_ext(), b"first")
        rig.batcher.flush()
        rig.replicas.report(rig.store.published_position)
        return rig

    def send(self, rig: Rig, opaque: int, properties: str = PLAIN) -> None:
        """A hot send in a turn of its own."""
        self.assertTrue(rig.hot(SEND, send_ext(properties=properties), b"body", opaque))
        rig.batcher.flush()

    def codes(self, rig: Rig) -> list[tuple[int, int]]:
        """Who was answered since the last look, with what."""
        return [(answer.opaque, answer.code) for answer in rig.answers()]

    def test_waits(self) -> None:
        """A send is answered when the slave has it."""
        rig = self.make()
        self.send(rig, 1)
        end = rig.store.published_position
        self.send(rig, 2)
        self.assertEqual(self.codes(rig), [])
        rig.replicas.report(end)
        self.assertEqual(self.codes(rig), [(1, 0)])
        rig.replicas.report(rig.store.published_position)
        self.assertEqual(self.codes(rig), [(2, 0)])

    def test_slaveTooSlow(self) -> None:
        """If it takes too long the answer says so, with all the fields: the message is
        stored. Who comes later is served."""
        rig = self.make()
        self.send(rig, 7)
        rig.clock.advance(2.9)
        self.assertEqual(rig.answers(), [])
        rig.clock.advance(0.1)
        (answer,) = rig.answers()
        self.assertEqual(answer.code, ResponseCode.FLUSH_SLAVE_TIMEOUT)
        self.assertEqual((answer.ext or {})["queueOffset"], "1")
        self.assertEqual(len(rig.records()), 2)
        self.send(rig, 8)
        rig.replicas.report(rig.store.published_position)
        self.assertEqual(self.codes(rig), [(8, 0)])

    def test_generalWay(self) -> None:
        """A send of the general way waits alike; its topic is on the disk by then."""
        rig = self.make()
        done = rig.begin(SEND, send_ext("New"), b"body")
        assert isinstance(done, Deferred)
        rig.batcher.flush()
        self.assertNoResult(done)
        rig.replicas.report(rig.store.published_position)
        rig.clock.advance(1)
        answer = self.successResultOf(done)
        assert answer is not None
        self.assertEqual(answer.code, 0)

    def test_batch(self) -> None:
        """A batch is one send."""
        rig = self.make()
        body = encode_part(0, b"a", b"UNIQ_KEY\x01A") + encode_part(0, b"b", b"")
        self.assertTrue(rig.hot(SEND, send_ext(m="true"), body, 5))
        rig.batcher.flush()
        self.assertEqual(self.codes(rig), [])
        rig.clock.advance(3)
        self.assertEqual(self.codes(rig), [(5, ResponseCode.FLUSH_SLAVE_TIMEOUT)])

    def test_doesNotWait(self) -> None:
        """Who sets WAIT to false is answered at once, in a turn with others as well."""
        rig = self.make()
        ext = send_ext(properties=self.DOES_NOT_WAIT)
        self.assertTrue(rig.hot(SEND, ext, b"body", 1))
        self.send(rig, 2)
        self.send(rig, 3, self.DOES_NOT_WAIT)
        self.assertEqual(self.codes(rig), [(1, 0), (3, 0)])
        rig.replicas.report(rig.store.published_position)
        self.assertEqual(self.codes(rig), [(2, 0)])

    def test_one(self) -> None:
        """With inSyncReplicas=1 nobody waits; it may be changed while it runs."""
        rig = self.make(inSyncReplicas="1")
        self.send(rig, 1)
        self.assertEqual(self.codes(rig), [(1, 0)])
        rig.change(inSyncReplicas=2)
        rig.begin(SEND, send_ext(properties=self.DOES_NOT_WAIT), b"approved anew")
        rig.batcher.flush()
        self.send(rig, 2)
        self.send(rig, 3, self.DOES_NOT_WAIT)
        self.assertEqual(self.codes(rig), [(3, 0)])
        rig.change(inSyncReplicas=1, slaveTimeout=1000)
        rig.begin(SEND, send_ext(), b"approved anew")
        self.send(rig, 4)
        self.assertEqual(self.codes(rig), [(4, 0)])

    def test_asynchronous(self) -> None:
        """An asynchronous master waits for nobody, whatever inSyncReplicas says."""
        rig = self.make(brokerRole="ASYNC_MASTER")
        self.send(rig, 1)
        self.assertEqual(self.codes(rig), [(1, 0)])

    def test_overload(self) -> None:
        """Sends that wait for a slave are bounded, and however long they wait it is no
        reason to refuse others."""
        rig = self.make(sendThreadPoolQueueCapacity="2")
        self.send(rig, 1)
        rig.clock.advance(2.5)
        self.send(rig, 2)
        with self.assertRaises(SystemBusy) as caught:
            rig.begin(SEND, send_ext(), b"body")
        self.assertEqual(
            str(caught.exception),
            "[OVERLOAD]system busy, start flow control for a while, "
            "slow stage: slaves, 2 sends wait, the first for 2500ms",
        )
        self.assertFalse(rig.hot(SEND, send_ext(), b"body", 3))
        rig.clock.advance(0.5)
        self.send(rig, 4)
        self.assertEqual(rig.batcher.refused["overloaded"], 1)


class TooFewCopiesTests(SynchronousTestCase):
    """Sends that cannot have as many copies as they need."""

    def test_refused(self) -> None:
        """Such a turn is refused and leaves nothing behind, but for messages that want
        no copies."""
        rig = Rig({})
        self.addCleanup(rig.close)
        settings = BrokerSettings.from_properties(
            {"brokerRole": "SYNC_MASTER", "inSyncReplicas": "2"}
        )
        broker = attrs.evolve(settings.broker, enable_slave_acting_master=True)
        settings = attrs.evolve(settings, broker=broker)
        rule = AckRule(settings, rig.replicas.in_sync, lambda: 2)
        batcher = AppendBatcher(
            rig.store, rig.group_commit, rule, settings, rig.clock.seconds
        )
        answered: list[tuple[bytes, int, int]] = []

        def answer(draft: Draft, code: int) -> None:
            answered.append((draft.body, draft.status, code))

        queue = rig.store.queue("T", 0)
        for body, wait in ((b"a", True), (b"b", False)):
            draft = Draft(queue, body, b"", 0, 0, 0, HOST, 0, 0, answer, wait=wait)
            batcher.drafts.append(draft)
        batcher.flush()
        refused = IN_SYNC_REPLICAS_NOT_ENOUGH
        self.assertEqual(answered, [(b"a", refused, 0), (b"b", PUT_OK, 0)])
        self.assertEqual([message.body for message in rig.records()], [b"b"])
        draft = Draft(queue, b"c", b"", 0, 0, 0, HOST, 0, 0, answer)
        batcher.drafts.append(draft)
        end = rig.store.published_position
        batcher.flush()
        self.assertEqual(answered[2:], [(b"c", refused, 0)])
        self.assertEqual(rig.store.published_position, end)
        batcher.not_stored(draft)
        self.assertEqual(batcher.refused["too_few_copies"], 1)
        error = problem_of(draft, rig.store, 0)
        self.assertEqual((error.code, error.remark), (1, "in-sync replicas not enough"))
        rig.replicas.report(end)
        batcher.drafts.append(Draft(queue, b"d", b"", 0, 0, 0, HOST, 0, 0, answer))
        batcher.flush()
        rig.replicas.report(rig.store.published_position)
        self.assertEqual(answered[3:], [(b"d", PUT_OK, 0)])


class TransactionTests(TransactionCase):
    """Transactions at a synchronous master."""

    def setUp(self) -> None:
        """It waits for a slave since there is a half message."""
        super().setUp()
        self.begin({**SYNC, "inSyncReplicas": "1"})
        self.open = self.half(b"body")
        self.rig.change(inSyncReplicas=2)

    def request(self, outcome: int) -> Deferred[object]:
        """End the transaction."""
        ext = self.open.ext or {}
        header = {
            "topic": "T",
            "producerGroup": "PG",
            "tranStateTableOffset": ext["queueOffset"],
            "commitLogOffset": str(int(ext["msgId"][16:], 16)),
            "commitOrRollback": str(outcome),
            "fromTransactionCheck": "false",
            "msgId": ext["transactionId"],
        }
        return maybeDeferred(self.rig.begin, 37, header)

    def test_commit(self) -> None:
        """A commit is answered when the slave has the final message."""
        done = self.request(COMMIT)
        self.assertNoResult(done)
        self.rig.replicas.report(self.rig.store.published_position)
        self.assertEqual(code_of(self.successResultOf(done)), 0)
        self.assertEqual(self.bodies(), [b"body"])

    def test_commitLate(self) -> None:
        """So it is if the slave does not get it in time: the message is stored."""
        done = self.request(COMMIT)
        self.rig.clock.advance(3)
        self.assertEqual(code_of(self.successResultOf(done)), 0)

    def test_rollback(self) -> None:
        """A rollback waits for no slave: what is lost of it is checked back."""
        done = self.request(ROLLBACK)
        self.assertEqual(code_of(self.successResultOf(done)), 0)

    def test_half(self) -> None:
        """A half message waits like any."""
        with self.assertRaises(AssertionError):
            self.half(b"other")
        self.rig.clock.advance(3)


class SentBackTests(SendBackCase):
    """Messages that consumers send back to a synchronous master."""

    def test_waits(self) -> None:
        """The copy waits for the slave; one that does not report is no reason for the
        client to send it once more."""
        self.begin(brokerRole="SYNC_MASTER", inSyncReplicas="1")
        self.group()
        position = self.send()
        self.rig.change(inSyncReplicas=2)
        for seconds in (0, 3):
            done = self.rig.begin(36, self.header(position))
            assert isinstance(done, Deferred)
            self.assertNoResult(done)
            self.rig.clock.advance(seconds)
            if not seconds:
                self.rig.replicas.report(self.rig.store.published_position)
            self.assertEqual(code_of(self.successResultOf(done)), 0)
        self.assertEqual(len(self.waiting(3)), 2)


class SlaveTests(SynchronousTestCase):
    """Messages that are sent to a slave."""

    def setUp(self) -> None:
        """It knows a topic, and has made nothing of its own."""
        self.rig = Rig(SLAVE)
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 4)
        self.topics = len(self.rig.topics)
        self.queues = len(self.rig.store.queues())

    def tearDown(self) -> None:
        """Nor has it made anything afterwards."""
        self.assertEqual(self.rig.store.published_position, 0)
        self.assertEqual(len(self.rig.topics), self.topics)
        self.assertEqual(len(self.rig.store.queues()), self.queues)

    def test_sends(self) -> None:
        """All kinds of sends, batches, half messages and replies are refused, and no
        topic is made for them."""
        half = send_ext(f="4", properties="UNIQ_KEY\x01U\x02TRAN_MSG\x01true\x02")
        reply = send_ext("New", properties="REPLY_TO_CLIENT\x01asker\x02")
        for code, ext in (
            (310, send_ext()),
            (310, send_ext("New")),
            (320, send_ext(m="true")),
            (310, half),
            (325, reply),
        ):
            with self.assertRaises(ServiceNotAvailable) as caught:
                self.rig.begin(code, ext, b"body")
            remark = str(caught.exception)
            self.assertTrue(remark.startswith("service not available now."), remark)
            self.assertIn("messages are put to the slave", remark)
            self.assertTrue(remark.endswith("etc. this broker is a slave"), remark)
        self.assertFalse(self.rig.hot(310, send_ext(), b"body"))
        self.assertEqual(self.rig.batcher.refused["unavailable"], 5)

    def test_sendBack(self) -> None:
        """So is what consumers send back, and no retry topic is made."""
        ext = {"offset": "0", "group": "G", "delayLevel": "0"}
        self.assertRaises(ServiceNotAvailable, self.rig.begin, 36, ext)

    def test_endTransaction(self) -> None:
        """It ends no transaction, and says so with a code of its own, also if there is
        nothing to end."""
        for outcome in (COMMIT, ROLLBACK, 0):
            ext = {
                "producerGroup": "PG",
                "tranStateTableOffset": "0",
                "commitLogOffset": "0",
                "commitOrRollback": str(outcome),
                "msgId": "u",
            }
            self.assertRaises(SlaveNotAvailable, self.rig.begin, 37, ext)

    def test_store(self) -> None:
        """Whoever else might store something is refused by the store."""
        draft = Draft(self.rig.store.queue("T", 0), b"b", b"", 0, 0, 0, HOST, 0, 0, 0)
        self.rig.store.append([draft])
        self.assertEqual(draft.status, SERVICE_NOT_AVAILABLE)
        self.queues += 1

    def test_offsets(self) -> None:
        """Consumers may commit offsets."""
        self.rig.groups.put([SubscriptionGroupConfig(group_name="G")])
        ext = {"consumerGroup": "G", "topic": "T", "queueId": "0", "commitOffset": "0"}
        self.assertEqual(self.rig.ask(15, ext).code, 0)


def code_of(answer: object) -> int:
    """Its code."""
    assert isinstance(answer, Command)
    return answer.code
