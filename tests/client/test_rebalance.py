"""Members of a group share the queues."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.consumer import Consumer
from rocketbroker.errors import ConfigurationError
from rocketbroker.records.names import retry_topic
from rocketbroker.routing.allocation import Configured, ConsistentHash, NearbyRoom
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster


class RebalanceTests(SynchronousTestCase):
    """Two brokers with two queues each."""

    def setUp(self) -> None:
        self.here = ClientCluster()
        self.runtime = self.here.runtime

    def queues(self, consumer: Consumer) -> set[MessageQueue]:
        """The queues of topic T that a member has."""
        return {queue for queue in consumer.queues if queue.topic == "T"}

    def assertShared(self, *consumers: Consumer) -> None:
        """Each queue has one owner."""
        owned = [queue for one in consumers for queue in self.queues(one)]
        self.assertEqual(len(owned), 4, owned)
        self.assertEqual(len(set(owned)), 4, owned)

    def test_oneMemberHasAllQueues(self) -> None:
        """As soon as it has started."""
        self.assertShared(self.here.started())

    def test_membersShareOnceTheyAreTold(self) -> None:
        """Within a second or two of a join, by the broker's notice."""
        first = self.here.started()
        second = self.here.started()
        self.runtime.advance(2.0)
        self.assertShared(first, second)
        self.assertEqual(len(self.queues(second)), 2)
        third = self.here.started()
        self.runtime.advance(2.0)
        self.assertShared(first, second, third)

    def test_othersHaveTheQueuesOfAMemberThatLeaves(self) -> None:
        """Within a second, and go on where it has committed."""
        first, second = self.here.started(), self.here.started()
        self.runtime.advance(2.0)
        self.here.put("1", "2")
        self.here.put("3", "4", broker="b2")
        taken = self.here.all_of(first)
        self.runtime.finish(taken[0].ack())
        self.runtime.finish(first.close())
        self.runtime.advance(1.1)
        self.assertShared(second)
        rest = {"1", "2", "3", "4"} - {taken[0].text}
        self.assertEqual(set(self.here.texts(second)), rest)

    def test_memberThatIsKilledIsMissed(self) -> None:
        """The broker sees its connection end, and tells the others."""
        first, second = self.here.started(), self.here.started()
        self.runtime.advance(2.0)
        mine = self.here.broker().clients
        for link, client_id in [*mine.items()]:
            if client_id != min(self.here.broker().members("G")):
                continue
            link.cut()
        self.runtime.advance(0.5)
        self.runtime.advance(25.0)
        self.assertShared(first, second)

    def test_queuesThatComeLaterAreTaken(self) -> None:
        """A topic that grows, with the next route and the next round."""
        consumer = self.here.started()
        self.here.cluster.topics["T"] = {"b1": 3, "b2": 2}
        self.runtime.advance(60.0)
        self.assertEqual(len(self.queues(consumer)), 5)

    def test_lostQueueIsCommitted(self) -> None:
        """With what was acknowledged until then; the rest comes to the new owner, and,
        as in Java, what was not committed when that one came."""
        first = self.here.started()
        self.here.put("1", "2", broker="b1", queue=1)
        self.here.put("1", "2", broker="b2", queue=1)
        for message in self.here.all_of(first):
            if message.text == "1":
                self.runtime.finish(message.ack())
        second = self.here.started()
        self.runtime.advance(2.0)
        self.assertShared(first, second)
        self.assertIn("2", self.here.texts(second))
        (lost,) = {queue for queue in self.queues(second) if queue.queue_id == 1}
        commits = self.here.broker(lost.broker).commits
        self.assertIn(("G", "T", 1, 1), commits)

    def test_acknowledgementAfterTheQueueIsLostCountsForNothing(self) -> None:
        """The new owner has the message; nothing is committed over its head."""
        first = self.here.started()
        self.here.put("1", "2", broker="b2", queue=1)
        self.here.put("1", "2", broker="b1", queue=0)
        taken = self.here.all_of(first)
        second = self.here.started()
        self.runtime.advance(2.0)
        for message in taken:
            self.runtime.finish(message.ack())
        self.runtime.advance(10.0)
        self.assertEqual(len(self.here.texts(second)), 2)
        offsets = self.here.cluster.brokers
        lost = [
            offsets[queue.broker].offsets["G", "T", queue.queue_id]
            for queue in self.queues(second)
        ]
        self.assertEqual(sum(lost), 0)

    def test_strangerGetsNothing(self) -> None:
        """A member that the broker does not know, for whatever reason, waits."""
        consumer = self.here.started()
        for broker in self.here.cluster.brokers.values():
            for link in broker.clients:
                broker.clients[link] = "other"
        consumer.wake()
        self.runtime.advance(2.0)
        self.assertEqual(self.queues(consumer), set())

    def test_unreachableListKeepsTheQueues(self) -> None:
        """Nobody gives up queues because a question has no answer."""
        consumer = self.here.started()
        for broker in ("b1", "b2"):
            self.here.cluster.stop(broker)
        self.runtime.advance(120.0)
        self.assertShared(consumer)

    def test_heartbeatsSayWhatTheGroupWants(self) -> None:
        """Its topic and its retry topic, to every broker, and again every 30 s."""
        consumer = self.here.started("a")
        broker = self.here.broker("b2")
        ((data),) = broker.groups["G"].values()
        wanted = {
            one.topic: (one.sub_string, one.sub_version)
            for one in data.subscription_data_set
        }
        self.assertEqual(wanted["T"][0], "a")
        self.assertEqual(wanted[retry_topic("G")][0], "*")
        self.assertEqual(data.consume_type, "CONSUME_PASSIVELY")
        self.assertEqual(data.message_model, "CLUSTERING")
        before = self.runtime.codes("b2:10911").count(RequestCode.HEART_BEAT)
        self.runtime.advance(60.0)
        after = self.runtime.codes("b2:10911").count(RequestCode.HEART_BEAT)
        self.assertEqual(after - before, 2)
        self.assertEqual(consumer.settings.group, "G")

    def test_newSubscriptionVersionFollowsAChange(self) -> None:
        """Brokers keep the newest: Java's members raise it whenever queues change."""
        self.here.started()
        first = self.version()
        self.here.started()
        self.runtime.advance(2.0)
        self.assertGreater(self.version(), first)

    def version(self) -> int:
        """The newest subscription of topic T that a broker has been told."""
        return max(
            one.sub_version
            for data in self.here.broker().groups["G"].values()
            for one in data.subscription_data_set
            if one.topic == "T"
        )

    def test_strategyHasToExist(self) -> None:
        """Those of RocketMQ that need nothing else, by their names."""
        for name in ("AVG_BY_CIRCLE", "CONSISTENT_HASH"):
            group = f"G_{name}"
            first = self.here.started(strategy=name, group=group)
            second = self.here.started(strategy=name, group=group)
            self.runtime.advance(2.0)
            self.assertShared(first, second)
        for nothing in ("LUCK", None):
            with self.assertRaises(ConfigurationError) as caught:
                self.here.consumer(strategy=nothing)
            self.assertIn("AVG_BY_CIRCLE", str(caught.exception))

    def test_strategyMayBeAFunction(self) -> None:
        """It is asked with all queues of a topic, all members and the member, sorted;
        what it names that is no queue of the topic is passed over."""
        asked = []

        def oldest_has_all(
            queues: Sequence[MessageQueue], members: Sequence[str], member: str
        ) -> list[MessageQueue] | None:
            asked.append((queues, members, member))
            if member != members[0]:
                return None
            return [*queues, MessageQueue("OTHER", "b1", 0), queues[0]]

        members = [self.here.started(strategy=oldest_has_all) for _ in range(2)]
        self.runtime.advance(2.0)
        self.assertEqual(sorted(len(self.queues(one)) for one in members), [0, 4])
        ids = self.here.broker().members("G")
        self.assertEqual({member for _, _, member in asked}, set(ids))
        queues, everyone, _ = [one for one in asked if one[0][0].topic == "T"][-1]
        self.assertEqual(everyone, sorted(ids))
        self.assertEqual(queues, sorted(queues))
        self.assertEqual(len(queues), 4)

    def test_configuredQueuesAreAMembersOwn(self) -> None:
        """Of each topic those that are named, whoever else is there."""
        one = MessageQueue("T", "b2", 1)
        first = self.here.started(strategy=Configured([one]))
        second = self.here.started(strategy=Configured([one]))
        self.runtime.advance(2.0)
        for consumer in (first, second):
            self.assertEqual(set(consumer.queues), {one})

    def test_strategyThatFailsChangesNothing(self) -> None:
        """It is asked again each second, and the reason is told once."""
        rooms = {"b1": "east", "b2": "west"}
        east = NearbyRoom(
            ConsistentHash(), lambda queue: rooms.get(queue.broker), lambda _: "east"
        )
        consumer = self.here.started(strategy=east)
        self.assertShared(consumer)
        del rooms["b2"]
        with self.assertLogs("rocketbroker.client", "WARNING") as logs:
            consumer.wake()
            self.runtime.advance(10.0)
        self.assertShared(consumer)
        told = [line for line in logs.output if " of T," in line]
        self.assertEqual(len(told), 1, logs.output)
        self.assertIn("no room is known of queue 0 of T on b2", told[0])

    def test_noQueuesChangeNothing(self) -> None:
        """A topic that cannot be read for now: as in Java its queues are kept."""
        consumer = self.here.started()
        self.here.cluster.topics["T"] = {"b1": 0, "b2": 0}
        self.runtime.advance(60.0)
        self.assertShared(consumer)
