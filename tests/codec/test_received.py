"""Tests of L{rocketbroker.codec.received}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec.received import ReceivedRun, take_ordinary
from rocketbroker.store.commitlog import received
from rocketbroker.store.commitlog.received import ReceivedRecords
from rocketbroker.store.commitlog.scanner import MAX_OFFSET, tag_code_of
from tests.examples import examples
from tests.store.stores import BORN_HOST_V6, START, START_MS, joined

_CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "topic": st.sampled_from([b"T", b"U", b"TT", b"t" * 127]),
        "body": st.sampled_from([b"", b"body", bytes(300)]),
        "properties": st.sampled_from(
            [
                b"",
                b"TAGS\x01a\x02",
                b"a\x01b\x02TAGS\x01a\x02",
                b"XTAGS\x01a\x02",
                b"\xff",
            ]
        ),
        "queue_id": st.integers(-1, 1),
        "queue_offset": st.sampled_from([-1, 0, 1, 2, MAX_OFFSET - 1, MAX_OFFSET]),
        "position": st.just(START),
        "born_host": st.just(BORN_HOST_V6),
        "sys_flag": st.sampled_from([0, 4, 8, 12]),
        "store_ms": st.integers(START_MS, START_MS + 1),
    },
)


def figures(runs: list[ReceivedRun]) -> list[tuple[object, ...]]:
    """All that runs hold."""
    return [
        (
            *(run.topic, run.queue_id, run.queue_offset, run.sys_flag, run.store_ms),
            *(run.end, run.positions, run.properties, run.codes, run.entries),
        )
        for run in runs
    ]


class ReceivedTests(SynchronousTestCase):
    """What is taken is what ordinary code takes."""

    def check(self, data: bytes) -> int:
        """Both take the same; how many records that is."""
        plain = ReceivedRecords()
        received._take_ordinary(data, START, plain)
        runs: list[ReceivedRun] = []
        most = MAX_OFFSET - len(data)
        at = take_ordinary(data, 0, START, most, runs, tag_code_of)
        self.assertEqual(at, plain.size)
        self.assertEqual(figures(runs), figures(plain.runs))
        return plain.count

    def test_all(self) -> None:
        """Ordinary records are all taken, in as few runs as there can be."""
        data = joined({}, {}, {"topic": b"U", "queue_offset": 7}, {})
        self.assertEqual(self.check(data), 4)
        runs: list[ReceivedRun] = []
        take_ordinary(data, 0, START, MAX_OFFSET, runs, tag_code_of)
        self.assertEqual([len(run.positions) for run in runs], [2, 1, 1])

    @examples()
    @given(st.lists(_CHANGES, max_size=6), st.integers(0, 80), st.integers(0, 255))
    def test_same(self, changes: list[dict[str, object]], cut: int, byte: int) -> None:
        """So it is with any records, cut off anywhere, and with a wrong byte."""
        data = joined(*changes)
        self.check(data[: len(data) - cut])
        if data:
            at = cut * 7919 % len(data)
            self.check(data[:at] + bytes([byte]) + data[at + 1 :])
