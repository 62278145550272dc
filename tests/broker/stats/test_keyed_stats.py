"""The statistics of topics and groups by RocketMQ's names."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.figures import LOOK_SECONDS
from rocketbroker.broker.stats.keyed_stats import NAMES
from rocketbroker.broker.stats.stats_items import KEYS_A_STEP
from rocketbroker.records.names import SCHEDULE_CONSUMER, SCHEDULE_TOPIC
from tests.broker.rig import Rig, pull_ext, send_ext


class KeyedStatsTests(SynchronousTestCase):
    """Those of a broker that takes and gives messages."""

    def setUp(self) -> None:
        """A broker with a topic."""
        self.make({})

    def make(self, settings: dict[str, str]) -> None:
        """A broker with a topic."""
        self.rig = Rig(settings)
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.stats = self.rig.broker.figures.keyed

    def look(self, times: int = 1) -> None:
        """Let time pass."""
        for _ in range(times):
            self.rig.clock.advance(LOOK_SECONDS)
            for _ in self.stats.look():
                pass

    def sums(self) -> dict[str, dict[str, int]]:
        """What each statistic with keys has counted in the last minute."""
        found = {
            name: {key: self.stats.minute(name, key).sum for key in keys}
            for name in NAMES
            if (keys := self.stats.keys(name))
        }
        return {name: sums for name, sums in found.items() if any(sums.values())}

    def send(self, topic: str = "T", queue_id: int = 0, own: str = "") -> None:
        """Send a message."""
        more = {"properties": own} if own else {}
        answer = self.rig.ask(310, send_ext(topic, queue_id, **more), b"body")
        self.assertEqual(answer.code, 0)

    def test_none(self) -> None:
        """Without messages there are no keys, however many topics there are."""
        self.look()
        self.assertEqual(self.sums(), {})
        self.assertIsNone(self.stats.find("TOPIC_PUT_NUMS", "T"))
        self.assertIsNone(self.stats.find("BROKER_PUT_NUMS", "cluster-a"))
        self.assertIsNone(self.stats.find("NO_SUCH_NAME", "T"))

    def test_notLookedAt(self) -> None:
        """What was counted a moment ago is known, and 0."""
        self.send()
        self.rig.ask(11, pull_ext())
        for name, key in (
            ("TOPIC_PUT_NUMS", "T"),
            ("GROUP_GET_NUMS", "T@G"),
            ("BROKER_PUT_NUMS", "cluster-a"),
        ):
            found = self.stats.find(name, key)
            assert found is not None, name
            self.assertEqual({view.sum for view in found.values()}, {0})
        self.assertIsNone(self.stats.find("GROUP_GET_NUMS", "T@H"))
        self.assertIsNone(self.stats.find("SNDBCK_PUT_NUMS", "T@G"))

    def test_sends(self) -> None:
        """The queues of a topic are added up; a batch is one time."""
        self.send(queue_id=1)
        self.send(queue_id=2)
        part = b"\0\0\0\x1c" + bytes(12) + b"\0\0\0\4" + b"body" + b"\0\4K\x01v\x02"
        part = len(part).to_bytes(4, "big") + part[4:]
        self.rig.ask(320, send_ext(m="true"), part * 4)
        self.look()
        size = self.rig.store.published_position
        self.assertEqual(
            self.sums(),
            {
                "TOPIC_PUT_NUMS": {"T": 6},
                "TOPIC_PUT_SIZE": {"T": size},
                "BROKER_PUT_NUMS": {"cluster-a": 6},
                "BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC": {"cluster-a": 6},
            },
        )
        minute = self.stats.minute("TOPIC_PUT_NUMS", "T")
        self.assertEqual((minute.tps, minute.avgpt), (0.6, 2.0))
        self.assertEqual(self.stats.minute("TOPIC_PUT_SIZE", "T").avgpt, size / 3)
        self.assertEqual(self.stats.minute("BROKER_PUT_NUMS", "cluster-a").avgpt, 0.0)
        self.assertEqual(self.stats.put_tps("T"), 0.6)
        self.look(7)
        self.assertEqual(self.stats.put_tps("T"), 0.0)

    def test_pulls(self) -> None:
        """Pulls of both ways that find something count, with the time of their read."""
        for _ in range(3):
            self.send()
        size = self.rig.store.published_position
        self.rig.ask(11, pull_ext())
        self.rig.ask(11, pull_ext(3))
        self.rig.hot(11, pull_ext())
        self.look()
        sums = self.sums()
        self.assertEqual(sums["GROUP_GET_NUMS"], {"T@G": 6})
        self.assertEqual(sums["GROUP_GET_SIZE"], {"T@G": 2 * size})
        self.assertEqual(sums["BROKER_GET_NUMS"], {"cluster-a": 6})
        self.assertEqual(sums["BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC"], {"cluster-a": 6})
        self.assertNotIn("GROUP_GET_LATENCY", sums)
        self.assertEqual(self.stats.minute("GROUP_GET_NUMS", "T@G").avgpt, 3.0)
        self.assertEqual(self.stats.taken_tps("G", "T"), 0.6)

    def test_latency(self) -> None:
        """The time of reads that found something is counted in milliseconds."""
        self.make({"accessMessageInMemoryMaxRatio": "0"})
        self.send()
        self.rig.stall("pread", 0.25)
        self.rig.ask(11, pull_ext())
        self.rig.ask(11, pull_ext(1))
        self.look()
        self.assertEqual(self.sums()["GROUP_GET_LATENCY"], {"T@G": 250})
        self.assertEqual(self.stats.minute("GROUP_GET_LATENCY", "T@G").avgpt, 250.0)

    def test_delays(self) -> None:
        """A delayed message comes into the system's topic, by level, and then into its
        own, out of the hands of a group of the system."""
        self.rig.schedule.start()
        self.send(own="DELAY\x012\x02")
        self.look()
        sums = self.sums()
        self.assertEqual(sums["TOPIC_PUT_NUMS"], {SCHEDULE_TOPIC: 1, "T": 1})
        self.assertEqual(sums["QUEUE_PUT_NUMS"], {f"{SCHEDULE_TOPIC}@1": 1})
        out = f"{SCHEDULE_TOPIC}@{SCHEDULE_CONSUMER}"
        self.assertEqual(sums["GROUP_GET_NUMS"], {out: 1})
        self.assertEqual(sums["BROKER_PUT_NUMS"], {"cluster-a": 2})
        self.assertEqual(sums["BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC"], {"cluster-a": 1})

    def test_sentBack(self) -> None:
        """A message that a group sends back counts for the group and the topic."""
        self.send()
        ext = {"offset": "0", "group": "G", "delayLevel": "0", "originTopic": "T"}
        self.assertEqual(self.rig.ask(36, ext).code, 0)
        self.look()
        self.assertEqual(self.sums()["SNDBCK_PUT_NUMS"], {"T@G": 1})
        self.assertEqual(self.stats.minute("SNDBCK_PUT_NUMS", "T@G").avgpt, 1.0)

    def test_deleted(self) -> None:
        """The statistics of a topic go with it; those of the broker stay."""
        self.rig.topic("U")
        self.send()
        self.look()
        self.rig.topics.delete("T")
        self.send("U")
        self.rig.hot(310, send_ext("U"), b"body")
        self.look()
        self.assertIsNone(self.stats.find("TOPIC_PUT_NUMS", "T"))
        self.assertEqual(self.sums()["BROKER_PUT_NUMS"], {"cluster-a": 3})

    def test_steps(self) -> None:
        """Many counters are added up in steps."""
        for at in range(KEYS_A_STEP + 1):
            self.rig.sending.counter(f"T{at}", 0, "Normal").count(1, 100)
        self.rig.clock.advance(LOOK_SECONDS)
        self.assertEqual(len(list(self.stats.look())), 2)
        self.assertEqual(len(self.sums()["TOPIC_PUT_NUMS"]), KEYS_A_STEP + 1)
