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
    Lost,
    Mark,
    Plan,
    PlanSource,
    cover_problem,
    ends_json,
    escape,
    file_path,
    groups,
    mark_json,
    new_ends,
    plan_bytes,
    queue_json,
    read_ends,
    read_plan,
    row_holes,
    row_parts,
)
from rocketbroker.sources.ranges import Queue, Range
from tests.examples import examples

ZERO, ONE = Queue("T", "b", 0), Queue("T", "b", 1)
MS = 1_700_000_000_000


def plan(*ranges: Range) -> Plan:
    """A plan with a file for each range."""
    files = tuple(FileTask(file_path([each], MS), (each,)) for each in ranges)
    marks = {ZERO: (Mark(0, 5, "a"), Mark(4, 6, "b"))}
    source = PlanSource("nameServer", ("c",), ("b",))
    lost = (Lost(Range(ONE, 0, 1), "deleted"),)
    return Plan(7, "T", MS, ranges, files, lost, source, marks, {"tags": "*"})


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
            {**tree, "version": 3},
            {**tree, "files": [{**tree["files"][0], "path": "T/../../x"}]},
            {**tree, "files": [{**tree["files"][0], "path": "/etc/dt=1/x"}]},
            {**tree, "files": [{**tree["files"][0], "ranges": []}]},
            {**tree, "files": [{**tree["files"][0], "groupRows": 0}]},
            {**tree, "ranges": None},
            [],
        ):
            self.assertRaises(ValueError, read_plan, json.dumps(wrong).encode())

    def test_paths(self) -> None:
        """A path says topic, hour, queue and range."""
        self.assertEqual(
            file_path([Range(Queue("%RETRY%g|x", "b", 12), 5, 70)], MS),
            "~25RETRY~25g~7Cx/dt=2023-11-14/hour=22/~25RETRY~25g~7Cx+b+0012"
            "+00000000000000000005-00000000000000000070.zstd.parquet",
        )

    def test_pathOfSeveral(self) -> None:
        """A file of several ranges is named by the first."""
        wanted = [Range(ZERO, 5, 70), Range(ONE, 0, 9), Range(Queue("T", "c", 0), 0, 1)]
        alone = file_path(wanted[:1], MS)
        self.assertEqual(file_path(wanted, MS), alone.replace(".zstd", "+2more.zstd"))

    def test_nonsense(self) -> None:
        """A store time that cannot be still has an hour."""
        for ms, hour in (
            (2**62, "T/dt=9999-12-31/hour=23/"),
            (-5, "T/dt=1970-01-01/hour=00/"),
        ):
            self.assertIn(hour, file_path([Range(ZERO, 0, 1)], ms))

    def test_badNames(self) -> None:
        """A name that would leave the directory is refused."""
        for name in ("..", "a/b", "", "."):
            self.assertRaises(ConfigurationError, escape, name)

    def test_ends(self) -> None:
        """Ends come out of their JSON as they went in; anything else is refused."""
        ends = {ZERO: End(5, (Mark(4, MS, "id"),)), ONE: End(1)}
        self.assertEqual(read_ends(ends_json(ends)), ends)
        wrong: Any
        for wrong in ([], {"T": 1}, {"T": {"b": {"0": {}}}}, {"T": {"b": {"x": 1}}}):
            self.assertRaises(ValueError, read_ends, wrong)

    def test_newEnds(self) -> None:
        """A queue ends where its range does; its last two known messages tell it."""
        before = {ONE: End(1, (Mark(0, 2, "old"),)), ZERO: End(2, (Mark(1, 1, "m"),))}
        made = plan(Range(ZERO, 2, 5))
        part = {**queue_json(Range(ZERO, 2, 5)), "holes": []}
        last = Mark(4, 9, "new")
        row = {"ranges": [{**part, "first": None, "last": mark_json(last)}]}
        after = {**before, ZERO: End(5, (last, Mark(1, 1, "m")))}
        self.assertEqual(new_ends(before, made, [row]), after)
        row = {"ranges": [{**part, "first": None, "last": None}]}
        after = {**before, ZERO: End(5, (Mark(1, 1, "m"),))}
        self.assertEqual(new_ends(before, made, [row]), after)

    def test_versionOne(self) -> None:
        """What earlier releases wrote is read: plans, ends and manifest rows."""
        wanted = Range(ZERO, 0, 5)
        path = file_path([wanted], MS)
        tree = {
            "version": 1,
            "number": 7,
            "topic": "T",
            "made": MS,
            "rows": 5,
            "ranges": [queue_json(wanted)],
            "lost": [queue_json(Range(ONE, 0, 1))],
            "files": [{"path": path, **queue_json(wanted)}],
        }
        found = read_plan(json.dumps(tree).encode())
        self.assertEqual(found.files, (FileTask(path, (wanted,)),))
        self.assertEqual(found.lost, (Lost(Range(ONE, 0, 1), "deleted"),))
        end = {"offset": 5, "storeTimestamp": 9, "msgId": "x"}
        self.assertEqual(
            read_ends({"T": {"b": {"0": end}}}), {ZERO: End(5, (Mark(4, 9, "x"),))}
        )
        row = {
            **queue_json(wanted),
            "rows": 4,
            "firstStoreTimestamp": 8,
            "lastStoreTimestamp": 9,
            "lastMsgId": "x",
            "queueDigest": 3,
            "holes": [[0, 1]],
        }
        (part,) = row_parts(row)
        self.assertEqual(part["last"], mark_json(Mark(4, 9, "x")))
        hole = Lost(Range(ZERO, 0, 1), "deleted")
        self.assertEqual(row_holes("T", row), [hole])

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
            FileTask(str(number), (Range(ZERO, 0, size),))
            for number, size in enumerate(sizes)
        ]
        tasks = groups(files, most)
        self.assertEqual(
            sorted(file.path for task in tasks for file in task),
            sorted(file.path for file in files),
        )
        self.assertEqual(len(tasks), min(len(files), max(1, most)))
        if tasks:
            loads = [sum(file.size for file in task) for task in tasks]
            self.assertTrue(max(loads) <= sum(sizes) / len(tasks) + max(sizes))
