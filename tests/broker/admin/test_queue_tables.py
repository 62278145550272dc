"""Answers about topics of thousands of queues."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.queue_tables import STEP_QUEUES, list_of, table_of
from rocketbroker.broker.clients.queue_assignment import assigned
from rocketbroker.remoting.cooperative_tasks import FEW_STEPS
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.fastjson import dumps, loads
from tests.broker.rig import Rig, answered

#: More queues than are looked at in the turn of their request.
QUEUES = (FEW_STEPS + 2) * STEP_QUEUES


class WideTests(SynchronousTestCase):
    """A topic of so many queues, in all of which group G has an offset."""

    def setUp(self) -> None:
        """Threads that a test runs."""
        self.rig = Rig({}, threads=True)
        self.addCleanup(self.rig.close)
        self.rig.groups.find("G")
        self.rig.topic("T", QUEUES)
        for number in range(QUEUES):
            self.rig.offsets.commit("G", "T", number, number)

    def ask(self, code: int, **ext: str) -> Any:
        """Ask; the body of the answer, for which threads look at some queues each."""
        before = self.rig.broker.slices.steps
        asked: Any = self.rig.begin(code, ext)
        self.rig.clock.advance(0)
        self.assertGreater(self.rig.broker.slices.steps, before)
        pieces = 0
        while self.rig.threads.waiting:
            self.rig.threads.run()
            pieces += 1
            if self.rig.broker.slices.waiting:
                self.rig.clock.advance(0)
        self.assertGreaterEqual(pieces, QUEUES // STEP_QUEUES)
        return loads(answered(asked).body)

    def table(self, value: Any) -> dict[int, Any]:
        """The entries of a table by the numbers of their queues, in their order."""
        keys = [MessageQueue.from_json(key) for key in value["offsetTable"]]
        self.assertEqual(
            sorted(keys), [MessageQueue("T", "broker-a", n) for n in range(QUEUES)]
        )
        values = value["offsetTable"].values()
        return {key.queue_id: each for key, each in zip(keys, values, strict=True)}

    def test_statistics(self) -> None:
        """Request 202 has all queues."""
        table = self.table(self.ask(202, topic="T"))
        entry = {"lastUpdateTimestamp": 0, "maxOffset": 0, "minOffset": 0}
        self.assertEqual(table[QUEUES - 1], entry)

    def test_progress(self) -> None:
        """Request 208 has all queues."""
        table = self.table(self.ask(208, topic="T", consumerGroup="G"))
        self.assertEqual(table[QUEUES - 1]["consumerOffset"], QUEUES - 1)

    def test_progressOfAll(self) -> None:
        """Request 317 has all queues, as request 208 has them."""
        value = self.ask(317, isOrder="false")
        behind = -sum(range(QUEUES))
        self.assertEqual((value["totalDiff"], value["totalInflightDiff"]), (behind, 0))
        (groups,) = (e["G"] for e in value["consumeStatsList"] if e.get("G"))
        (stats,) = groups if isinstance(groups, list) else (groups,)
        self.assertEqual(stats["consumeTps"], 0.0)
        self.table(stats)

    def test_times(self) -> None:
        """Request 303 has all queues, in their order."""
        spans = self.ask(303, topic="T", group="G")["consumeTimeSpanSet"]
        numbers = [span["messageQueue"]["queueId"] for span in spans]
        self.assertEqual(numbers, list(range(QUEUES)))

    def test_reset(self) -> None:
        """Request 222 sets all queues."""
        value = self.ask(
            222, topic="T", group="G", timestamp="-1", isForce="true", queueId="-1"
        )
        self.assertEqual(set(self.table(value).values()), {0})
        self.assertEqual(self.rig.offsets.query("G", "T", QUEUES - 1), 0)


class TextTests(SynchronousTestCase):
    """The pieces of which answers are put together."""

    def test_table(self) -> None:
        """A table is that of its entries in one go."""
        values = {MessageQueue("T", "b", number): number for number in range(12)}
        texts = [dumps({key: value}).decode()[1:-1] for key, value in values.items()]
        self.assertEqual(dumps(table_of(texts)), dumps(values))
        self.assertEqual(dumps(list_of(["1", "2"])), b"[1,2]")

    def test_assigned(self) -> None:
        """Assignments are what is written of each."""
        for queues in (
            [],
            [MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)],
            [MessageQueue('T"', 'c"', -1), MessageQueue('T"', "d", 3)],
        ):
            wanted = [{"messageQueue": queue, "mode": "POP"} for queue in queues]
            text = "".join(assigned(queues, "POP"))
            self.assertEqual(text.encode(), dumps(wanted))
