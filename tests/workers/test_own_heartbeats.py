"""Heartbeats that workers answer themselves: which they are, and what the owner hears
of them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.frames import encode
from rocketbroker.workers.link_frames import FORGET, HEARTBEAT_WORD
from rocketbroker.workers.own_heartbeats import REPORT_SECONDS
from rocketbroker.workers.own_pulls import ASK_AGAIN_SECONDS
from rocketbroker.workers.pull_approvals import SETTLE_SECONDS
from tests.broker.rig import heartbeat
from tests.workers.sendrig import SendClient, SendRig

LEAVES = {"clientID": "10.0.0.9@1", "consumerGroup": "G", "producerGroup": "P"}


class OwnHeartbeatsCase(SynchronousTestCase):
    """A broker with two workers, and a client of each."""

    def setUp(self) -> None:
        """The first one is known."""
        self.r = SendRig(2)
        self.addCleanup(self.r.end)
        self.one, self.two = self.r.client(), self.r.client()
        self.known(self.one)

    def settle(self) -> None:
        """All is told anew."""
        self.r.later()
        self.r.step(SETTLE_SECONDS)
        self.r.step(ASK_AGAIN_SECONDS)

    def known(self, client: SendClient) -> None:
        """Let a client's worker know its heartbeat: the first makes the group."""
        for _ in range(2):
            self.beat(client)
            self.settle()

    def beat(self, client: SendClient, content: bytes | None = None) -> Command:
        """The answer to a heartbeat."""
        body = heartbeat() if content is None else content
        opaque = client.ask(RequestCode.HEART_BEAT, {}, body)
        self.r.step()
        return client.answers[opaque]

    def own(self) -> int:
        """How many heartbeats workers have answered since this was asked last."""
        before, now = getattr(self, "before", 0), 0
        for each in self.r.processes:
            now += each.worker.own_heartbeats.answered
        self.before = now
        return now - before

    def members(self) -> list[float]:
        """When the members of all groups were seen last."""
        broker = self.r.broker
        group = broker.consumers.group("G")
        consumers = [] if group is None else [*group.members.values()]
        return [each.seen for each in [*consumers, *broker.producers.members("P")]]


class OwnHeartbeatsTests(OwnHeartbeatsCase):
    """Which they are."""

    def test_answered(self) -> None:
        """One that says the same again is answered as by the owner."""
        first = self.beat(self.one)
        self.assertEqual(self.own(), 1)
        self.one.ask(RequestCode.HEART_BEAT, {"a": "b"}, heartbeat())
        self.r.step()
        relayed = self.one.answers[self.one._opaque]
        self.assertEqual(self.own(), 0)
        self.assertEqual((first.code, first.ext), (relayed.code, relayed.ext))
        self.assertEqual((first.flag, first.remark), (relayed.flag, relayed.remark))

    def test_told(self) -> None:
        """The owner knows a little later that the members are there, and counts the
        heartbeats as its own."""
        broker = self.r.broker
        self.r.step(60)
        latencies = broker.main.latencies[RequestCode.HEART_BEAT, 0]
        before, received = latencies.count, broker.heartbeats.received
        now = self.r.reactor.seconds()
        self.beat(self.one)
        self.beat(self.one)
        self.assertLess(max(self.members()), now)
        self.r.step(REPORT_SECONDS)
        self.assertEqual(self.members(), [now + REPORT_SECONDS] * 2)
        self.assertEqual(broker.heartbeats.received, received + 2)
        self.assertEqual(latencies.count, before + 2)

    def test_toldOfGone(self) -> None:
        """A client that is gone by then is counted, and nothing else."""
        broker = self.r.broker
        received = broker.heartbeats.received
        self.beat(self.one)
        self.one.socket.close()
        self.r.clients.remove(self.one)
        self.r.step()
        self.r.step(REPORT_SECONDS)
        self.assertEqual(self.members(), [])
        self.assertEqual(broker.heartbeats.received, received + 1)

    def test_different(self) -> None:
        """One that says anything else is relayed, and so is the next one: the owner
        has to hear of both."""
        self.beat(self.one, heartbeat(clientID="b"))
        self.beat(self.one)
        self.assertEqual(self.own(), 0)
        group = self.r.broker.consumers.group("G")
        assert group is not None
        self.assertEqual(group.client_ids(), ["10.0.0.9@1"])
        self.beat(self.one)
        self.assertEqual(self.own(), 1)

    def test_together(self) -> None:
        """The same for those that come together."""
        for content in (heartbeat(clientID="b"), heartbeat()):
            self.one.ask(RequestCode.HEART_BEAT, {}, content)
        self.r.step()
        self.assertEqual(self.own(), 0)
        group = self.r.broker.consumers.group("G")
        assert group is not None
        self.assertEqual(group.client_ids(), ["10.0.0.9@1"])

    def test_changes(self) -> None:
        """When anything changes that they rest on, the next one is relayed."""
        broker = self.r.broker
        for change in (
            lambda: broker.topics.put([TopicConfig(topic_name="V")]),
            lambda: broker.groups.find("another"),
            lambda: self.beat(self.two, heartbeat(topics=["T", "U"], clientID="b")),
            lambda: broker.running.change({"rejectPullConsumerEnable": "true"}),
        ):
            self.known(self.one)
            self.own()
            self.beat(self.one)
            self.assertEqual(self.own(), 1)
            change()
            self.r.hub.within(lambda: None)
            self.beat(self.one)
            self.assertEqual(self.own(), 0)

    def test_changedBefore(self) -> None:
        """The same when the worker was told anew in the meantime."""
        self.r.broker.topics.put([TopicConfig(topic_name="V")])
        self.settle()
        self.own()
        self.beat(self.one)
        self.assertEqual(self.own(), 0)
        self.beat(self.one)
        self.assertEqual(self.own(), 1)

    def test_unregistered(self) -> None:
        """A client that has left joins with its next heartbeat."""
        self.one.ask(RequestCode.UNREGISTER_CLIENT, LEAVES)
        self.r.step()
        self.assertEqual(self.members(), [])
        self.beat(self.one)
        self.assertEqual((self.own(), len(self.members())), (0, 2))

    def test_unregisteredMeanwhile(self) -> None:
        """The same if the heartbeat came before the answer."""
        self.settle()
        self.one.ask(RequestCode.HEART_BEAT, {"a": "b"}, heartbeat())
        self.one.ask(RequestCode.UNREGISTER_CLIENT, LEAVES)
        self.r.step()
        self.beat(self.one)
        self.assertEqual((self.own(), len(self.members())), (0, 2))

    def test_oneway(self) -> None:
        """One that wants no answer gets none, however often it comes."""
        for opaque in (900, 901, 902):
            request = Command(34, {}, heartbeat(), opaque=opaque, flag=ONEWAY)
            self.one.socket.sendall(encode(request))
            self.r.step()
        self.assertEqual(self.own(), 0)
        self.assertNotIn(902, self.one.answers)

    def test_unusualHeader(self) -> None:
        """One without an opaque of the usual form is relayed, and the next one: it may
        say something else."""
        request = Command(34, {}, heartbeat(clientID="b"), opaque=-5)
        self.one.socket.sendall(encode(request))
        self.r.step()
        self.assertIn(-5, self.one.answers)
        self.beat(self.one)
        self.assertEqual(self.own(), 0)

    def test_otherApproval(self) -> None:
        """An approval of an earlier one says nothing of the last one."""
        worker = self.r.processes[0].worker
        client = next(iter(worker.relay._clients.values()))
        heartbeats = worker.own_heartbeats
        client.heartbeat, client.asked = None, (5, 55)
        heartbeats.approved(client, HEARTBEAT_WORD.pack(4))
        self.assertEqual((client.heartbeat, client.asked), (None, (5, 55)))
        heartbeats.approved(client, HEARTBEAT_WORD.pack(5))
        self.assertEqual((client.heartbeat, client.asked), (55, None))
        heartbeats.approved(client, HEARTBEAT_WORD.pack(FORGET))
        self.assertEqual((client.heartbeat, client.asked), (None, None))

    def test_secondVersion(self) -> None:
        """Those of the second version are relayed."""
        content = heartbeat(heartbeatFingerprint=5)
        for _ in range(3):
            self.beat(self.one, content)
            self.settle()
        self.assertEqual(self.own(), 0)
