"""What a report shows, as numbers."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import Gap
from rocketbroker.export.lags import Lag
from rocketbroker.export.plans import HOUR_MS
from rocketbroker.export.report.figures import (
    MAX_BARS,
    MIB,
    following_hour,
    hour_of,
    losses,
    periods,
    queue_lines,
    rates,
    schemas,
    sizes,
    topic_states,
    undecodable,
)
from rocketbroker.sources.ranges import Range
from tests.export.report.ledgers import (
    START_MS,
    commit,
    data_file,
    history,
    long_history,
    queue,
)

ZERO, ONE = queue(0), queue(1)


def gone(start: int, until: int, number: int = 1) -> Gap:
    """Messages that the source removed."""
    return Gap(Range(ZERO, start, until), f"it begins at {until}", True, number)


class PeriodTests(SynchronousTestCase):
    """L{periods}."""

    def test_hours(self) -> None:
        """Each hour has its messages, also one without any, and what is missing."""
        files = [
            data_file(1, Range(ZERO, 0, 10), 0),
            data_file(1, Range(ONE, 0, 7), 0),
            data_file(1, Range(ZERO, 10, 30), 2, hole=(12, 15)),
        ]
        hours, found = periods(history(commit(1, files)))
        self.assertEqual(hours, 1)
        self.assertEqual(
            [(each.start_ms - START_MS, each.rows, each.missing) for each in found],
            [(0, 17, 0), (HOUR_MS, 0, 0), (2 * HOUR_MS, 17, 3)],
        )

    def test_removed(self) -> None:
        """Removed messages stand at the hour of those behind them; if there are none,
        at that of the run."""
        one = commit(1, [data_file(1, Range(ZERO, 5, 10), 3)], (gone(0, 5),))
        _, found = periods(history(one))
        self.assertEqual([(each.rows, each.missing) for each in found], [(5, 5)])
        other = commit(1, [data_file(1, Range(ONE, 0, 1), 0)], (gone(0, 5),))
        self.assertEqual(following_hour(other, gone(0, 5)), START_MS + HOUR_MS)

    def test_bounded(self) -> None:
        """However long the time is, there are not too many periods; none is lost."""
        for last in (1, 119, 120, 500, 9000, 70_000, 9_000_000):
            files = [
                data_file(1, Range(ZERO, 0, 3), 0),
                data_file(1, Range(ZERO, 3, 8), last),
            ]
            _, found = periods(history(commit(1, files)))
            self.assertLessEqual(len(found), MAX_BARS + 1)
            self.assertEqual(sum(each.rows for each in found), 8)

    def test_nothing(self) -> None:
        """Without messages there are no periods; a strange path has no hour."""
        self.assertEqual(periods(history()), (1, []))
        self.assertEqual(hour_of("T/x.parquet"), -1)


class RateTests(SynchronousTestCase):
    """L{rates}."""

    def test_rates(self) -> None:
        """Each commit has its rate; one of which no time is known has none."""
        one = commit(1, [data_file(1, Range(ZERO, 0, 10))], seconds=2)
        two = commit(2, [data_file(2, Range(ZERO, 10, 20))], seconds=0)
        (rate,) = rates([one, two])
        self.assertEqual((rate.first, rate.last, rate.rows), (1, 1, 10))
        self.assertEqual(rate.rows_per_second, 5.0)
        self.assertEqual(rates([two]), [])

    def test_bounded(self) -> None:
        """Many commits are put together, those beside one another."""
        commits = long_history(1000, 3, 1).commits
        found = rates(commits)
        self.assertLessEqual(len(found), MAX_BARS)
        self.assertEqual((found[0].first, found[-1].last), (1, 1000))
        self.assertEqual(
            sum(each.rows for each in found), sum(each.rows for each in commits)
        )


class ListTests(SynchronousTestCase):
    """Sizes, schemas, losses, topics and queues."""

    def test_sizes(self) -> None:
        """Files are counted by size; borders belong to the larger."""
        files = [
            data_file(1, Range(ZERO, n, n + 1), size=size)
            for n, size in enumerate((0, MIB - 1, MIB, 3 * MIB, 1 << 40))
        ]
        self.assertEqual(sizes(files), [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1])

    def test_schemas(self) -> None:
        """The first form of each topic is told, and each change, once."""
        few: dict[str, Any] = {"columns": ["queueOffset", "body"]}
        found = schemas(
            history(
                commit(1, [data_file(1, Range(ZERO, 0, 1))]),
                commit(2, [data_file(2, Range(ZERO, 1, 2), **few)]),
                commit(3, [data_file(3, Range(ZERO, 2, 3), **few)]),
            )
        )
        self.assertEqual(
            [(each.commit, each.columns) for each in found],
            [(1, ()), (2, ("queueOffset", "body"))],
        )

    def test_losses(self) -> None:
        """What differs only in numbers is one reason; one alone keeps them."""
        files = [data_file(1, Range(ZERO, 9, 30), hole=(10, 12))]
        one = commit(1, files, (gone(0, 9),))
        two = commit(2, [data_file(2, Range(ONE, 0, 9), hole=(3, 4))])
        many, few = losses(history(one, two))
        self.assertEqual((many.messages, many.reason), (9, "it begins at 9"))
        self.assertTrue(many.is_retention)
        self.assertEqual((few.messages, few.queues), (3, 2))
        self.assertEqual((few.reason, few.first, few.last), ("damaged at …", 1, 2))
        self.assertFalse(few.is_retention)

    def test_undecodable(self) -> None:
        """Files with bodies that are still compressed are named, the worst first."""
        files = [data_file(1, Range(ZERO, n, n + 1), decodeErrors=n) for n in range(3)]
        found = undecodable(history(commit(1, files)))
        self.assertEqual([file.decode_errors for file in found], [2, 1])

    def test_queues(self) -> None:
        """Queues furthest behind come first, then those that miss most; queues too of
        which nothing is exported."""
        files = [
            data_file(1, Range(queue(0), 5, 10)),
            data_file(1, Range(queue(1), 0, 10), hole=(2, 4)),
            data_file(1, Range(queue(2), 0, 10)),
        ]
        whole = history(commit(1, files))
        self.assertEqual(
            [line.state.queue for line in queue_lines(whole, None)],
            [queue(1), queue(0), queue(2)],
        )
        lags = {
            queue(2): Lag(queue(2), 0, 10, 30),
            queue(5): Lag(queue(5), 4, None, 8),
            queue(0): Lag(queue(0), 2, 10, 10),
        }
        lines = queue_lines(whole, lags)
        self.assertEqual(
            [line.state.queue for line in lines],
            [queue(2), queue(5), queue(1), queue(0)],
        )
        self.assertEqual(
            [(line.earliest, line.state.end, line.latest) for line in lines],
            [(0, 10, 30), (4, 4, 8), (0, 10, 10), (2, 10, 10)],
        )
        (state,) = topic_states(whole, lines)
        self.assertEqual((state.queues, state.rows, state.missing), (4, 23, 2))
        self.assertEqual((state.behind, state.files), (24, 3))
        (state,) = topic_states(whole, queue_lines(whole, None))
        self.assertEqual(state.behind, None)
