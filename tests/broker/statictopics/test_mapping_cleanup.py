"""What mappings do not need any more."""

from __future__ import annotations

import attrs

from rocketbroker.broker.statictopics.mapping_cleanup import MappingCleanup
from tests.broker.rig import logged, settings_of
from tests.broker.statictopics.pair import A, B, PairCase, item


class MappingCleanupTests(PairCase):
    """Mappings of brokers a and b."""

    def setUp(self) -> None:
        """It is four o'clock."""
        super().setUp()
        self.hour = 4

    def clean(self, name: str) -> MappingCleanup:
        """A round of cleaning."""
        broker = self.brokers[name]
        others = broker.static_topics.others
        cleanup = MappingCleanup(
            broker.metadata.mappings,
            others,
            broker.registration.routes,
            settings_of(),
            self.wall_ms,
            lambda ms: self.hour,
        )
        done = cleanup.look()
        self.network.settle()
        self.successResultOf(done)
        return cleanup

    def hosted(self, name: str) -> dict[int, list[str]]:
        """Which brokers a mapping names, by queue."""
        detail = self.brokers[name].metadata.mappings.details["T"]
        return {
            number: [each.bname for each in items]
            for number, items in detail.hosted_queues.items()
        }

    def test_kept(self) -> None:
        """An item with messages stays."""
        self.sent(A, 2)
        self.move()
        self.assertEqual(self.clean("b").removed_items, 0)
        self.assertEqual(self.hosted("b"), {1: ["b"], 0: ["a", "b"]})

    def test_itemsGone(self) -> None:
        """The first item of a queue goes when its messages are gone; in the hour of
        deleteWhen."""
        self.move()
        self.hour = 5
        self.clean("b")
        self.assertEqual(self.hosted("b")[0], ["a", "b"])
        self.hour = 4
        self.assertEqual(self.clean("b").removed_items, 1)
        self.assertEqual(self.hosted("b")[0], ["b"])
        self.assertEqual(self.sent(B, 1), [10])
        self.assertEqual((self.offset(31, B), self.offset(30, B)), (10, 11))
        self.assertEqual(self.drain(B), [(10, b"0")])

    def test_undecided(self) -> None:
        """It stays as long as it is not known where the next one begins."""
        self.epoch += 1000
        self.queues[0] = (item("a", 0), item("b", 1, 1, -1))
        self.map_to("b", "a")
        self.assertEqual(self.clean("b").removed_items, 0)

    def test_queuesGone(self) -> None:
        """A queue that has moved on goes from brokers that led it before; the broker
        that it moved from last keeps it."""
        self.move()
        self.clean("a")
        self.assertEqual(self.hosted("a")[0], ["a", "b"])
        stale = self.queues[0]
        self.epoch += 1000
        self.queues[0] = (*stale, item("a", 1, 2, 20))
        self.map_to("a", "b")
        self.assertEqual(self.clean("b").removed_queues, 0)
        mappings = self.brokers["b"].metadata.mappings
        detail = mappings.details["T"]
        missed = {**detail.hosted_queues, 0: (stale[0], item("c", 1, 1, 10))}
        mappings.replace(attrs.evolve(detail, hosted_queues=missed))
        self.assertEqual(self.clean("b").removed_queues, 1)
        self.assertEqual(self.hosted("b"), {1: ["b"]})

    def test_notThere(self) -> None:
        """A broker that does not answer is asked again the next time."""
        self.move()
        self.stop(self.brokers["a"])
        lines = logged(lambda: self.clean("b"))
        self.assertIn("is not cleaned now", lines[0])
        self.assertEqual(self.hosted("b")[0], ["a", "b"])

    def test_service(self) -> None:
        """Each broker does it every five minutes."""
        names = [service.name for service in self.brokers["a"].services.calls]
        self.assertIn("cleaning of mappings", names)
