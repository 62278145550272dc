"""The choice of operations."""

from __future__ import annotations

from collections import Counter
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.simulation.choices import MAX_QUEUES, Choices
from rocketbroker.testing.simulation.model import Model
from rocketbroker.testing.simulation.operations import (
    Create,
    Delete,
    Done,
    Operation,
    Pull,
    Pulled,
    Send,
    Sent,
)


class ChoicesTests(SynchronousTestCase):
    """Some thousand operations, a few of which are always under way."""

    def run_with(self, seed: int, count: int = 3000) -> list[Operation]:
        """What is chosen; each send gets the next offset."""
        dice = Random(seed)
        model = Model(1 << 20, MAX_QUEUES)
        choices = Choices(Random(seed), model, ["A", "B"])
        under_way: list[tuple[int, Operation]] = []
        chosen = []
        ends: Counter[tuple[str, int]] = Counter()
        for number in range(count):
            operation = choices.next()
            chosen.append(operation)
            if isinstance(operation, Create):
                self.assertFalse(model.topic(operation.topic).has(Send, Delete))
            under_way.append((model.begin(operation), operation))
            if len(under_way) < 4:
                continue
            ticket, ended = under_way.pop(dice.randrange(4))
            if isinstance(ended, Send):
                size = len(ended.messages)
                key = ended.topic, ended.queue_id
                model.end(ticket, Sent(0, ends[key], (number,) * size))
                ends[key] += size
            elif isinstance(ended, Pull):
                model.end(ticket, Pulled(0))
            else:
                model.end(ticket, Done(0))
        return chosen

    def test_sameSeedSameChoices(self) -> None:
        """The same seed and the same answers give the same operations."""
        self.assertEqual(self.run_with(1), self.run_with(1))
        self.assertNotEqual(self.run_with(1), self.run_with(2))

    def test_allKinds(self) -> None:
        """Each kind of operation comes, changes less often than the others."""
        counts = Counter(type(each).__name__ for each in self.run_with(3))
        self.assertEqual(set(counts), {"Send", "Pull", "Delete", "Create", "Clean"})
        self.assertGreater(counts["Send"] + counts["Pull"], 2500)

    def test_bodiesAreDifferent(self) -> None:
        """No two messages have the same body; those of one send have one tag."""
        sends = [each for each in self.run_with(4) if isinstance(each, Send)]
        bodies = [message.body for each in sends for message in each.messages]
        self.assertEqual(len(set(bodies)), len(bodies))
        self.assertTrue(all(len({m.tag for m in s.messages}) == 1 for s in sends))
