"""The commits of an export as values."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.export.history import commits_after, queue_states, read_history
from rocketbroker.sources.ranges import Range
from tests.export.worlds import ONE, ZERO, Died, World


class HistoryTests(SynchronousTestCase):
    """L{read_history}."""

    def setUp(self) -> None:
        """Two queues."""
        self.world = World(self.mktemp(), {ZERO: 20, ONE: 7})

    def test_nothing(self) -> None:
        """Where nothing was exported, nothing is told."""
        history = read_history(self.world.storage)
        self.assertEqual((history.commits, history.pending), ((), ()))
        self.assertEqual(
            (history.topics, history.ends, [*history.files()]), ([], {}, [])
        )
        self.assertEqual(queue_states(history), [])

    def test_commits(self) -> None:
        """Each run is there with its files, and each queue with its offsets."""
        self.assertEqual(self.world.run(), 0)
        self.world.origin.ends[ONE] = 9
        self.assertEqual(self.world.run(), 0)
        history = read_history(self.world.storage)
        self.assertEqual([each.number for each in history.commits], [1, 2])
        self.assertEqual([each.rows for each in history.commits], [27, 2])
        self.assertEqual(history.topics, ["T"])
        paths = sorted(file.path for file in history.files())
        self.assertEqual(paths, self.world.files())
        parts = [part for file in history.commits[1].files for part in file.parts]
        self.assertEqual([part.wanted for part in parts], [Range(ONE, 7, 9)])
        states = [
            (each.queue, each.start, each.end, each.rows)
            for each in queue_states(history)
        ]
        self.assertEqual(states, [(ZERO, 0, 20, 20), (ONE, 0, 9, 9)])
        self.assertEqual(history.of(["U"]).commits, ())
        self.assertEqual(history.of([]), history)

    def test_pending(self) -> None:
        """So is a plan whose run died."""
        self.world.copying.die_after = 0
        self.assertRaises(Died, self.world.run)
        (plan,) = read_history(self.world.storage).pending
        self.assertEqual((plan.number, plan.topic, plan.rows), (1, "T", 27))

    def test_damaged(self) -> None:
        """A file that cannot be read is named beside all others."""
        self.assertEqual(self.world.run(), 0)
        for number, content in ((2, b"{"), (3, b"{}"), (4, b"[]")):
            self.world.storage.put(f"_rocketbroker/commits/{number:08d}.json", content)
        self.world.storage.put("_rocketbroker/plans/00000009.json", b"{}")
        history = read_history(self.world.storage)
        self.assertEqual([each.number for each in history.commits], [1])
        places = [
            each.where.rpartition("_rocketbroker/")[2] for each in history.problems
        ]
        names = [f"commits/{number:08d}.json" for number in (2, 3, 4)]
        self.assertEqual(places, [*names, "plans/00000009.json"])

    def test_after(self) -> None:
        """Whoever knows the first commits is told of the others, up to a fault."""
        for until in range(20, 40):
            self.world.origin.ends[ZERO] = until
            self.assertEqual(self.world.run(), 0)
        storage = self.world.storage
        found = [each.number for each in commits_after(storage, 3)]
        self.assertEqual(found, list(range(4, 21)))
        self.assertEqual([*commits_after(storage, 20)], [])
        storage.put("_rocketbroker/commits/00000019.json", b"{")
        commits = commits_after(storage, 3)
        self.assertEqual([next(commits).number for _ in range(8)], list(range(4, 12)))
        self.assertRaises(StoreError, list, commits)
