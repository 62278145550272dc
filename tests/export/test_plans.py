"""Plans."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.export.plans import (
    End,
    FileTask,
    Plan,
    cover_problem,
    ends_json,
    escape,
    file_path,
    groups,
    new_ends,
    plan_bytes,
    read_ends,
    read_plan,
)
from rocketbroker.spark.ranges import Queue, Range
from tests.examples import examples

ZERO, ONE = Queue("T", "b", 0), Queue("T", "b", 1)
MS = 1_700_000_000_000


def plan(*ranges: Range) -> Plan:
    """A plan with a file for each range."""
    files = tuple(FileTask(file_path(each, MS), each) for each in ranges)
    return Plan(7, "T", MS, ranges, files, (Range(ONE, 0, 1),))


class PlanTests(SynchronousTestCase):
    """Values and JSON."""

    def test_again(self) -> None:
        """A plan comes out of its JSON as it went in."""
        made = plan(Range(ZERO, 0, 5), Range(ONE, 1, 3))
        self.assertEqual(read_plan(plan_bytes(made)), made)
        self.assertEqual(made.rows, 7)

    def test_damaged(self) -> None:
        """Bytes that are no plan are a C{ValueError}, whatever they are."""
        whole = plan_bytes(plan(Range(ZERO, 0, 5)))
        for end in range(len(whole)):
            self.assertRaises(ValueError, read_plan, whole[:end])
        tree = json.loads(whole)
        wrong: Any
        for wrong in (
            {**tree, "version": 2},
            {**tree, "files": [{**tree["files"][0], "path": "T/../../x"}]},
            {**tree, "files": [{**tree["files"][0], "path": "/etc/dt=1/x"}]},
            {**tree, "ranges": None},
            [],
        ):
            self.assertRaises(ValueError, read_plan, json.dumps(wrong).encode())

    def test_paths(self) -> None:
        """A path says topic, hour, queue and range."""
        self.assertEqual(
            file_path(Range(Queue("%RETRY%g|x", "b", 12), 5, 70), MS),
            "~25RETRY~25g~7Cx/dt=2023-11-14/hour=22/~25RETRY~25g~7Cx+b+0012"
            "+00000000000000000005-00000000000000000070.zstd.parquet",
        )

    def test_nonsense(self) -> None:
        """A store time that cannot be still has an hour."""
        for ms, hour in (
            (2**62, "T/dt=9999-12-31/hour=23/"),
            (-5, "T/dt=1970-01-01/hour=00/"),
        ):
            self.assertIn(hour, file_path(Range(ZERO, 0, 1), ms))

    def test_badNames(self) -> None:
        """A name that would leave the directory is refused."""
        for name in ("..", "a/b", "", "."):
            self.assertRaises(ConfigurationError, escape, name)

    def test_ends(self) -> None:
        """Ends come out of their JSON as they went in; anything else is refused."""
        ends = {ZERO: End(5, MS, "id"), ONE: End(1, MS, "x")}
        self.assertEqual(read_ends(ends_json(ends)), ends)
        wrong: Any
        for wrong in ([], {"T": 1}, {"T": {"b": {"0": {}}}}, {"T": {"b": {"x": 1}}}):
            self.assertRaises(ValueError, read_ends, wrong)

    def test_newEnds(self) -> None:
        """A queue ends where its last file does; others stay."""
        before = {ONE: End(1, 2, "old")}
        made = plan(Range(ZERO, 0, 5))
        row = {
            "brokerName": "b",
            "queueId": 0,
            "from": 0,
            "until": 5,
            "lastStoreTimestamp": 9,
            "lastMsgId": "new",
        }
        self.assertEqual(
            new_ends(before, made, [row]), {**before, ZERO: End(5, 9, "new")}
        )

    def test_cover(self) -> None:
        """Files must cover the ranges, each offset once."""
        wanted = [Range(ZERO, 0, 10)]
        fine = [Range(ZERO, 4, 10), Range(ZERO, 0, 4)]
        self.assertIsNone(cover_problem(wanted, fine))
        for wrong in (
            [Range(ZERO, 0, 4)],
            [Range(ZERO, 0, 4), Range(ZERO, 5, 10)],
            [Range(ZERO, 0, 4), Range(ZERO, 3, 10)],
            [Range(ZERO, 0, 11)],
            [Range(ZERO, 0, 10), Range(ZERO, 0, 10)],
            [Range(ZERO, 0, 10), Range(ONE, 0, 1)],
        ):
            self.assertIsNotNone(cover_problem(wanted, wrong))

    @examples()
    @given(st.lists(st.integers(1, 50), max_size=12), st.integers(0, 5))
    def test_groups(self, sizes: list[int], most: int) -> None:
        """Each file is in one task, and no task is much larger than needed."""
        files = [
            FileTask(str(number), Range(ZERO, 0, size))
            for number, size in enumerate(sizes)
        ]
        tasks = groups(files, most)
        self.assertEqual(
            sorted(file.path for task in tasks for file in task),
            sorted(file.path for file in files),
        )
        self.assertEqual(len(tasks), min(len(files), max(1, most)))
        if tasks:
            loads = [sum(file.wanted.size for file in task) for task in tasks]
            self.assertTrue(max(loads) <= sum(sizes) / len(tasks) + max(sizes))
