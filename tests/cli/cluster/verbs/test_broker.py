"""C{rocketbroker broker} and C{rocketbroker cluster}."""

from __future__ import annotations

from functools import partial
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.storage.store_scheduler import FINDINGS
from rocketbroker.cli.cluster.requests.brokers import (
    is_before_5,
    parse_properties,
    rate,
    summary,
    used_percent,
)
from rocketbroker.files.own_version import own_version
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.bodies.replicas import (
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
)
from rocketbroker.wire.bodies.routes import BrokerData, ClusterInfo
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import dumps
from tests.cli.cluster.cluster import BROKER, VerbCase, refusal


class InfoTests(SynchronousTestCase):
    """What stands in the runtime info."""

    def test_java(self) -> None:
        """Figures of RocketMQ 5.3.3, and of 4.9 with its one r less."""
        info = {
            "brokerVersionDesc": "V5_3_3",
            "putTps": "1.25 2 3",
            "getTransferedTps": "4.0 5 6",
            "msgPutTotalTodayNow": "18",
            "msgPutTotalTodayMorning": "8",
            "commitLogMinOffset": "10",
            "commitLogMaxOffset": "1034",
            "commitLogDiskRatio": "0.18",
            "commitLogDiskRatio_/a": "0.5",
            "bootTimestamp": "5",
        }
        found = summary(info)
        self.assertEqual((found["in"], found["out"]), (1.2, 4.0))
        self.assertEqual((found["in_today"], found["out_today"]), (10, None))
        self.assertEqual((str(found["log"]), found["disk_percent"]), ("1.0 KiB", 50))

    def test_missing(self) -> None:
        """What is missing or makes no sense is not shown."""
        self.assertIsNone(rate({"a": "", "b": "x"}, "a", "b"))
        self.assertIsNone(used_percent({"commitLogDiskRatio": "-1.0"}))
        self.assertEqual(set(summary({}).values()), {None, 0})

    def test_versions(self) -> None:
        """Before 5.0 or not; an unknown one is not."""
        self.assertTrue(is_before_5({"brokerVersionDesc": "V4_9_7"}))
        self.assertFalse(is_before_5({"brokerVersionDesc": "V5_0_0"}))
        self.assertFalse(is_before_5({}))

    def test_properties(self) -> None:
        """Lines of names and values, which may hold an equals sign."""
        found = parse_properties("a=b=c\n\nnothing\nd = e\n")
        self.assertEqual(found, {"a": "b=c", "d": "e"})


class BrokerTests(VerbCase):
    """Against a broker in memory."""

    def test_cluster(self) -> None:
        """A row for each broker; a cluster that is not there is 3."""
        self.cluster.rig.topic("T", 1)
        self.cluster.rig.append(b"x")
        (row,) = self.kind("broker", "cluster", "ls", "cluster-a")
        self.assertEqual(
            (row["broker"], row["id"], row["address"]), ("broker-a", 0, BROKER)
        )
        self.assertGreater(row["log"], 90)
        self.call("cluster", "ls", "X", status=3)

    def test_unreachable(self) -> None:
        """A broker that does not answer has a row all the same, and the status is 1."""
        del self.cluster.machine.servers[BROKER]
        (row,) = self.rows("cluster", "ls", status=1)
        self.assertEqual((row["broker"], row["version"]), ("broker-a", None))

    def test_status(self) -> None:
        """What people want to know, or all that there is."""
        (row,) = self.kind("broker", "broker", "status", "broker-a")
        self.assertEqual((row["address"], row["failed_sends"]), (BROKER, 0))
        values = self.kind("value", "broker", "status", BROKER, "--all")
        names = [row["name"] for row in values]
        self.assertEqual(names, sorted(names))
        self.assertIn("brokerVersionDesc", names)
        for words in (("broker", "status", "broker-a"), ("cluster", "ls")):
            (row,) = self.kind("broker", *words)
            self.assertEqual(row["rocketbroker"], own_version(), words)
        self.call("broker", "status", "X", status=3)

    def test_settings(self) -> None:
        """Those whose names match, whatever the case."""
        rows = self.kind("setting", "broker", "settings", "broker-a", "FLUSHdisk*")
        self.assertEqual(rows, [{"name": "flushDiskType", "value": "ASYNC_FLUSH"}])
        self.call("broker", "settings", "broker-a", "nothing", status=3)


class ReplicasTests(VerbCase):
    """A master, its slave, and one of before 5.0 that does not say."""

    def setUp(self) -> None:
        """Three brokers, of which two answer 907."""
        super().setUp()
        table = {
            name: BrokerData(cluster=cluster, broker_name=name, broker_addrs=addresses)
            for cluster, name, addresses in (
                ("cluster-a", "b", {0: "b:1", 1: "b:2"}),
                ("cluster-b", "old", {0: "old:1"}),
            )
        }
        clusters = {"cluster-a": ["b"], "cluster-b": ["old"]}
        body = dumps(ClusterInfo(broker_addr_table=table, cluster_addr_table=clusters))
        self.cluster.faults[106] = lambda command: answer(body=body)
        now = self.cluster.machine.wall_ms()
        slave = HAConnectionRuntimeInfo(
            addr="s:5",
            slave_ack_offset=900,
            diff=100,
            in_sync=True,
            transfer_from_where=950,
            caught_up_timestamp=now - 1500,
        )
        self.infos = {
            "b:1": HARuntimeInfo(
                master=True,
                master_commit_log_max_offset=1000,
                in_sync_slave_nums=1,
                ha_connection_info=[
                    slave,
                    HAConnectionRuntimeInfo(addr="new:6", slave_ack_offset=-1),
                ],
            ),
            "b:2": HARuntimeInfo(
                ha_client_runtime_info=HAClientRuntimeInfo(
                    master_addr="b:9", max_offset=900, state="TRANSFER", problem=""
                )
            ),
        }
        self.requests: list[tuple[str, Command]] = []
        for address in ("b:1", "b:2", "old:1"):
            self.cluster.machine.servers[address] = partial(self.serve, address)

    def serve(self, address: str, command: Command) -> Command:
        """One of the brokers."""
        self.requests.append((address, command))
        if command.code == 26:
            return answer(body=b"brokerRole=SYNC_MASTER")
        if command.code == 908:
            return answer()
        if address not in self.infos:
            return answer(3, remark="not supported")
        return answer(body=dumps(self.infos[address]))

    def test_masters(self) -> None:
        """Where their logs end; nothing where they do not say."""
        rows = self.kind("master", "broker", "replicas")
        self.assertEqual(
            [(row["broker"], row["role"], row["end"], row["slaves"]) for row in rows],
            [("b", "SYNC_MASTER", 1000, 2), ("old", "SYNC_MASTER", None, None)],
        )
        (row,) = self.kind("master", "broker", "replicas", "--cluster", "cluster-b")
        self.assertEqual(row["broker"], "old")

    def test_secretive(self) -> None:
        """One that tells only who has a secret is shown, with nothing of it."""
        serve = self.cluster.machine.servers["b:1"]

        def refuse(command: Command) -> Any:
            return answer(16, remark="no") if command.code == 907 else serve(command)

        self.cluster.machine.servers["b:1"] = refuse
        rows = self.kind("master", "broker", "replicas", "--cluster", "cluster-a")
        found = [(row["broker"], row["role"], row["end"]) for row in rows]
        self.assertEqual(found, [("b", "SYNC_MASTER", None)])

    def test_slavesOfMaster(self) -> None:
        """How far each is behind, in bytes and in time; one has not reported yet."""
        first, second = self.kind("slave", "broker", "replicas", "b")
        self.assertEqual((first["acked"], first["behind"]), (900, 100))
        self.assertGreaterEqual(first["lag"], 1500)
        self.assertLess(first["lag"], 3000)
        self.assertTrue(first["in_sync"])
        self.assertEqual((second["acked"], second["behind"]), (None, None))

    def test_slave(self) -> None:
        """Whom it follows, and its link's state."""
        (row,) = self.kind("broker", "broker", "replicas", "b")
        self.assertEqual((row["id"], row["master"], row["end"]), (1, "b:9", 900))
        self.assertEqual((row["state"], row["problem"]), ("TRANSFER", ""))
        self.call("broker", "replicas", "X", status=3)

    def test_reset(self) -> None:
        """A slave is told; a master, for which it means nothing, is not."""
        words = "broker", "reset-master-flush-offset"
        (row,) = self.kind("change", *words, "b:2", "77", "--yes")
        self.assertEqual((row["address"], row["master_flush_offset"]), ("b:2", 77))
        address, command = self.requests[-1]
        self.assertEqual((address, command.ext), ("b:2", {"masterFlushOffset": "77"}))
        result = self.call(*words, "b", "77", "--yes", status=2)
        self.assertIn("b at b:1 is a master: give a slave", result.stderr)

    def test_mqadmin(self) -> None:
        """By mqadmin's names, too."""
        result = self.call("mqadmin", "haStatus", "-b", "b:2")
        self.assertIn("= rocketbroker broker replicas b:2", result.stderr)
        self.assertIn("TRANSFER", result.stdout)
        self.call("mqadmin", "resetMasterFlushOffset", "-b", "b:2", "-o", "5")
        self.assertEqual(self.requests[-1][1].ext, {"masterFlushOffset": "5"})


class SetTests(VerbCase):
    """Settings of a broker that takes one of two changes."""

    def setUp(self) -> None:
        """It has two settings."""
        super().setUp()
        self.settings = {"a": "1", "b": "2"}
        self.bodies: list[bytes] = []

        def change(command: Command) -> Command:
            self.bodies.append(command.body)
            self.settings |= {
                name: value
                for name, value in parse_properties(command.body.decode()).items()
                if name == "a"
            }
            return answer()

        def show(command: Command) -> Command:
            lines = (f"{name}={value}\n" for name, value in self.settings.items())
            return answer(body="".join(lines).encode())

        self.cluster.faults |= {25: change, 26: show}

    def test_set(self) -> None:
        """What is taken is shown with what it was."""
        (row,) = self.kind("setting", "broker", "set", "broker-a", "a=5", "--yes")
        wanted = {"name": "a", "before": "1", "after": "5", "outcome": "changed"}
        self.assertEqual(row, wanted)
        self.assertEqual(self.bodies, [b"a=5\n"])

    def test_notTaken(self) -> None:
        """What the broker ignores is told."""
        rows = self.rows("broker", "set", "broker-a", "a=5", "b=5", "--yes", status=1)
        self.assertEqual([row["outcome"] for row in rows], ["changed", "not taken"])

    def test_notSent(self) -> None:
        """A dry run, no yes, and unknown settings change nothing."""
        (row,) = self.kind("setting", "broker", "set", "broker-a", "a=5", "--dry-run")
        self.assertEqual((row["after"], row["outcome"]), ("5", "to be changed"))
        result = self.call("broker", "set", "broker-a", "a=5", status=2)
        self.assertIn("Change on broker-a a from 1 to 5?", result.stderr)
        result = self.call("broker", "set", "broker-a", "c=5", "--yes", status=3)
        self.assertIn("broker-a has no setting c. rocketbroker", result.stderr)
        result = self.call("broker", "set", "broker-a", "A=5", "--yes", status=3)
        self.assertIn("has no setting A. Did you mean a? rocketbroker", result.stderr)
        self.call("broker", "set", "broker-a", "c", "--yes", status=2)
        self.assertEqual(self.bodies, [])

    def test_refused(self) -> None:
        """A refusal is told as it is."""
        self.cluster.faults[25] = refusal(16, "Can not update config in black list.")
        result = self.call("broker", "set", "broker-a", "a=5", "--yes", status=1)
        self.assertIn("black list", result.stderr)

    def test_services(self) -> None:
        """What runs again and again, once it has begun."""
        broker = self.cluster.rig.broker
        broker.services.begin(FINDINGS, lambda: None)
        self.cluster.rig.clock.advance(1)
        rows = self.kind("service", "broker", "services", BROKER)
        found = {row["service"]: row["runs"] for row in rows}
        self.assertEqual(found["report of findings"], 1)
        self.assertEqual(found["registration with name servers"], 0)
        broker.services.stop()

    def test_clean(self) -> None:
        """What is to be removed has to be said, and confirmed."""
        self.call("broker", "clean", BROKER, status=2)
        self.call("broker", "clean", BROKER, "--log", status=2)
        rows = self.rows(
            "broker", "clean", BROKER, "--log", "--queues", "--topics", "--yes"
        )
        self.assertEqual([row["what"] for row in rows], ["log", "queues", "topics"])
