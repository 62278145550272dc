"""Tests of how far groups are behind."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.metrics import lag
from rocketbroker.metrics.samples import Samples
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.codes import RequestCode
from tests.broker.rig import Rig, send_ext
from tests.metrics.scraped import parsed


class LagTests(SynchronousTestCase):
    """Single queues, at their edges."""

    def setUp(self) -> None:
        """Three messages in queue 0 of T."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic()
        for _ in range(3):
            self.rig.append()
        self.rig.scheduler.dispatch()
        self.queue = self.rig.store.queue("T", 0)
        self.found = lag.Lag()

    def test_ahead(self) -> None:
        """Offsets beyond the end are no negative lag."""
        self.found.add(self.queue, 9, 9)
        self.assertEqual(
            (self.found.behind, self.found.in_flight, self.found.ready), (0, 0, 0)
        )
        self.assertEqual((self.found.committed, self.found.pulled), ([], []))

    def test_empty(self) -> None:
        """A queue without messages adds nothing."""
        self.found.add(self.rig.store.queue("T", 1), -1, -1)
        self.assertEqual((self.found.behind, self.found.ready), (0, 0))

    def test_pulledNotCommitted(self) -> None:
        """Pulled and never committed is in flight as a whole."""
        self.found.add(self.queue, -1, 2)
        self.assertEqual(
            (self.found.behind, self.found.in_flight, self.found.ready), (3, 2, 1)
        )

    def test_age(self) -> None:
        """An age, and none of a message that cannot be read; clocks may go back."""
        self.assertEqual(lag.age(1000, 5000), 4000)
        self.assertEqual(lag.age(-1, 5000), 0)
        self.assertEqual(lag.age(6000, 5000), 0)


class LagFamiliesTests(SynchronousTestCase):
    """All groups, scrape by scrape."""

    def setUp(self) -> None:
        """Messages in two queues of T, one second apart, and a group that is known."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic()
        for queue_id in (0, 0, 1):
            self.rig.ask(RequestCode.SEND_MESSAGE_V2, send_ext("T", queue_id), b"x")
            self.rig.clock.advance(1)
        self.rig.scheduler.dispatch()
        self.rig.groups.find("G")
        self.families = lag.LagFamilies(self.rig.broker)
        self.batches: list[int] = []

    def scrape(self, most: int = 1000) -> dict[tuple[str, str], float]:
        """The values by name and group."""
        samples = Samples({}, most=most)
        now = self.rig.wall_ms()
        self.families.note_models()
        for _ in self.families.measure(samples, now):
            pass
        self.batches = []
        for batch in self.families.batches():
            self.batches.append(len(batch))
            self.families.read(batch)
        for _ in self.families.add_ages(now):
            pass
        return {
            (s.name.removeprefix("rocketmq_consumer_"), s.labels["consumer_group"]): (
                s.value
            )
            for family in parsed(samples)
            for s in family.samples
        }

    def subscribe(
        self, *topics: str, group: str = "G", model: str = "CLUSTERING"
    ) -> None:
        """A member of a group."""
        data = ConsumerData(
            group_name=group,
            message_model=model,
            subscription_data_set=[SubscriptionData(topic=topic) for topic in topics],
        )
        self.rig.consumers.register(
            self.rig.connection, "client", "JAVA", 479, data, False
        )

    def test_offline(self) -> None:
        """A group without members keeps its lag, and has nothing in flight."""
        self.subscribe("T")
        self.rig.offsets.commit("G", "T", 0, 1)
        self.rig.offsets.commit_pull("G", "T", 0, 2)
        online = self.scrape()
        self.assertEqual(online["rocketbroker_group_members", "G"], 1)
        self.assertEqual(online["inflight_messages", "G"], 1)
        self.rig.connection.close()
        self.assertEqual(
            self.scrape(),
            {
                ("rocketbroker_group_members", "G"): 0,
                ("lag_messages", "G"): online["lag_messages", "G"],
                ("lag_latency_milliseconds", "G"): 2000,
                ("inflight_messages", "G"): 0,
                ("ready_messages", "G"): online["lag_messages", "G"],
                ("queueing_latency_milliseconds", "G"): 2000,
            },
        )

    def test_notOffline(self) -> None:
        """Groups that were deleted, those of the system, the least offsets of groups
        that broadcast and topics that are gone are no groups without members."""
        self.rig.offsets.commit("Deleted", "T", 0, 1)
        self.rig.offsets.commit("CID_RMQ_SYS_TRANS", "T", 0, 1)
        self.rig.offsets.commit("G@broadcast", "T", 0, 1)
        self.assertEqual(self.scrape(), {})
        self.rig.offsets.commit("G", "Gone", 0, 1)
        self.rig.offsets.commit("G", "%RETRY%G", 0, 1)
        self.assertEqual(self.scrape(), {("rocketbroker_group_members", "G"): 0})

    def test_broadcastingGroupHasNoLag(self) -> None:
        """Members of a group that broadcasts keep their offsets: it has members, and
        no lag, also once they are gone and whatever was committed before."""
        self.subscribe("T", model="BROADCASTING")
        members = "rocketbroker_group_members", "G"
        self.assertEqual(self.scrape(), {members: 1})
        self.rig.offsets.commit("G", "T", 0, 1)
        self.assertEqual(self.scrape(), {members: 1})
        self.rig.connection.close()
        self.assertEqual(self.scrape(), {members: 0})

    def test_groupThatBroadcastsNoMoreHasLag(self) -> None:
        """Its last heartbeat counts; a group that is deleted is a new one later."""
        self.subscribe("T", model="BROADCASTING")
        self.scrape()
        self.subscribe("T")
        self.assertEqual(self.scrape()["lag_messages", "G"], 3)
        self.subscribe("T", model="BROADCASTING")
        self.scrape()
        self.rig.connection.close()
        self.rig.groups.delete("G")
        self.scrape()
        self.rig.groups.find("G")
        self.rig.offsets.commit("G", "T", 0, 1)
        self.assertIn(("lag_messages", "G"), self.scrape())

    def test_reset(self) -> None:
        """A reset that the group has not followed yet counts as committed."""
        self.rig.offsets.commit("G", "T", 0, 2)
        self.rig.offsets.commit("G", "T", 1, 1)
        self.assertEqual(self.scrape()["lag_messages", "G"], 0)
        self.rig.offsets.reset("G", "T", 0, 0)
        self.rig.offsets.commit("G", "T", 0, 2)
        self.assertEqual(self.scrape()["lag_messages", "G"], 2)

    def test_known(self) -> None:
        """A store time is read once, whoever waits for it, and again when an offset
        has moved."""
        self.rig.groups.find("H")
        for group in "GH":
            self.rig.offsets.commit(group, "T", 0, 0)
        first = self.scrape()
        self.assertEqual(self.batches, [2])
        self.rig.clock.advance(5)
        second = self.scrape()
        self.assertEqual(self.batches, [])
        for group in "GH":
            key = "lag_latency_milliseconds", group
            self.assertEqual((first[key], second[key]), (3000, 8000))
        self.rig.offsets.commit("G", "T", 0, 1)
        third = self.scrape()
        self.assertEqual(self.batches, [2])
        self.assertEqual(third["lag_latency_milliseconds", "G"], 7000)
        self.assertEqual(third["lag_latency_milliseconds", "H"], 8000)

    def test_limit(self) -> None:
        """One scrape reads a bounded number of store times, in small batches; groups
        beyond it have no age yet, but a lag."""
        most = 2 * lag.BATCH_SIZE
        names = [f"G{number:05}" for number in range(most)]
        for name in names:
            self.rig.groups.find(name)
            self.rig.topic(name, queues=2)
            for queue_id in (0, 1):
                queue = self.rig.store.queue(name, queue_id)
                assert type(queue) is Queue
                queue.set_offsets(0, 1)
            self.rig.offsets.commit(name, name, 0, 0)
        self.families = lag.LagFamilies(self.rig.broker, most)
        found = self.scrape()
        self.assertEqual(self.batches, [lag.BATCH_SIZE] * 2)
        age = "lag_latency_milliseconds"
        self.assertIn((age, names[most // 2 - 1]), found)
        self.assertNotIn((age, names[most // 2]), found)
        self.assertEqual(found["lag_messages", names[-1]], 2)
        self.assertIn((age, names[-1]), self.scrape())
