"""Tests of L{rocketbroker.broker.admin.message_queries}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import SystemFailure
from rocketbroker.records.record import decode
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.rig import MAX_UNIQUE, UNIQUE, WALL_MS, Rig, answered, send_ext

SEARCH = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
MAX = RequestCode.GET_MAX_OFFSET
MIN = RequestCode.GET_MIN_OFFSET
EARLIEST = RequestCode.GET_EARLIEST_MSG_STORETIME
VIEW = RequestCode.VIEW_MESSAGE_BY_ID


class QueryTests(SynchronousTestCase):
    """Questions about queues and messages."""

    def setUp(self) -> None:
        """Three messages in queue 0, a second apart."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 4)
        for number in range(3):
            self.rig.append(b"%d" % number)
            self.rig.clock.advance(1)

    def offset(
        self, code: int, topic: str = "T", queue_id: int = 0, **more: str
    ) -> int:
        """The offset that an answer names."""
        ext = {"topic": topic, "queueId": str(queue_id), **more}
        answer = self.rig.ask(code, ext)
        assert answer.ext is not None
        return int(answer.ext["offset"])

    def test_ends(self) -> None:
        """A queue begins at its oldest message and ends behind its newest."""
        self.assertEqual((self.offset(MIN), self.offset(MAX)), (0, 3))

    def test_empty(self) -> None:
        """An empty queue begins and ends at 0."""
        self.assertEqual((self.offset(MIN, "T", 1), self.offset(MAX, "T", 1)), (0, 0))

    def test_emptyBatchQueue(self) -> None:
        """An empty queue of a topic with batch queues begins at -1, as clients of
        RocketMQ expect, until it has a message."""
        self.rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        self.assertEqual((self.offset(MIN, "B"), self.offset(MAX, "B")), (-1, 0))

    def test_unknown(self) -> None:
        """So does one that is not there, which is not made for it."""
        before = len(self.rig.store.queues())
        for topic, queue_id in (("U", 0), ("T", 4), ("T", -1)):
            self.assertEqual(self.offset(MIN, topic, queue_id), 0)
            self.assertEqual(self.offset(MAX, topic, queue_id), 0)
            self.assertEqual(self.offset(SEARCH, topic, queue_id, timestamp="1"), 0)
        self.assertEqual(len(self.rig.store.queues()), before)

    def test_fewerQueues(self) -> None:
        """A queue that its topic no longer has still has ends."""
        self.rig.append(b"x", queue_id=3)
        self.rig.topic("T", 2)
        self.assertEqual((self.offset(MIN, "T", 3), self.offset(MAX, "T", 3)), (0, 1))

    def test_search(self) -> None:
        """The first message stored at or after a time, or the last at or before it."""
        for ms, boundary, offset in (
            (WALL_MS - 1, "LOWER", 0),
            (WALL_MS + 1000, "LOWER", 1),
            (WALL_MS + 1500, "LOWER", 2),
            (WALL_MS + 1500, "UPPER", 1),
            (WALL_MS + 9000, "LOWER", 3),
        ):
            found = self.offset(SEARCH, timestamp=str(ms), boundaryType=boundary)
            self.assertEqual(found, offset)

    def test_earliest(self) -> None:
        """When the oldest message was stored; -1 without one."""
        for topic, queue_id, ms in (("T", 0, WALL_MS), ("T", 1, -1), ("U", 0, -1)):
            ext = {"topic": topic, "queueId": str(queue_id)}
            answer = self.rig.ask(EARLIEST, ext)
            self.assertEqual(answer.ext, {"timestamp": str(ms)})

    def test_view(self) -> None:
        """The record that an offset id leads to."""
        position = self.rig.records()[1].position
        answer = self.rig.ask(VIEW, {"offset": str(position)})
        self.assertEqual(answer.code, 0)
        self.assertEqual(decode(answer.body).body, b"1")

    def test_viewNothing(self) -> None:
        """If no record begins there the answer says so."""
        end = self.rig.store.published_position
        for position in (1, -1, end, end + 100, 1 << 62):
            answer = self.rig.begin(VIEW, {"offset": str(position)})
            error = self.failureResultOf(answer, SystemFailure)
            self.assertEqual(
                str(error.value), f"can not find message by the offset, {position}"
            )

    def keyed(
        self, key: str, unique: bool = False, topic: str = "T", most: int = 32
    ) -> Command:
        """The answer to a question for a key."""
        ext = {
            "topic": topic,
            "key": key,
            "maxNum": str(most),
            "beginTimestamp": "0",
            "endTimestamp": str(1 << 62),
            "_UNIQUE_KEY_QUERY": str(unique).lower(),
        }
        return self.rig.ask(RequestCode.QUERY_MESSAGE, ext)

    def test_keys(self) -> None:
        """A key that was just sent is found, with how far the index is."""
        properties = "KEYS\x01k1 k2\x02"
        self.rig.ask(310, send_ext(properties=properties), b"found")
        last = self.rig.records()[-1]
        for key in ("k1", "k2"):
            answer = self.keyed(key)
            self.assertEqual(answer.code, 0)
            self.assertEqual(decode(answer.body).body, b"found")
            self.assertEqual(
                answer.ext,
                {
                    "indexLastUpdateTimestamp": str(last.store_ms),
                    "indexLastUpdatePhyoffset": str(last.position),
                },
            )

    def test_uniqueKeys(self) -> None:
        """For a unique key the broker says how many it looks for."""
        for _ in range(3):
            self.rig.ask(310, send_ext(), b"found")
        size = len(self.keyed(UNIQUE, most=1).body)
        answer = self.keyed(UNIQUE, unique=True, most=1)
        self.assertEqual(len(answer.body), MAX_UNIQUE * size)

    def test_noKey(self) -> None:
        """Nothing found is code 22."""
        for topic, key in (("T", "none"), ("U", "k1"), ("T", "")):
            answer = self.keyed(key, topic=topic)
            self.assertEqual(answer.code, 22)
            self.assertEqual(
                answer.remark, "can not find message, maybe time range not correct"
            )

    def test_threads(self) -> None:
        """Requests that may read the disk do so in a thread."""
        rig = Rig({}, threads=True)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.append()
        waiting = [
            rig.begin(SEARCH, {"topic": "T", "queueId": "0", "timestamp": "1"}),
            rig.begin(EARLIEST, {"topic": "T", "queueId": "0"}),
            rig.begin(VIEW, {"offset": "0"}),
        ]
        self.assertEqual(len(rig.threads.waiting), 3)
        rig.threads.run()
        for answer in waiting:
            self.assertEqual(answered(answer).code, 0)
