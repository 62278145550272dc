"""Calls, from the request to the answer."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.messages_pb2 import Code, MessageType, Resource
from rocketbroker.records.names import dlq_topic
from rocketbroker.records.recall_handle import RecallHandle
from rocketbroker.testing.puppet_cluster import hang_up, refuse, silent
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.proxy.made import ENDPOINTS, outgoing
from tests.proxy.proxied import CALLER, Proxied, gathered

T, G = Resource(name="T"), Resource(name="G")


class PlaceTests(SynchronousTestCase):
    """Routes and assignments."""

    def test_routeHasTheTypeOfTheTopic(self) -> None:
        """As the broker tells it."""
        proxied = Proxied()
        proxied.cluster.kinds["T"] = "FIFO"
        request = pb.QueryRouteRequest(topic=T, endpoints=ENDPOINTS)
        found = proxied.finish(proxied.calls.query_route(CALLER, request))
        self.assertEqual(found.status.code, Code.OK)
        self.assertEqual(len(found.message_queues), 2)
        (kind,) = found.message_queues[0].accept_message_types
        self.assertEqual(kind, MessageType.FIFO)

    def test_topicThatIsNotThereIsSaidToBe(self) -> None:
        """By the code for that."""
        proxied = Proxied()
        request = pb.QueryRouteRequest(topic=Resource(name="U"), endpoints=ENDPOINTS)
        found = proxied.finish(proxied.calls.query_route(CALLER, request))
        self.assertEqual(found.status.code, Code.TOPIC_NOT_FOUND)

    def test_memberIsToldAllBrokers(self) -> None:
        """Each queue by itself if the group consumes in order."""
        proxied = Proxied()
        request = pb.QueryAssignmentRequest(topic=T, group=G, endpoints=ENDPOINTS)
        found = proxied.finish(proxied.calls.query_assignment(CALLER, request))
        self.assertEqual([one.message_queue.id for one in found.assignments], [-1])
        config = SubscriptionGroupConfig(consume_message_orderly=True)
        proxied.cluster.group_configs["H"] = config
        request = pb.QueryAssignmentRequest(topic=T, group=Resource(name="H"))
        found = proxied.finish(proxied.calls.query_assignment(CALLER, request))
        self.assertEqual([one.message_queue.id for one in found.assignments], [0, 1])


class SendTests(SynchronousTestCase):
    """Sends, recalls and ends of transactions."""

    def setUp(self) -> None:
        """A proxy."""
        self.proxied = Proxied()

    def send(self, *messages: pb.Message) -> pb.SendMessageResponse:
        """Send them."""
        request = pb.SendMessageRequest(messages=messages)
        found = self.proxied.finish(self.proxied.calls.send_message(CALLER, request))
        assert isinstance(found, pb.SendMessageResponse)
        return found

    def test_messageIsStoredUnderItsId(self) -> None:
        """With who sent it."""
        found = self.send(outgoing(tag="t"))
        self.assertEqual(found.status.code, Code.OK)
        self.assertEqual(found.entries[0].message_id, "01ID")
        (stored,) = self.proxied.broker.stored("T")
        self.assertEqual((stored.unique_key, stored.tags), ("01ID", "t"))
        self.assertEqual(stored.properties["__BORNHOST"], "1.2.3.4:5")

    def test_batchHasOneEntry(self) -> None:
        """With all ids."""
        found = self.send(outgoing(message_id="1"), outgoing(message_id="2"))
        self.assertEqual([one.message_id for one in found.entries], ["1,2"])
        self.assertEqual(len(self.proxied.broker.stored("T")), 2)

    def test_messageGroupHasOneQueue(self) -> None:
        """Others go from queue to queue."""
        self.proxied.cluster.kinds["T"] = "MIXED"
        for _ in range(4):
            self.send(outgoing(message_group="groupA"))
        found = self.proxied.broker.stored("T")
        self.assertEqual(len({one.queue_id for one in found}), 1)
        self.assertEqual(self.send(outgoing()).status.code, Code.OK)

    def test_wrongTypeAndUnsafeStoresAreTold(self) -> None:
        """The one is refused; the other has no id, so that it is sent again."""
        self.proxied.cluster.kinds["T"] = "FIFO"
        found = self.send(outgoing())
        code = Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        self.assertEqual(found.status.code, code)
        fields = {"msgId": "x", "queueId": "0", "queueOffset": "0"}
        faults = self.proxied.broker.faults
        faults[RequestCode.SEND_MESSAGE_V2] = [lambda _: answer(10, fields)]
        found = self.send(outgoing(message_group="g"))
        self.assertEqual(found.status.code, Code.MASTER_PERSISTENCE_TIMEOUT)
        self.assertEqual(found.status.message, "MASTER_PERSISTENCE_TIMEOUT")
        self.assertEqual(found.entries[0].message_id, "")

    def test_brokerThatFailsIsAStatus(self) -> None:
        """No call is tried again here: clients do that."""
        for fault, code in (
            (refuse(2), Code.TOO_MANY_REQUESTS),
            (refuse(1), Code.INTERNAL_SERVER_ERROR),
            (hang_up, Code.PROXY_TIMEOUT),
        ):
            self.proxied.broker.faults[RequestCode.SEND_MESSAGE_V2] = [fault]
            self.assertEqual(self.send(outgoing()).status.code, code)
        self.assertEqual(self.send().status.code, Code.MESSAGE_CORRUPTED)

    def test_transactionEndsWhereItsHalfIs(self) -> None:
        """By its id, at a proxy that has not sent it, too; not by ids of others."""
        self.proxied.cluster.kinds["T"] = "TRANSACTION"
        sent = self.send(outgoing(message_type=MessageType.TRANSACTION)).entries[0]
        request = pb.EndTransactionRequest(
            topic=T,
            message_id="01ID",
            transaction_id=sent.transaction_id,
            resolution=pb.TransactionResolution.COMMIT,
        )
        end = self.proxied.calls.end_transaction
        found = self.proxied.finish(end(CALLER, request))
        self.assertEqual(found.status.code, Code.OK)
        self.proxied.runtime.settle()
        (fields,) = self.proxied.broker.ends
        (half,) = self.proxied.broker.stored("T")
        self.assertEqual(fields["commitLogOffset"], str(half.position))
        self.assertEqual(fields["commitOrRollback"], "8")
        request.transaction_id = "01ID"
        found = self.proxied.finish(end(CALLER, request))
        self.assertEqual(found.status.message, "cannot found transaction data")
        request.transaction_id = ""
        found = self.proxied.finish(end(CALLER, request))
        self.assertEqual(found.status.code, Code.INVALID_TRANSACTION_ID)

    def test_waitingMessageIsRecalled(self) -> None:
        """Of a topic for such ones, by a handle that is one."""
        handle = RecallHandle("T", "b1", 1, "01ID").encode()
        request = pb.RecallMessageRequest(topic=T, recall_handle=handle)
        recall = self.proxied.calls.recall_message
        found = self.proxied.finish(recall(CALLER, request))
        code = Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
        self.assertEqual(found.status.code, code)
        self.proxied.cluster.kinds["U"] = "DELAY"
        self.proxied.cluster.topics["U"] = {"b1": 1}
        request.topic.name = "U"
        found = self.proxied.finish(recall(CALLER, request))
        self.assertEqual((found.status.code, found.message_id), (Code.OK, "01ID"))
        request.recall_handle = "x"
        found = self.proxied.finish(recall(CALLER, request))
        self.assertEqual(found.status.message, "recall handle is invalid")


class ReceiveTests(SynchronousTestCase):
    """Receives, and what becomes of messages."""

    def setUp(self) -> None:
        """A push consumer of group G."""
        self.proxied = Proxied()
        self.proxied.consume()

    def put(self, *bodies: str, **kept: str) -> None:
        """Store messages in queue 0 of topic T."""
        for body in bodies:
            text = {"UNIQ_KEY": body, **kept}
            self.proxied.broker.put("T", 0, body.encode(), text)

    def taken(self) -> pb.Message:
        """One message."""
        frames = self.proxied.receive()
        self.assertEqual(len(frames), 3, frames)
        return frames[1].message

    def ack(self, message: pb.Message) -> pb.AckMessageResponse:
        """Acknowledge it."""
        system = message.system_properties
        entry = pb.AckMessageEntry(
            message_id=system.message_id, receipt_handle=system.receipt_handle
        )
        request = pb.AckMessageRequest(group=G, topic=T, entries=[entry])
        found = self.proxied.finish(self.proxied.calls.ack_message(CALLER, request))
        assert isinstance(found, pb.AckMessageResponse)
        return found

    def rest(self, message: pb.Message, ms: int) -> pb.ChangeInvisibleDurationResponse:
        """Let it rest."""
        system = message.system_properties
        request = pb.ChangeInvisibleDurationRequest(
            group=G,
            topic=T,
            receipt_handle=system.receipt_handle,
            message_id=system.message_id,
            invisible_duration=Duration(nanos=ms * 1_000_000),
        )
        call = self.proxied.calls.change_invisible_duration(CALLER, request)
        found = self.proxied.finish(call)
        assert isinstance(found, pb.ChangeInvisibleDurationResponse)
        return found

    def test_answerIsAStatusMessagesAndATime(self) -> None:
        """In this order."""
        self.put("a", "b")
        frames = self.proxied.receive()
        self.assertEqual(
            [frame.WhichOneof("content") for frame in frames],
            ["status", "message", "message", "delivery_timestamp"],
        )
        self.assertEqual(frames[0].status.code, Code.OK)
        self.assertEqual([frame.message.body for frame in frames[1:3]], [b"a", b"b"])

    def test_popIsBornNowWhereItIsSigned(self) -> None:
        """RocketMQ's broker takes 0 for now, but not where it controls access."""
        born = []

        def note(command: Command) -> None:
            born.append((command.ext or {})["bornTime"])

        for signs in (False, True):
            proxied = Proxied(enable_acl_rpc_hook_for_cluster_mode=signs)
            proxied.broker.faults[RequestCode.POP_MESSAGE] = [note]
            proxied.broker.put("T", 0, b"x")
            proxied.receive()
        self.assertEqual(born[0], "0")
        self.assertGreater(int(born[1]), 0)

    def test_nothingComesAfterThePoll(self) -> None:
        """The broker was asked for as long as was wanted."""
        codes = self.proxied.runtime.codes("b1:10911")
        frames = self.proxied.receive(long_polling_timeout=Duration(seconds=6))
        self.assertEqual(frames[0].status.code, Code.PROXY_TIMEOUT)
        asked = self.proxied.runtime.codes("b1:10911")[len(codes) :]
        self.assertIn(RequestCode.POP_MESSAGE, asked)
        faults = self.proxied.broker.faults
        for code, wanted in (
            (210, Code.MESSAGE_NOT_FOUND),
            (209, Code.TOO_MANY_REQUESTS),
            (2, Code.TOO_MANY_REQUESTS),
        ):
            faults[RequestCode.POP_MESSAGE] = [refuse(code)]
            frames = self.proxied.receive()
            self.assertEqual(frames[0].status.code, wanted)
            self.assertTrue(frames[-1].HasField("delivery_timestamp"))

    def test_clientWithoutSettingsIsServed(self) -> None:
        """A proxy that was restarted knows none."""
        self.put("a")
        self.proxied.clients.forget("C")
        self.assertEqual(self.taken().body, b"a")

    def test_messageIsRenewedWhileItsClientCalls(self) -> None:
        """A heartbeat that is refused is a call, too."""
        self.put("a")
        self.taken()
        self.proxied.clients.forget("C")
        renewals, runtime = self.proxied.calls.renewals, self.proxied.runtime

        def renew() -> int:
            for place in renewals.due(runtime.wall_ms()):
                self.proxied.finish(renewals.renew(place, runtime.wall_ms()))
            return renewals.renewed

        runtime.advance(51.0)
        self.assertEqual(renew(), 0)
        beat = self.proxied.calls.heartbeat(CALLER, pb.HeartbeatRequest())
        self.assertEqual(
            self.proxied.finish(beat).status.code, Code.UNRECOGNIZED_CLIENT_TYPE
        )
        self.assertEqual(renew(), 1)

    def test_acknowledgedMessageIsDone(self) -> None:
        """And is kept invisible no longer."""
        self.put("a")
        message = self.taken()
        self.assertEqual(len(self.proxied.calls.renewals), 1)
        found = self.ack(message)
        self.assertEqual(found.status.code, Code.OK)
        self.assertEqual(found.entries[0].status.code, Code.OK)
        self.assertEqual(self.proxied.broker.acks, {("T", 0, 0)})
        self.assertEqual(len(self.proxied.calls.renewals), 0)

    def test_acknowledgementThatFailsMayComeAgain(self) -> None:
        """The message is kept invisible until then."""
        self.put("a")
        message = self.taken()
        self.proxied.broker.faults[RequestCode.ACK_MESSAGE] = [hang_up]
        self.assertEqual(self.ack(message).status.code, Code.PROXY_TIMEOUT)
        self.assertEqual(len(self.proxied.calls.renewals), 1)
        self.assertEqual(self.ack(message).status.code, Code.OK)

    def test_expiredHandleIsRefused(self) -> None:
        """The message is another one's by then; several have several codes."""
        self.put("a")
        message = self.taken()
        renewals = self.proxied.calls.renewals
        self.proxied.finish(renewals.clear("C"))
        self.proxied.runtime.advance(61.0)
        found = self.ack(message)
        self.assertEqual(found.status.code, Code.INVALID_RECEIPT_HANDLE)
        self.assertEqual(found.entries[0].status.message, "receipt handle is expired")
        entries = [
            pb.AckMessageEntry(receipt_handle="x"),
            pb.AckMessageEntry(receipt_handle=found.entries[0].receipt_handle),
        ]
        request = pb.AckMessageRequest(group=G, topic=T, entries=entries)
        both = self.proxied.finish(self.proxied.calls.ack_message(CALLER, request))
        self.assertEqual(both.status.code, Code.MULTIPLE_RESULTS)

    def test_messageRestsWithANewHandle(self) -> None:
        """By which it can be acknowledged."""
        self.put("a")
        message = self.taken()
        found = self.rest(message, 900)
        self.assertEqual(found.status.code, Code.OK)
        old = message.system_properties.receipt_handle
        self.assertNotEqual(found.receipt_handle, old)
        message.system_properties.receipt_handle = found.receipt_handle
        self.assertEqual(self.ack(message).status.code, Code.OK)

    def test_refusedRestLeavesTheHandle(self) -> None:
        """Java's and Go's clients keep what the answer has."""
        self.put("a")
        message = self.taken()
        faults = self.proxied.broker.faults
        faults[RequestCode.CHANGE_MESSAGE_INVISIBLETIME] = [refuse(1)]
        found = self.rest(message, 900)
        self.assertEqual(found.status.code, Code.INTERNAL_SERVER_ERROR)
        old = message.system_properties.receipt_handle
        self.assertEqual(found.receipt_handle, old)

    def test_deadLetterIsStoredAndAcknowledged(self) -> None:
        """By its place in the commit log, without which it cannot be found."""
        self.put("a")
        system = self.taken().system_properties
        request = pb.ForwardMessageToDeadLetterQueueRequest(
            group=G,
            topic=T,
            receipt_handle=system.receipt_handle,
            message_id=system.message_id,
        )
        call = self.proxied.calls.forward_to_dead_letters
        found = self.proxied.finish(call(CALLER, request))
        self.assertEqual(found.status.code, Code.OK)
        self.proxied.runtime.settle()
        self.assertEqual(len(self.proxied.broker.stored(dlq_topic("G"))), 1)
        self.assertEqual(self.proxied.broker.acks, {("T", 0, 0)})
        request.receipt_handle = system.receipt_handle.rpartition(" ")[0]
        found = self.proxied.finish(call(CALLER, request))
        self.assertEqual(found.status.code, Code.INVALID_RECEIPT_HANDLE)

    def test_otherTagsAreAcknowledgedUnseen(self) -> None:
        """Brokers compare hashes only."""
        self.put("a", TAGS="x")
        wanted = pb.FilterExpression(type=pb.FilterType.TAG, expression="y")
        frames = self.proxied.receive(filter_expression=wanted)
        self.assertEqual(frames[0].status.message, "no match message")
        self.proxied.runtime.settle()
        self.assertEqual(self.proxied.broker.acks, {("T", 0, 0)})

    def test_messageThatWasGivenTooOftenIsADeadLetter(self) -> None:
        """After the attempts of its group."""
        config = SubscriptionGroupConfig(retry_max_times=1)
        self.proxied.cluster.group_configs["H"] = config
        self.proxied.broker.put("T", 0, b"a", {"UNIQ_KEY": "a"}, reconsume_times=2)
        frames = self.proxied.receive(group=Resource(name="H"))
        self.assertEqual(frames[0].status.code, Code.MESSAGE_NOT_FOUND)
        self.proxied.runtime.settle()
        self.assertEqual(len(self.proxied.broker.stored(dlq_topic("H"))), 1)

    def test_messagesOfAClientThatIsGoneAreGivenBack(self) -> None:
        """Those that its poll brings later, and those that it has not taken."""
        call = self.proxied.calls.receive_message
        request = pb.ReceiveMessageRequest(
            group=G, message_queue=pb.MessageQueue(topic=T), batch_size=2
        )
        request.auto_renew = True
        waiting = self.proxied.runtime.start(gathered(call(CALLER, request)))
        self.proxied.runtime.settle()
        waiting.cancel()
        self.proxied.runtime.settle()
        self.put("a", "b")
        self.proxied.runtime.settle()
        self.assertEqual(len(self.proxied.calls.renewals), 0)
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        codes = self.proxied.runtime.codes("b1:10911")
        self.assertEqual(codes.count(code), 1)
        self.proxied.runtime.advance(1.0)
        frames = call(CALLER, request)
        first = self.proxied.finish(frames.__anext__())
        self.assertEqual(first.status.code, Code.OK)
        self.proxied.finish(frames.aclose())
        self.proxied.runtime.settle()
        codes = self.proxied.runtime.codes("b1:10911")
        self.assertEqual((codes.count(code), len(self.proxied.calls.renewals)), (3, 0))

    def test_receivesEndWhenTheProxyDrains(self) -> None:
        """With nothing, at once; what a poll brings later is given back."""
        calls = self.proxied.calls
        request = pb.ReceiveMessageRequest(
            group=G, message_queue=pb.MessageQueue(topic=T), batch_size=2
        )
        request.auto_renew = True
        waiting = self.proxied.runtime.start(
            gathered(calls.receive_message(CALLER, request))
        )
        self.proxied.runtime.settle()
        self.assertFalse(waiting.ended)
        calls.drain()
        self.proxied.runtime.settle()
        for frames in (
            waiting.value(),
            self.proxied.finish(gathered(calls.receive_message(CALLER, request))),
        ):
            self.assertEqual(frames[0].status.code, Code.MESSAGE_NOT_FOUND)
            self.assertTrue(frames[1].HasField("delivery_timestamp"))
        self.put("a")
        self.proxied.runtime.settle()
        codes = self.proxied.runtime.codes("b1:10911")
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        self.assertEqual((codes.count(code), calls.given_back), (1, 1))

    def test_wrongRequestsAreRefusedWithATime(self) -> None:
        """Whatever is wrong with them."""
        frames = self.proxied.receive(group=Resource(name="a b"))
        self.assertEqual(frames[0].status.code, Code.ILLEGAL_CONSUMER_GROUP)
        self.assertTrue(frames[1].HasField("delivery_timestamp"))
        self.proxied.broker.faults[RequestCode.POP_MESSAGE] = [silent]
        frames = self.proxied.receive()
        self.assertEqual(frames[0].status.code, Code.PROXY_TIMEOUT)


class PresenceTests(SynchronousTestCase):
    """Heartbeats and farewells."""

    def test_heartbeatNeedsSettings(self) -> None:
        """Without them a client sends them again."""
        proxied = Proxied()
        beat = proxied.calls.heartbeat
        request = pb.HeartbeatRequest(group=G)
        found = proxied.finish(beat(CALLER, request))
        self.assertEqual(found.status.code, Code.UNRECOGNIZED_CLIENT_TYPE)
        proxied.consume()
        found = proxied.finish(beat(CALLER, request))
        self.assertEqual(found.status.code, Code.OK)
        found = proxied.finish(beat(CALLER, pb.HeartbeatRequest()))
        self.assertEqual(found.status.code, Code.ILLEGAL_CONSUMER_GROUP)

    def test_farewellGivesMessagesBack(self) -> None:
        """Also one of a client that nobody knows is taken."""
        proxied = Proxied()
        proxied.consume()
        proxied.broker.put("T", 0, b"a", {"UNIQ_KEY": "a"})
        proxied.receive()
        farewell = proxied.calls.notify_client_termination
        for _ in range(2):
            found = proxied.finish(
                farewell(CALLER, pb.NotifyClientTerminationRequest(group=G))
            )
            self.assertEqual(found.status.code, Code.OK)
        proxied.runtime.settle()
        self.assertEqual(len(proxied.calls.renewals), 0)
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        self.assertIn(code, proxied.runtime.codes("b1:10911"))
