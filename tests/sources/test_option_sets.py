"""Random sets of options; C{scripts/torture/export_options.py} tries more of them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.sources.options import parse_options
from rocketbroker.sources.ranges import Queue
from scripts.torture.option_sets import Maker, Message, Refused, World, expected, read
from tests.sources.messages import START_MS, stored
from tests.sources.origins import MemoryOrigin

#: Queues with their first offset and their end.
QUEUES = {
    Queue("orders", "b1", 0): (0, 20),
    Queue("orders", "b1", 1): (5, 30),
    Queue("orders", "b2", 0): (0, 7),
    Queue("payments", "b1", 0): (0, 12),
    Queue("payments", "b2", 0): (0, 0),
}


def tag(number: int) -> str:
    """The tag of a message."""
    return "abc"[number % 3]


class OptionSetTests(SynchronousTestCase):
    """Each set of options is refused with a sentence, or reads what it says."""

    def setUp(self) -> None:
        """Five queues, one that has lost messages and one that is empty."""
        self.origin = TaggedOrigin({queue: end for queue, (_, end) in QUEUES.items()})
        self.origin.first |= {queue: first for queue, (first, _) in QUEUES.items()}
        for number, queue in enumerate(QUEUES):
            if number % 2:
                self.origin.groups["readers", queue] = 6
        world = World(
            {
                queue: [Message(n, START_MS + n + 1, tag(n)) for n in range(*bounds)]
                for queue, bounds in QUEUES.items()
            },
            self.origin.groups,
            START_MS + 1000,
        )
        where = [{"nameServer": "a:1"}, {"store": "/somewhere"}]
        self.maker = Maker(world, where, seed=18)

    def test_parsed(self) -> None:
        """Of each set it is known whether it makes sense."""
        for chosen in self.maker.sets(600):
            if chosen.sound:
                parse_options(chosen.given)
                continue
            error = self.assertRaises(ConfigurationError, parse_options, chosen.given)
            self.assertEqual(len(str(error).splitlines()), 1, error)

    def test_read(self) -> None:
        """What is read is what a model says, message by message."""
        refused = 0
        world = self.maker.world
        for chosen in self.maker.sound_sets(300):
            options = parse_options(chosen.given)
            try:
                rows = expected(world, chosen)
            except Refused:
                refused += 1
                with self.assertRaises(RocketbrokerError):
                    read(self.origin, options, world.now_ms)
                continue
            found, columns = read(self.origin, options, world.now_ms)
            self.assertEqual(found, rows, chosen.given)
            self.assertEqual(columns, [*chosen.columns])
        self.assertTrue(10 < refused < 100, refused)


class TaggedOrigin(MemoryOrigin):
    """One whose messages have three tags."""

    def message(self, queue: Queue, number: int) -> bytes:
        """See L{MemoryOrigin.message}."""
        return stored(
            number,
            b"%d" % number,
            {"TAGS": tag(number)},
            topic=queue.topic,
            queue_id=queue.queue_id,
        )
