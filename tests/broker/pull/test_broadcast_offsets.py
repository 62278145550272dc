"""Tests of L{rocketbroker.broker.pull.broadcast_offsets}."""

from __future__ import annotations

from rocketbroker.broker.clients.consumers import BROADCASTING, PASSIVELY
from rocketbroker.broker.pull import broadcast_offsets
from rocketbroker.broker.pull.pull_messages import fields_of
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.command import Command
from tests.broker.pull.pulls import MOVED, NOT_FOUND, PULL, PullCase, bodies
from tests.broker.rig import Rig, answered, pull_ext


class BroadcastCase(PullCase):
    """Four messages in queue 0, and a broadcasting group G."""

    def setUp(self) -> None:
        """Four messages."""
        super().setUp()
        self.fill()

    def fill(self) -> None:
        """Send them."""
        self.send("a", "b", "c", "d")
        self.rig.scheduler.dispatch()

    def register(
        self, client: str = "c", model: str = BROADCASTING, kind: str = PASSIVELY
    ) -> None:
        """A heartbeat of a client on the rig's connection."""
        data = ConsumerData(group_name="G", consume_type=kind, message_model=model)
        self.rig.consumers.register(
            self.rig.connection, client, "JAVA", 479, data, False
        )

    def proxy(self, offset: int, client: str = "c", **more: str) -> tuple[int, str]:
        """A pull of a proxy; its code, and where it goes on."""
        words = {"requestSource": "1", "proxyFrowardClientId": client, **more}
        answer = answered(self.rig.begin(PULL, pull_ext(offset, **words)))
        if answer.code == MOVED:
            self.assertEqual(answer.body, b"")
        return answer.code, (answer.ext or {})["nextBeginOffset"]

    def direct(self, offset: int) -> None:
        """A pull of a member, by the hot way; it gets what is there."""
        self.assertTrue(self.rig.hot(PULL, pull_ext(offset)))
        (answer,) = self.rig.answers()
        wanted = [b"a", b"b", b"c", b"d"][offset:]
        self.assertEqual((answer.code, bodies(answer)), (0, wanted))

    def look(self) -> dict[int, int]:
        """A look; how far the group as a whole is."""
        self.rig.broadcasts.look()
        return self.rig.offsets.queues("G@broadcast", "T")


class ProxyTests(BroadcastCase):
    """Pulls that a proxy makes for clients without offsets."""

    def test_first(self) -> None:
        """Where nobody was before it begins at the first message."""
        self.assertEqual(self.proxy(-1), (MOVED, "0"))
        self.assertEqual(self.proxy(0), (0, "4"))

    def test_firstOfEmpty(self) -> None:
        """In a queue without messages it begins at its end."""
        self.assertEqual(self.proxy(-1, queueId="1"), (MOVED, "0"))
        self.assertEqual(self.proxy(0, queueId="1"), (NOT_FOUND, "0"))

    def test_goesOn(self) -> None:
        """A client whose proxy has lost its offset goes on where it was."""
        self.proxy(2)
        self.assertEqual(self.proxy(-1), (MOVED, "2"))

    def test_sent(self) -> None:
        """Who was sent elsewhere is there."""
        self.proxy(9)
        self.assertEqual(self.proxy(-1), (MOVED, "4"))

    def test_neverBack(self) -> None:
        """What is noted never goes back."""
        self.proxy(3)
        self.proxy(1)
        self.assertEqual(self.proxy(-1), (MOVED, "3"))

    def test_topicMadeAgain(self) -> None:
        """In a topic that was deleted and made again a client begins anew."""
        self.proxy(3)
        self.rig.store.delete_topic("T")
        self.rig.offsets.forget_topic("T")
        self.fill()
        self.assertEqual(self.proxy(-1), (MOVED, "0"))
        self.proxy(1)
        self.assertEqual(self.look(), {0: 1})

    def test_queues(self) -> None:
        """Each queue has a place of its own; one that is new begins as the group."""
        self.proxy(3)
        self.rig.offsets.commit("G@broadcast", "T", 1, 0)
        self.assertEqual(self.proxy(-1, queueId="1"), (MOVED, "0"))

    def test_newcomer(self) -> None:
        """A client that was not seen before begins where the last of its group is."""
        self.proxy(2, "one")
        self.proxy(3, "two")
        self.look()
        self.assertEqual(self.proxy(-1, "three"), (MOVED, "2"))

    def test_ordinary(self) -> None:
        """Other pulls of proxies are not sent anywhere, nor those without a client."""
        for source in ("-1", "0", "2"):
            self.assertEqual(self.proxy(2, requestSource=source), (0, "4"))
        self.assertEqual(self.proxy(-1, requestSource="0"), (MOVED, "0"))
        words = {"requestSource": "1"}
        answer = answered(self.rig.begin(PULL, pull_ext(-1, **words)))
        self.assertEqual(answer.remark, "OFFSET_TOO_SMALL")
        self.assertEqual(self.look(), {})

    def test_reset(self) -> None:
        """What an operator has set comes first."""
        self.proxy(3)
        self.rig.offsets.reset("G", "T", 0, 1)
        self.assertEqual(self.proxy(-1), (MOVED, "1"))

    def test_tooMany(self) -> None:
        """Clients beyond the limit are served and not noted, until others have gone;
        so are those with too long a name."""
        self.rig.change(rocketbrokerMaxBroadcastClients=100)
        self.assertEqual(self.proxy(2, "first"), (0, "4"))
        fields = fields_of(Command(PULL, pull_ext(2, requestSource="1")))
        for number in range(99):
            fields.proxyFrowardClientId = f"{number}"
            self.rig.broadcasts.pulled(self.rig.connection, fields, 2)
        self.assertEqual(self.proxy(2, "last"), (0, "4"))
        self.assertEqual(self.rig.broadcasts.refused, 1)
        self.assertEqual(self.proxy(-1, "last"), (MOVED, "0"))
        self.assertEqual(self.proxy(-1, "first"), (MOVED, "2"))
        self.rig.clock.advance(120)
        self.rig.broadcasts.look()
        name = "x" * broadcast_offsets.MAX_CLIENT_ID
        self.assertEqual(self.proxy(3, name), (0, "4"))
        self.assertEqual(self.proxy(3, name + "x"), (0, "4"))
        self.assertEqual(self.proxy(-1, name), (MOVED, "3"))
        self.assertNotEqual(self.proxy(-1, name + "x"), (MOVED, "3"))


class MemberTests(BroadcastCase):
    """Pulls of members themselves."""

    def test_own(self) -> None:
        """Members have offsets of their own: they are noted, and nobody sent away."""
        self.register()
        self.direct(3)
        self.direct(1)
        self.assertEqual(self.look(), {0: 3})
        ext = pull_ext(-1)
        answer = answered(self.rig.begin(PULL, ext))
        self.assertEqual(answer.remark, "OFFSET_TOO_SMALL")

    def test_fromProxy(self) -> None:
        """A client that comes from a proxy goes on where it was there, once."""
        self.proxy(2)
        self.register()
        self.assertTrue(self.rig.hot(PULL, pull_ext(0)))
        (answer,) = self.rig.answers()
        self.assertEqual((answer.code, answer.remark), (MOVED, "OFFSET_RESET"))
        self.assertEqual((answer.ext or {})["nextBeginOffset"], "2")
        self.direct(0)

    def test_toProxy(self) -> None:
        """And the other way round, whatever offset the proxy has."""
        self.register()
        self.direct(3)
        self.assertEqual(self.proxy(0), (MOVED, "3"))
        self.assertEqual(self.proxy(0), (0, "4"))

    def test_held(self) -> None:
        """A pull that waits is noted while it does."""
        self.register()
        self.hold(4)
        self.assertEqual(self.look(), {0: 4})

    def test_others(self) -> None:
        """Only broadcasting push consumers are noted, and only members."""
        self.register(model="CLUSTERING")
        self.direct(1)
        self.register(kind="CONSUME_ACTIVELY")
        self.direct(1)
        self.register()
        self.rig.connection = RecordedConnection()
        self.direct(1)
        self.assertEqual(self.look(), {})

    def test_left(self) -> None:
        """When its last member has left it is no broadcasting group any more."""
        self.register()
        self.assertEqual(self.rig.consumers.broadcasting, {"G"})
        self.rig.consumers.unregister(self.rig.connection, "G", notify=False)
        self.assertEqual(self.rig.consumers.broadcasting, set())


class LookTests(BroadcastCase):
    """What is kept of all that, and for how long."""

    def test_least(self) -> None:
        """How far the group is is the least offset of its clients, and may go back."""
        self.proxy(3, "one")
        self.assertEqual(self.look(), {0: 3})
        self.proxy(1, "two")
        self.proxy(0, "two", queueId="2")
        self.assertEqual(self.look(), {0: 1, 2: 0})

    def test_unchanged(self) -> None:
        """What has not changed is not committed again."""
        self.proxy(3)
        self.look()
        commits = self.rig.offsets.commits
        self.look()
        self.assertEqual(self.rig.offsets.commits, commits)

    def test_offline(self) -> None:
        """A client that is not connected is forgotten after broadcastOffsetExpireSecond
        without a pull, and counts until then."""
        self.proxy(1, "gone")
        self.rig.clock.advance(60)
        self.proxy(3, "here")
        self.rig.clock.advance(59.9)
        self.assertEqual(self.look(), {0: 1})
        self.rig.clock.advance(0.1)
        self.assertEqual(self.look(), {0: 3})
        self.rig.clock.advance(60)
        self.look()
        self.assertEqual(self.rig.offsets.queues("G@broadcast", "T"), {0: 3})
        self.rig.offsets.commit("G@broadcast", "T", 0, 2)
        self.assertEqual(self.proxy(-1, "here"), (MOVED, "2"))

    def test_online(self) -> None:
        """One that is connected after broadcastOffsetExpireMaxSecond."""
        self.register()
        self.direct(2)
        self.rig.clock.advance(299)
        self.look()
        self.assertEqual(self.proxy(0), (MOVED, "2"))
        self.rig.clock.advance(300)
        self.assertEqual(self.look(), {0: 2})
        self.rig.offsets.commit("G@broadcast", "T", 0, 1)
        self.assertEqual(self.proxy(-1), (MOVED, "1"))

    def test_topicGone(self) -> None:
        """With a topic go the places in it, and where its groups were."""
        self.proxy(3)
        self.look()
        self.rig.topics.delete("T")
        self.rig.offsets.forget_topic("T")
        self.assertEqual(self.look(), {})
        self.rig.topic("T")
        self.assertEqual(self.proxy(-1), (MOVED, "0"))

    def test_groupGone(self) -> None:
        """With a group goes where it was."""
        self.rig.offsets.commit("G@broadcast", "T", 0, 3)
        self.rig.offsets.commit("GG@broadcast", "T", 0, 3)
        self.rig.offsets.forget_group("G")
        self.assertEqual(self.rig.offsets.queues("G@broadcast", "T"), {})
        self.assertEqual(self.rig.offsets.queues("GG@broadcast", "T"), {0: 3})

    def test_off(self) -> None:
        """With enableBroadcastOffsetStore off nothing is noted and nobody sent away."""
        self.rig = self.make(enableBroadcastOffsetStore="false")
        self.fill()
        self.register()
        self.direct(2)
        self.proxy(3)
        answer = answered(self.rig.begin(PULL, pull_ext(-1, requestSource="1")))
        self.assertEqual(answer.remark, "OFFSET_TOO_SMALL")
        self.assertEqual(self.look(), {})

    def test_restart(self) -> None:
        """How far groups are outlives a restart, in RocketMQ's file."""
        self.proxy(2)
        self.look()
        self.rig.offsets.save()
        self.rig.close()
        self.rig = Rig({}, disk=self.rig.disk)
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.assertEqual(self.proxy(-1, "new"), (MOVED, "2"))
