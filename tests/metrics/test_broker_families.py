"""Tests of what a broker shows: a whole broker over memory, scraped."""

from __future__ import annotations

import json
import random
from typing import Any

from prometheus_client.core import Metric, Sample
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.request import Asked
from rocketbroker.broker.access.room import AccessRoom
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.figures import LOOK_SECONDS
from rocketbroker.broker.pull.room import HELD_PULLS
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.errors import BrokerError
from rocketbroker.metrics.broker_families import BrokerFamilies
from rocketbroker.records.batches import encode
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.message_store import Store
from rocketbroker.store.plugins import IFollowerPlugin
from rocketbroker.store.running_flags import DISK_FULL
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.callers import Caller
from tests.broker.rig import HOST, SMALL, NoLookup, pull_ext, send_ext
from tests.broker.storage.subscribers import Plugin
from tests.metrics.scraped import parsed

COMMON = {"cluster": "c", "node_type": "broker", "node_id": "b", "zone": "z"}


class BrokerFamiliesTests(SynchronousTestCase):
    """Counters in, samples out."""

    def setUp(self) -> None:
        """One broker, asked through its main port's table."""
        self.followers: list[tuple[IFollowerPlugin, InThread]] = []
        self.begin()

    def begin(self, **settings: str) -> None:
        """A broker with these settings."""
        self.clock = Clock()
        self.clock.advance(1000)
        turns = Turns()
        self.turns = turns
        given = {
            **SMALL,
            "brokerName": "b",
            "brokerClusterName": "c",
            "brokerIP1": "10.0.0.1",
            "brokerIP2": "10.0.0.1",
            "metricsLabel": "zone:z",
            **settings,
        }
        parsed = BrokerSettings.from_properties(given)
        disk = MemoryDisk()
        store = Store(disk, parsed.store, self.wall_ms, HOST)
        self.replicas, self.link = ScriptedReplicas(), ScriptedLink()
        context = BrokerContext(
            settings=parsed,
            port=10911,
            clock=self.clock,
            wall_ms=self.wall_ms,
            files=disk,
            store=store,
            in_thread=at_once,
            client=Caller(),
            lookup=NoLookup(),
            turns=turns,
            unique_keys=UniqueKeys(b"\x0a\0\0\1", 1, 2, self.wall_ms),
            followers=self.followers,
            replica_server=lambda store, in_thread, membership: self.replicas,
            master_link=lambda store, in_thread: self.link,
        )
        self.broker = Broker(context)
        self.broker.open()
        self.addCleanup(store.close)
        limits = ConnectionLimits.of_server(RemotingServerOptions())
        self.group = ConnectionGroup(self.clock, self.broker.main, limits, turns)
        self.families = BrokerFamilies(
            self.broker, {"main": self.group}, self.wall_ms, at_once
        )

    def wall_ms(self) -> int:
        """The time of day."""
        return 1_700_000_000_000 + int(self.clock.seconds() * 1000)

    def scrape(self) -> list[Metric]:
        """One scrape, as Prometheus reads it."""
        samples = self.families.collect(frozenset())
        while not samples.called:
            self.clock.advance(0)
        return parsed(self.successResultOf(samples))

    def samples(self, name: str) -> list[Sample]:
        """The samples of one name; all have the common labels."""
        found = [s for f in self.scrape() for s in f.samples if s.name == name]
        for sample in found:
            self.assertEqual({k: sample.labels.get(k) for k in COMMON}, COMMON)
        return found

    def value(self, name: str, **labels: str) -> float:
        """The value of the one sample with these labels."""
        (sample,) = (
            s for s in self.samples(name) if labels.items() <= s.labels.items()
        )
        return sample.value

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Any:
        """One request in a turn of its own."""
        answer = self.broker.main.responders[code](
            RecordedConnection(), Command(code, ext, body, opaque=1)
        )
        self.turns.end()
        return answer

    def test_settings(self) -> None:
        """Settings that are changed meanwhile are shown, and obeyed."""
        self.assertEqual(self.value("rocketmq_broker_permission"), 6)
        self.assertNotEqual(self.samples("rocketmq_storage_flush_behind_bytes"), [])
        self.ask(25, {}, b"brokerPermission=4\nenableMessageStoreMetrics=false")
        self.assertEqual(self.value("rocketmq_broker_permission"), 4)
        self.assertEqual(self.samples("rocketmq_storage_flush_behind_bytes"), [])

    def send(self, size: int, **more: str) -> None:
        """Send one message that is created a topic for."""
        self.ask(RequestCode.SEND_MESSAGE_V2, send_ext("T", 0, **more), b"x" * size)

    def consumer(self, **more: object) -> None:
        """A consumer group with one member subscribes to T."""
        data = ConsumerData(
            group_name="G",
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            subscription_data_set=[SubscriptionData(topic="T")],
        )
        self.broker.clients.consumers.register(
            RecordedConnection(), "client", "JAVA", 479, data, False
        )

    def test_messagesIn(self) -> None:
        """Messages, bytes and sizes by topic and type."""
        for size in (10, 10, 2000):
            self.send(size)
        labels = {"topic": "T", "message_type": "normal", "is_system": "false"}
        self.assertEqual(self.value("rocketmq_messages_in_total", **labels), 3)
        stored = self.value("rocketmq_throughput_in_total", **labels)
        self.assertGreater(stored, 2020)
        self.assertEqual(self.value("rocketmq_message_size_count", **labels), 3)
        self.assertEqual(self.value("rocketmq_message_size_sum", **labels), stored)
        buckets = {
            s.labels["le"]: s.value
            for s in self.samples("rocketmq_message_size_bucket")
        }
        self.assertEqual(
            (buckets["1024.0"], buckets["4096.0"], buckets["+Inf"]), (2, 3, 3)
        )

    def test_creationsByOutcome(self) -> None:
        """Requests that make topics (17, 18) and groups (200, 225) are timed, refused
        ones and those of the system apart."""
        name = "rocketmq_topic_create_execution_time_milliseconds_count"
        self.assertEqual(self.samples(name), [])
        ext = {
            "topic": "T",
            "defaultTopic": "TBW102",
            "readQueueNums": "4",
            "writeQueueNums": "4",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
        }
        self.successResultOf(self.ask(17, ext))
        topics = {"topicConfigList": [TopicConfig(topic_name="U").to_json()]}
        self.successResultOf(self.ask(18, {}, json.dumps(topics).encode()))
        self.failureResultOf(self.ask(17, {**ext, "topic": "SCHEDULE_TOPIC_XXXX"}))
        self.failureResultOf(self.ask(17, {**ext, "topic": "a b"}))
        for status, is_system, count in (
            ("success", "false", 2),
            ("failure", "true", 1),
            ("failure", "false", 1),
        ):
            labels = {"invocation_status": status, "is_system": is_system}
            self.assertEqual(self.value(name, **labels), count)
        name = "rocketmq_consumer_group_create_execution_time_milliseconds"
        group = SubscriptionGroupConfig(group_name="G").to_json()
        self.successResultOf(self.ask(200, {}, json.dumps(group).encode()))
        groups = {"groupConfigList": [group]}
        self.successResultOf(self.ask(225, {}, json.dumps(groups).encode()))
        self.failureResultOf(self.ask(200, {}, b"{}"))
        ok = {"invocation_status": "success"}
        self.assertEqual(self.value(f"{name}_count", **ok), 2)
        self.assertEqual(self.value(f"{name}_sum", **ok), 0)
        self.assertEqual(self.value(f"{name}_count", invocation_status="failure"), 1)
        bounds = [s.labels["le"] for s in self.samples(f"{name}_bucket")]
        self.assertEqual(
            bounds[:6], ["10.0", "100.0", "1000.0", "3000.0", "5000.0", "+Inf"]
        )

    def test_samplesOfDeletedTopicGoAfterAnHour(self) -> None:
        """Those of all families; meanwhile their counters are as they were."""
        self.begin()
        broker = self.broker
        self.send(10)
        self.consumer()
        self.ask(11, pull_ext())
        broker.send.dead_letters.counts.count("G", "T")
        broker.send.send_back.counts.count("G", "T")
        broker.transactions.counts.ended("T", True, 5, False)
        broker.timer.service.counts.came("T", 5)
        broker.pop.log.written["G", "T", True, PUT_OK] += 1
        broker.pop.revive.read["G", "T", 0, True] += 1
        broker.pop.revive.revived["G", "T", PUT_OK] += 1
        self.pass_by(LOOK_SECONDS)
        before = self.of_topic("T")
        self.assertGreater(len(before), 25)
        broker.metadata.topics.delete("T")
        after = self.of_topic("T")
        kept = {
            name: value
            for name, value in before.items()
            if name.endswith(("_total", "_count", "_sum", "_bucket"))
        }
        self.assertGreater(len(kept), 15)
        self.assertEqual({name: after[name] for name in kept}, kept)
        self.pass_by(3600)
        self.assertEqual(self.of_topic("T"), {})

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and what was counted be sampled."""
        self.clock.advance(seconds)
        for _ in self.broker.figures.keyed.look():
            pass

    def of_topic(self, topic: str) -> dict[str, float]:
        """The samples of a topic, by name."""
        return {
            sample.name: sample.value
            for family in self.scrape()
            for sample in family.samples
            if sample.labels.get("topic") == topic
        }

    def test_batchesIn(self) -> None:
        """A batch counts its messages one by one, and its average size once."""
        self.send(10)
        body = encode([(0, b"x" * 50, b"")] * 4)
        ext = {**send_ext("T", 0), "m": "true"}
        self.ask(RequestCode.SEND_BATCH_MESSAGE, ext, body)
        self.assertEqual(self.value("rocketmq_messages_in_total", topic="T"), 5)
        self.assertEqual(self.value("rocketmq_message_size_count", topic="T"), 2)
        stored = self.value("rocketmq_throughput_in_total", topic="T")
        average = self.value("rocketmq_message_size_sum", topic="T") / 2
        self.assertLess(average, stored / 4)

    def test_messagesOut(self) -> None:
        """What a group pulled of a topic."""
        self.send(10)
        self.broker.storage.scheduler.dispatch()
        self.ask(
            RequestCode.PULL_MESSAGE,
            {
                "consumerGroup": "G",
                "topic": "T",
                "queueId": "0",
                "queueOffset": "0",
                "maxMsgNums": "32",
                "sysFlag": "4",
                "commitOffset": "0",
                "suspendTimeoutMillis": "0",
                "subscription": "*",
                "subVersion": "1",
                "expressionType": "TAG",
            },
        )
        labels = {"topic": "T", "consumer_group": "G", "is_system": "false"}
        self.assertEqual(self.value("rocketmq_messages_out_total", **labels), 1)
        self.assertEqual(
            self.value("rocketmq_throughput_out_total", **labels),
            self.value("rocketmq_throughput_in_total", topic="T"),
        )

    def test_lag(self) -> None:
        """Committed, pulled and stored make lag, in flight and ready, and ages."""
        for _ in range(5):
            self.send(10)
            self.clock.advance(1)
        self.broker.storage.scheduler.dispatch()
        self.consumer()
        self.broker.metadata.offsets.commit("G", "T", 0, 1)
        self.broker.metadata.offsets.commit_pull("G", "T", 0, 3)
        found = {
            name: self.value(f"rocketmq_consumer_{name}", consumer_group="G", topic="T")
            for name in (
                "lag_messages",
                "inflight_messages",
                "ready_messages",
                "lag_latency_milliseconds",
                "queueing_latency_milliseconds",
            )
        }
        self.assertEqual(
            found,
            {
                "lag_messages": 4,
                "inflight_messages": 2,
                "ready_messages": 2,
                "lag_latency_milliseconds": 4000,
                "queueing_latency_milliseconds": 2000,
            },
        )

    def test_neverCommitted(self) -> None:
        """A group that has committed nothing is behind by everything."""
        self.send(10)
        self.broker.storage.scheduler.dispatch()
        self.consumer()
        self.assertEqual(self.value("rocketmq_consumer_lag_messages"), 1)
        self.assertEqual(self.value("rocketmq_consumer_inflight_messages"), 0)

    def test_connections(self) -> None:
        """Connections by language and version, consumers by mode."""
        self.consumer()
        self.broker.clients.producers.register(
            RecordedConnection(), "p", "GO", 317, "PG"
        )
        self.assertEqual(
            self.value(
                "rocketmq_consumer_connections",
                consumer_group="G",
                language="java",
                version="v5_3_3",
                consume_mode="push",
            ),
            1,
        )
        self.assertEqual(
            self.value(
                "rocketmq_producer_connections", language="go", version="v4_5_2"
            ),
            1,
        )

    def test_problems(self) -> None:
        """What is wrong with groups, now and since the start, by kind."""
        self.consumer()
        for _ in self.broker.diagnostics.diagnosis.look():
            pass
        labels = {"kind": "topic-missing"}
        for new, count in (("true", 1), ("false", 0)):
            name = "rocketbroker_group_problems"
            self.assertEqual(self.value(name, new=new, **labels), count)
        name = "rocketbroker_group_problems_found_total"
        self.assertEqual(self.value(name, **labels), 1)
        self.assertEqual(self.value(name, kind="client-id"), 0)
        self.broker.diagnostics.diagnosis.refusals.note("G", "T", "10.0.0.9:4711")
        self.assertEqual(self.value("rocketbroker_pulls_refused_total"), 1)

    def test_filters(self) -> None:
        """SQL92 filters that are known are counted, and those that do not compile when
        they are needed."""
        for topic, expression in (("T", "a > 5"), ("U", "a >")):
            wanted = SubscriptionData(
                topic=topic, sub_string=expression, expression_type="SQL92"
            )
            self.broker.clients.filters.register("G", [wanted])
        self.assertIsNone(self.broker.clients.filters.ready("U", "G"))
        self.assertEqual(self.value("rocketbroker_sql_filters"), 1)
        self.assertEqual(self.value("rocketbroker_sql_filters_refused_total"), 1)

    def test_store(self) -> None:
        """How far the disk and the queues are behind, how full the disk is, and how old
        the oldest message, if there is one."""
        reserved = "rocketmq_storage_message_reserve_time_milliseconds"
        self.assertEqual(self.samples(reserved), [])
        self.send(10)
        behind = self.value("rocketmq_storage_flush_behind_bytes", storage_type="local")
        self.assertGreater(behind, 100)
        self.assertEqual(self.value("rocketmq_storage_dispatch_behind_bytes"), behind)
        self.broker.store.flush()
        self.broker.storage.scheduler.dispatch()
        self.assertEqual(self.value("rocketmq_storage_flush_behind_bytes"), 0)
        self.assertEqual(self.value("rocketmq_storage_dispatch_behind_bytes"), 0)
        ratio = self.value("rocketbroker_storage_disk_ratio")
        self.assertTrue(0 <= ratio <= 1, ratio)
        self.assertGreater(self.value("rocketbroker_storage_disk_free_bytes"), 0)
        self.assertEqual(self.value("rocketbroker_storage_running_flags"), 0)
        self.broker.store.flags.set(DISK_FULL)
        self.assertEqual(self.value("rocketbroker_storage_running_flags"), 16)
        self.assertEqual(self.value("rocketbroker_storage_open_files_limit"), 256)
        self.assertGreater(self.value("rocketbroker_storage_open_files"), 0)
        self.clock.advance(7)
        self.assertEqual(self.value(reserved), 7000)

    def test_index(self) -> None:
        """How far the index of keys is behind, and how often the disk refused it."""
        behind = "rocketbroker_storage_index_behind_bytes"
        self.send(10)
        self.assertEqual(self.value(behind), 0)
        while self.broker.store.dispatch(100):
            pass
        self.assertGreater(self.value(behind), 100)
        while self.broker.store.build_index(100):
            pass
        self.assertEqual(self.value(behind), 0)
        self.assertEqual(self.value("rocketbroker_index_failures_total"), 0)

    def test_rotten(self) -> None:
        """What was found to be rotten, and what the start gave up, is counted."""
        self.assertEqual(self.value("rocketbroker_corrupt_records_total"), 0)
        store = self.broker.store
        assert isinstance(store, Store)
        store.corruption_log.note(7, "Nothing stands at 7.")
        self.assertEqual(self.value("rocketbroker_corrupt_records_total"), 1)
        self.assertEqual(self.value("rocketbroker_discarded_bytes_total"), 0)

    def test_limits(self) -> None:
        """Refusals by limits are counted, by limit."""
        self.broker.metadata.topics.limit.refused = 2
        name = "rocketbroker_limit_refused_total"
        self.assertEqual(self.value(name, limit="topics"), 2)
        self.assertEqual(self.value(name, limit="groups"), 0)
        self.broker.context.administrators.refused = 3
        name = "rocketbroker_waiting_requests_refused_total"
        self.assertEqual(self.value(name, family="get_broker_runtime_info"), 3)
        self.assertEqual(self.value(name, family="pull_message"), 0)
        self.broker.pull.long_polling.refused = 6
        self.broker.pull.slow_groups.disabled = 7
        self.assertEqual(self.value("rocketbroker_long_polling_refused_total"), 6)
        self.assertEqual(self.value("rocketbroker_groups_disabled_total"), 7)
        self.broker.pull.cold_flow.refused = 4
        self.broker.pull.pulling.cold_overloads = 5
        name = "rocketbroker_cold_pulls_refused_total"
        self.assertEqual(self.value(name, reason="flow_control"), 4)
        self.assertEqual(self.value(name, reason="overloaded"), 5)

    def test_access(self) -> None:
        """What access control has refused is counted where there is some."""
        name = "rocketbroker_access_refused_total"
        self.assertEqual([*self.samples(name)], [])
        access = self.broker.access = AccessRoom(self.broker.context)
        (hook,) = access.hooks
        with self.assertRaises(BrokerError):
            hook.before(RecordedConnection(), Asked(17, {}))
        self.assertEqual(self.value(name), 1)

    def test_periodic(self) -> None:
        """Failures of periodic work are counted, by work."""
        self.broker.services.begin(HELD_PULLS, self.broker.pull.long_polling.check)
        self.addCleanup(self.broker.pull.long_polling.stop)
        self.broker.services.calls[HELD_PULLS].failures = 3
        name = "rocketbroker_periodic_failures_total"
        self.assertEqual(self.value(name, work="check of held pulls"), 3)

    def test_followers(self) -> None:
        """How far each follower is behind, and how often it failed."""
        plugin = Plugin()
        plugin.recorder.failing = 1
        self.followers.append((plugin, at_once))
        self.begin()
        self.send(10)
        self.broker.storage.scheduler.dispatch()
        self.broker.store.flush()
        name = "rocketbroker_follower_behind_bytes"
        end = self.broker.store.published_position
        self.assertEqual(self.value(name, follower="recorder"), end)
        self.broker.storage.log_subscribers.start()
        self.assertEqual(self.value(name, follower="recorder"), end)
        self.assertEqual(self.value("rocketbroker_follower_failures_total"), 1)
        self.flushLoggedErrors(ValueError)
        self.clock.advance(1)
        self.assertEqual(self.value(name, follower="recorder"), 0)
        self.assertEqual(self.value("rocketbroker_follower_lost_bytes_total"), 0)

    def test_switches(self) -> None:
        """Each group of families can be switched off."""
        for key, name in (
            ("enableStatsMetrics", "rocketmq_topic_number"),
            ("enableRequestMetrics", "rocketmq_messages_in_total"),
            ("enableMessageStoreMetrics", "rocketmq_storage_flush_behind_bytes"),
            ("enableConnectionMetrics", "rocketmq_consumer_connections"),
            ("enableLagAndDlqMetrics", "rocketmq_consumer_lag_messages"),
        ):
            self.begin()
            self.send(1)
            self.consumer()
            self.assertEqual(len(self.samples(name)), 1, name)
            self.begin(**{key: "false"})
            self.send(1)
            self.consumer()
            self.assertEqual(self.samples(name), [])

    def test_latencies(self) -> None:
        """Latencies of requests by the names of their codes."""
        self.broker.main.answered(RequestCode.HEART_BEAT, 0, 0.002)
        self.broker.main.answered(4711, 17, 5.0)
        found = {
            (s.labels["request_code"], s.labels["response_code"]): s.value
            for s in self.samples("rocketmq_rpc_latency_milliseconds_sum")
        }
        self.assertEqual(
            found, {("heart_beat", "success"): 2, ("4711", "topic_not_exist"): 5000}
        )

    def test_oneFamilyPerName(self) -> None:
        """No name occurs in two families, whatever has happened."""
        dice = random.Random(1)
        for _ in range(5):
            self.send(dice.randrange(1, 3000))
        self.consumer()
        names = [family.name for family in self.scrape()]
        self.assertEqual(len(names), len(set(names)))

    def test_delays(self) -> None:
        """Delayed messages: those that wait by level, and what became of the others. A
        delivery counts as handed out to a group of the system, and as come in where
        the message belongs."""
        self.clock.advance(1)
        self.broker.schedule.service.start()
        self.send(10, i="DELAY\x011\x02")
        self.send(10, i="DELAY\x012\x02")
        self.broker.storage.scheduler.dispatch()
        waiting = "rocketbroker_delayed_messages"
        self.assertEqual(self.value(waiting, delay_level="1"), 1)
        self.clock.pump([0.1] * 12)
        self.broker.storage.scheduler.dispatch()
        self.assertEqual(self.value(waiting, delay_level="1"), 0)
        self.assertEqual(self.value(waiting, delay_level="2"), 1)
        self.assertEqual(self.value("rocketbroker_delayed_delivered_total"), 1)
        for cause in ("lost", "unreadable", "refused", "retries"):
            self.assertEqual(self.value(f"rocketbroker_delayed_{cause}_total"), 0)
        labels = {"topic": "SCHEDULE_TOPIC_XXXX", "is_system": "true"}
        came = "rocketmq_messages_in_total"
        self.assertEqual(self.value(came, message_type="delay", **labels), 2)
        self.assertEqual(self.value(came, message_type="delay", topic="T"), 1)
        labels["consumer_group"] = "SCHEDULE_CONSUMER"
        self.assertEqual(self.value("rocketmq_messages_out_total", **labels), 1)

    def test_retries(self) -> None:
        """What a group gives back, and what it gives up."""
        self.send(10)
        fields = {"offset": "0", "group": "G", "delayLevel": "-1"}
        self.ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields)
        labels = {"consumer_group": "G", "topic": "T"}
        self.assertEqual(
            self.value("rocketbroker_sent_back_messages_total", **labels), 1
        )
        self.assertEqual(self.value("rocketmq_send_to_dlq_messages_total", **labels), 1)

    def test_bound(self) -> None:
        """Beyond rocketbrokerMaxMetricSamples series of topics, groups and queues are
        left out, those of sizes first, and counted; totals are there."""
        left_out = "rocketbroker_metric_samples_left_out"
        # Of 25 samples two are for each of the eight revive queues.
        for most, missing in ((100_000, 0), (25, 9), (9, 25), (8, 26)):
            self.begin(rocketbrokerMaxMetricSamples=str(most))
            self.send(10)
            self.broker.storage.scheduler.dispatch()
            self.consumer()
            self.assertEqual(self.value(left_out), missing)
            self.assertEqual(self.value("rocketmq_consumer_lag_messages"), 1)
            self.assertEqual(self.value("rocketmq_consumer_group_number"), 8)

    def test_delaysNotCounted(self) -> None:
        """With enableScheduleMessageStats off a delivery counts for nobody."""
        self.begin(enableScheduleMessageStats="false")
        self.broker.schedule.service.start()
        self.send(10, i="DELAY\x011\x02")
        self.broker.storage.scheduler.dispatch()
        self.clock.pump([0.1] * 12)
        self.assertEqual(self.value("rocketbroker_delayed_delivered_total"), 1)
        self.assertEqual(self.samples("rocketmq_messages_out_total"), [])
        self.assertEqual(len(self.samples("rocketmq_messages_in_total")), 1)
