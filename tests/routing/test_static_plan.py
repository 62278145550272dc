"""Where the queues of a static topic are to be."""

from __future__ import annotations

from collections import Counter

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.routing.static_plan import (
    StaticPlan,
    block_behind,
    finished,
    grown,
    leaders,
    mapping_of,
    moved,
)
from rocketbroker.wire.bodies.topics import TopicConfig, TopicConfigAndQueueMapping

NOW = 1_700_000_000_000


def led(plan: StaticPlan) -> dict[str, int]:
    """How many queues each broker leads."""
    return dict(Counter(each.bname for each in leaders("T", plan.brokers).values()))


class PlanTests(SynchronousTestCase):
    """Plans for topic T on brokers a to d."""

    def make(self, *names: str, count: int = 4) -> StaticPlan:
        """A topic that is made on these brokers."""
        return grown("T", {}, names, ["d"], count, NOW)

    def test_new(self) -> None:
        """A new topic has the same number of queues at each broker, each in a physical
        queue of its own; other brokers of the cluster know of it."""
        plan = self.make("a", "b", "c", count=7)
        self.assertEqual(led(plan), {"a": 3, "b": 2, "c": 2})
        for name, each in plan.brokers.items():
            items = mapping_of(each).hosted_queues.values()
            numbers = sorted(item.queue_id for (item,) in items)
            self.assertEqual(numbers, list(range(each.config.write_queue_nums)))
            self.assertEqual(each.config.read_queue_nums, len(numbers))
            self.assertEqual(mapping_of(each).bname, name)
            self.assertEqual(mapping_of(each).total_queues, 7)
            self.assertEqual(mapping_of(each).epoch, NOW)
        self.assertEqual(plan.brokers["d"].config.write_queue_nums, 0)
        self.assertEqual((plan.takers, plan.givers), ([], []))

    def test_grown(self) -> None:
        """More queues go to the brokers with the fewest; those that are there stay."""
        first = self.make("a", "b")
        plan = grown("T", first.brokers, ["a", "b", "c"], ["d"], 6, NOW)
        self.assertEqual(led(plan), {"a": 2, "b": 2, "c": 2})
        before, after = (mapping_of(each.brokers["a"]) for each in (first, plan))
        self.assertEqual(before.hosted_queues, after.hosted_queues)
        self.assertEqual(after.epoch, NOW + 1000)

    def test_notGrown(self) -> None:
        """A topic gets no fewer queues, and stays where it is."""
        first = self.make("a", "b")
        with self.assertRaises(SystemFailure):
            grown("T", first.brokers, ["a", "b"], ["d"], 4, NOW)
        with self.assertRaises(SystemFailure):
            grown("T", first.brokers, ["a"], ["b", "d"], 6, NOW)
        plain = TopicConfigAndQueueMapping(config=TopicConfig(topic_name="T"))
        with self.assertRaises(SystemFailure):
            grown("T", {"a": plain}, ["a"], ["d"], 6, NOW)

    def test_moved(self) -> None:
        """As few queues move as must; a broker takes or gives."""
        first = self.make("a", "b")
        plan = moved("T", first.brokers, ["a", "c"], ["b", "d"], NOW)
        self.assertEqual(led(plan), {"a": 2, "c": 2})
        self.assertEqual((plan.takers, plan.givers), (["c"], ["b"]))
        for name in ("b", "c"):
            for items in mapping_of(plan.brokers[name]).hosted_queues.values():
                self.assertEqual([each.bname for each in items], ["b", "c"])
                self.assertEqual(items[1].logic_offset, -1)
                self.assertEqual(items[1].gen, 1)
        self.assertEqual(plan.brokers["c"].config.write_queue_nums, 2)
        self.assertEqual(mapping_of(plan.brokers["d"]).epoch, NOW + 1000)
        again = moved("T", plan.brokers, ["c"], ["a", "b", "d"], NOW)
        self.assertEqual((again.takers, again.givers), (["c"], ["a"]))
        self.assertEqual(led(moved("T", again.brokers, ["c"], [], NOW)), {"c": 4})

    def test_decided(self) -> None:
        """When the givers' queues have ended, it is known where the takers' begin."""
        first = self.make("a", "b")
        plan = moved("T", first.brokers, ["a", "c"], ["b", "d"], NOW)
        decided = plan.decided({("b", 0): 7, ("b", 1): 5000})
        starts = {
            items[0].queue_id: items[1].logic_offset
            for items in mapping_of(decided.brokers["c"]).hosted_queues.values()
        }
        self.assertEqual(starts, {0: 10000, 1: 20000})
        self.assertEqual(
            mapping_of(decided.brokers["b"]).hosted_queues,
            mapping_of(decided.brokers["c"]).hosted_queues,
        )

    def test_finished(self) -> None:
        """A move that was broken off, wherever, can be brought to its end."""
        first = self.make("a", "b")
        plan = moved("T", first.brokers, ["a", "c"], ["b", "d"], NOW)
        ends = {("b", 0): 7, ("b", 1): 7}
        for told in (["c"], ["c", "b"], ["a", "b", "c", "d"]):
            now = {**first.brokers, **{name: plan.brokers[name] for name in told}}
            again = finished("T", now, ["a", "b", "c", "d"], NOW)
            self.assertEqual((again.takers, again.givers), (["c"], ["b"]))
            self.assertEqual(led(again), {"a": 2, "c": 2})
            end = again.decided(ends)
            for items in mapping_of(end.brokers["c"]).hosted_queues.values():
                self.assertEqual(items[-1].logic_offset, 10000)
        now = {**first.brokers, "c": plan.decided(ends).brokers["c"]}
        again = finished("T", now, ["a", "b", "c", "d"], NOW)
        self.assertEqual((again.takers, again.givers), ([], []))
        self.assertEqual(led(again), {"a": 2, "c": 2})

    def test_notFinished(self) -> None:
        """Not without the broker that gave the queue."""
        first = self.make("a", "b")
        plan = moved("T", first.brokers, ["c"], ["a", "b"], NOW)
        now = {"c": plan.brokers["c"]}
        with self.assertRaises(SystemFailure):
            finished("T", now, ["c"], NOW)
        now = {"a": first.brokers["a"]}
        with self.assertRaises(SystemFailure):
            finished("T", now, ["a"], NOW)

    def test_blocks(self) -> None:
        """The next item begins at least half a block behind the last one."""
        found = [block_behind(at) for at in (0, 4999, 5000, 10000, 19999)]
        self.assertEqual(found, [10000, 10000, 20000, 20000, 30000])

    def test_disagree(self) -> None:
        """Brokers that do not have the same mapping are not moved on from."""
        brokers = self.make("a", "b").brokers
        mapping = mapping_of(brokers["a"])
        queues = mapping.hosted_queues
        for wrong in (
            attrs.evolve(mapping, epoch=NOW + 1),
            attrs.evolve(mapping, bname="z"),
            attrs.evolve(mapping, hosted_queues={}),
            attrs.evolve(mapping, hosted_queues={**queues, 1: queues[0]}),
        ):
            one = attrs.evolve(brokers["a"], mapping=wrong)
            with self.assertRaises(SystemFailure):
                leaders("T", {**brokers, "a": one})
