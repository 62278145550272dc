"""The registry of consumers."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.consumers import ConsumerGroup, ConsumerRegistry
from rocketbroker.broker.clients.members import MemberLog
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from tests.broker.rig import logged


def subscription(topic: str, version: int = 1, text: str = "*") -> SubscriptionData:
    """A member's subscription to a topic."""
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version)


class ConsumerRegistryTests(SynchronousTestCase):
    """Members come, change their minds, and go."""

    def setUp(self) -> None:
        """An empty registry and two connections."""
        self.clock = Clock()
        self.notified: list[str] = []
        self.members: list[IConnection] = []
        log = MemberLog(Slices(self.clock))
        self.registry = ConsumerRegistry(self.clock.seconds, log, self.tell)
        self.one = RecordedConnection(port=1)
        self.two = RecordedConnection(port=2)

    def tell(self, group: ConsumerGroup, member: IConnection | None) -> None:
        """Remember which group had to rebalance, and who of the last one."""
        self.notified.append(group.name)
        self.members = list(group.members) if member is None else [member]

    def beat(
        self,
        connection: RecordedConnection,
        *topics: SubscriptionData,
        client: str = "c",
        group: str = "G",
        model: str = "CLUSTERING",
        notify: bool = True,
        full: bool = True,
    ) -> ConsumerGroup:
        """One heartbeat."""
        data = ConsumerData(
            group_name=group,
            consume_type="CONSUME_PASSIVELY",
            message_model=model,
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscription_data_set=list(topics),
        )
        return self.registry.register(
            connection, client, "JAVA", 479, data, notify, with_subscriptions=full
        )

    def test_join(self) -> None:
        """A new member makes its group rebalance; its next heartbeat does not."""
        self.beat(self.one, subscription("T"), client="a")
        self.beat(self.one, subscription("T"), client="a")
        self.beat(self.two, subscription("T"), client="b")
        self.assertEqual(self.notified, ["G", "G"])
        group = self.registry.group("G")
        assert group is not None
        self.assertEqual(group.client_ids(), ["a", "b"])
        self.assertEqual(group.consume_from_where, "CONSUME_FROM_LAST_OFFSET")

    def test_memberList(self) -> None:
        """The list of members for clients is written once, until a member comes, goes,
        or calls itself otherwise."""
        group = self.beat(self.one, client="a")
        self.assertEqual(group.member_list(), b'{"consumerIdList":["a"]}')
        self.beat(self.one, subscription("T"), client="a")
        self.assertIs(group.member_list(), group.member_list())
        self.beat(self.two, client='"\xe9"')
        expected = '{"consumerIdList":["a","\\"\xe9\\""]}'.encode()
        self.assertEqual(group.member_list(), expected)
        self.one.close()
        self.beat(self.two, client="c")
        self.assertEqual(group.member_list(), b'{"consumerIdList":["c"]}')

    def test_logged(self) -> None:
        """Clients that come and go are logged with the reason, heartbeats are not."""

        def steps() -> None:
            self.beat(self.one, client="a")
            self.beat(self.one, client="a")
            self.beat(self.two)
            self.one.close()
            self.registry.unregister(self.two, "G", True)
            self.clock.advance(10)
            self.beat(RecordedConnection(port=3), client="a")
            self.clock.advance(121)
            self.registry.scan(120.0)
            self.clock.advance(0)

        one, two, three = (f"127.0.0.1:{port}" for port in (1, 2, 3))
        self.assertEqual(
            [
                line.replace("consumer group 'G', members now: ", "")
                for line in logged(steps)
            ],
            [
                f"'a' at {one} (JAVA) joined 1",
                f"'c' at {two} (JAVA) joined 2",
                f"'a' at {one} left 1; its connection was closed",
                f"'c' at {two} left 0; it unregistered",
                f"'a' at {three} (JAVA) joined 1",
                f"'a' at {three} left 0; it was silent for 120 s",
            ],
        )

    def test_retryTopicMade(self) -> None:
        """When the retry topic of a new group is there, its members are notified; each
        is again, alone, when it asks for the members for the first time; so is one that
        comes later, which may have looked for the topic before."""
        group = self.beat(self.one, notify=False)
        self.registry.rebalances(group, self.one)
        self.assertEqual(self.notified, [])
        self.registry.retry_topic_made("G")
        self.assertEqual((self.notified, self.members), (["G"], [self.one]))
        self.beat(self.two, client="d")
        self.assertEqual(self.members, [self.one, self.two])
        for connection in (self.two, self.one):
            self.registry.rebalances(group, connection)
            self.assertEqual(self.members, [connection])
        self.assertEqual(len(self.notified), 4)
        for connection in (self.two, self.one, RecordedConnection(port=3)):
            self.registry.rebalances(group, connection)
        self.assertEqual(len(self.notified), 4)

    def test_retryTopicKnown(self) -> None:
        """Members of a group whose retry topic was there are not notified again."""
        group = self.beat(self.one)
        self.registry.rebalances(group, self.one)
        self.assertEqual(self.notified, ["G"])

    def test_retryTopicOfNobody(self) -> None:
        """A group whose members have left meanwhile is not notified, nor one that
        broadcasts."""
        self.registry.retry_topic_made("G")
        self.beat(self.one, model="BROADCASTING")
        self.registry.retry_topic_made("G")
        self.assertEqual(self.notified, [])

    def test_sameClientTwice(self) -> None:
        """A client with two connections is one client, found by the newer one."""
        group = self.beat(self.one, client="a")
        self.beat(self.two, client="a")
        self.assertEqual(group.client_ids(), ["a"])
        member = self.registry.member("G", "a")
        assert member is not None
        self.assertIs(member.connection, self.two)
        self.assertIsNone(self.registry.member("G", "x"))
        self.assertIsNone(self.registry.member("H", "a"))

    def test_subscriptions(self) -> None:
        """A topic that comes or goes is a change; a newer version only replaces."""
        first = subscription("T", 1, "a")
        self.beat(self.one, first)
        self.assertIs(self.registry.subscription("G", "T"), first)
        newer = subscription("T", 2, "b")
        self.beat(self.one, newer)
        self.beat(self.one, subscription("T", 1, "c"))
        self.assertIs(self.registry.subscription("G", "T"), newer)
        self.assertEqual(self.notified, ["G"])
        self.beat(self.one, newer, subscription("U"))
        self.assertEqual(self.registry.groups_of_topic("U"), ["G"])
        self.beat(self.one, subscription("U"))
        self.assertIsNone(self.registry.subscription("G", "T"))
        self.assertIsNone(self.registry.subscription("H", "T"))
        self.assertEqual(self.notified, ["G"] * 3)

    def test_withoutSubscriptions(self) -> None:
        """A heartbeat that leaves them out leaves them as they are."""
        self.beat(self.one, subscription("T"))
        self.beat(self.one, full=False)
        self.assertIsNotNone(self.registry.subscription("G", "T"))

    def test_quiet(self) -> None:
        """Nobody is notified where the group does not want it, or broadcasts."""
        self.beat(self.one, notify=False)
        self.beat(self.two, group="B", model="BROADCASTING")
        self.beat(self.one, group="B", model="BROADCASTING")
        self.one.close()
        self.assertEqual(self.notified, [])

    def test_unregister(self) -> None:
        """A member that leaves makes the others rebalance; the last removes the
        group."""
        self.beat(self.one)
        self.beat(self.two)
        self.notified.clear()
        self.registry.unregister(self.one, "G", notify=True)
        self.registry.unregister(self.one, "G", notify=True)
        self.registry.unregister(self.one, "H", notify=True)
        self.assertEqual(self.notified, ["G"])
        self.assertEqual(self.registry.groups_on(self.one), ())
        self.registry.unregister(self.two, "G", notify=True)
        self.assertEqual(self.notified, ["G"])
        self.assertEqual(self.registry.groups(), [])

    def test_closed(self) -> None:
        """A closed connection leaves all its groups, which rebalance in any case."""
        for name in ("G", "H"):
            self.beat(self.one, group=name, notify=False)
            self.beat(self.two, group=name, notify=False)
        self.one.close()
        self.assertEqual(self.notified, ["G", "H"])
        group = self.registry.group("G")
        assert group is not None
        self.assertEqual(list(group.members), [self.two])

    def test_rejoin(self) -> None:
        """A member that left and came back on its connection goes with it once."""
        self.beat(self.one)
        self.beat(self.two)
        self.registry.unregister(self.one, "G", notify=False)
        self.beat(self.one)
        self.notified.clear()
        self.one.close()
        self.assertEqual(self.notified, ["G"])

    def test_scan(self) -> None:
        """A member that is silent for too long is removed and closed, without
        notices."""
        self.beat(self.one)
        self.clock.advance(100)
        self.beat(self.two)
        self.clock.advance(20.5)
        self.notified.clear()
        self.registry.scan(120.0)
        self.assertTrue(self.one.closed)
        self.assertFalse(self.two.closed)
        self.assertEqual((self.notified, self.registry.expired), ([], 1))
        group = self.registry.group("G")
        assert group is not None
        self.assertEqual(list(group.members), [self.two])

    def test_changedClient(self) -> None:
        """A connection that calls itself otherwise is that client from then on."""
        group = self.beat(self.one, client="a")
        self.beat(self.one, client="b")
        self.assertEqual(group.client_ids(), ["b"])
        self.assertEqual(self.notified, ["G"])
