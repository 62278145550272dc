"""C{rocketbroker doctor}."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import attrs

from rocketbroker.cli.cluster.cluster import Broker
from rocketbroker.cli.cluster.doctor.access_checks import NO_ACCOUNT, NO_TLS
from rocketbroker.cli.cluster.doctor.cluster_checks import (
    of_differences,
    of_settings,
    of_state,
)
from rocketbroker.cli.cluster.doctor.finding import Finding
from rocketbroker.cli.cluster.doctor.machine_checks import of_disk
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.running_flags import DISK_FULL
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.cli.cluster.cluster import BROKER, NAME_SERVER, VerbCase, refusal


class ClusterTests(VerbCase):
    """A name server and a broker in memory."""

    def findings(self, *words: str, status: int = 0) -> dict[str, list[str]]:
        """What is found, by status; what L{tests.cli.cluster.doctor.test_access_checks}
        is about is left out."""
        found: dict[str, list[str]] = {}
        for row in self.rows("doctor", *words, status=status):
            if row["of"] == "access":
                continue
            found.setdefault(row["status"], []).append(f"{row['of']}: {row['found']}")
        return found

    def test_well(self) -> None:
        """Nothing is wrong; all that was looked at is shown."""
        found = self.findings()
        self.assertEqual(set(found), {"ok"})
        self.assertEqual(len(found["ok"]), 2, found)
        self.assertIn(f"name server {NAME_SERVER}: knows 1 brokers", found["ok"])

    def test_open(self) -> None:
        """A broker and a name server that take whoever comes are warnings."""
        found = [
            (row["status"], row["found"])
            for row in self.rows("doctor")
            if row["of"] == "access"
        ]
        both = f"name server {NAME_SERVER}, broker-a {BROKER}"
        wanted = [
            ("warning", f"{both}: {NO_TLS}"),
            ("warning", f"broker-a {BROKER}: {NO_ACCOUNT}"),
        ]
        self.assertEqual(found, wanted)
        self.cluster.faults[RequestCode.GET_BROKER_RUNTIME_INFO] = refusal(16, "no")
        texts = [row["found"] for row in self.rows("doctor", status=1)]
        self.assertIn(f"{both}: {NO_TLS}", texts)
        self.assertNotIn(f"broker-a {BROKER}: {NO_ACCOUNT}", texts)

    def test_nameServers(self) -> None:
        """One that is gone is a problem, and so is one that knows less."""
        empty = b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
        self.cluster.machine.servers["other:1"] = lambda command: answer(0, body=empty)
        servers = f"{NAME_SERVER};other:1;gone:1"
        (less, gone) = sorted(self.findings("-n", servers, status=1)["problem"])[::-1]
        self.assertIn("name server other:1: does not know", less)
        self.assertIn(BROKER, less)
        self.assertIn("name server gone:1: ", gone)

    def test_nobody(self) -> None:
        """Without brokers, or without name servers, that is what is wrong."""
        empty = b'{"brokerAddrTable":{},"clusterAddrTable":{}}'
        self.cluster.faults[RequestCode.GET_BROKER_CLUSTER_INFO] = lambda command: (
            answer(0, body=empty)
        )
        (problem,) = self.findings(status=1)["problem"]
        self.assertIn("They know no broker", problem)
        (problem,) = self.findings("-n", "gone:1", status=1)["problem"]
        self.assertIn("Is the name server running there?", problem)

    def test_broker(self) -> None:
        """A broker that does not answer is a problem, with the advice."""
        self.cluster.faults[RequestCode.GET_BROKER_RUNTIME_INFO] = refusal(1, "broken")
        (problem,) = self.findings(status=1)["problem"]
        self.assertTrue(problem.endswith(f"{BROKER}: broken."), problem)

    def test_loopback(self) -> None:
        """An address of the broker's own machine, told by a name server far away."""
        info = (
            b'{"brokerAddrTable":{"b":{"brokerAddrs":{0:"127.0.0.1:10911"},'
            b'"brokerName":"b","cluster":"C"}},"clusterAddrTable":{"C":["b"]}}'
        )
        servers = self.cluster.machine.servers
        servers["127.0.0.1:10911"] = servers[BROKER]
        self.cluster.faults[RequestCode.GET_BROKER_CLUSTER_INFO] = lambda command: (
            answer(0, body=info)
        )
        (problem,) = self.findings(status=1)["problem"]
        self.assertIn("set brokerIP1", problem)

    def test_fullDiskIsProblem(self) -> None:
        """As at /healthz: the broker says itself whether it stores messages."""
        reason = "the disk is full: /store: 81 % of 1.0 TiB are used"
        self.cluster.rig.store.flags.set(DISK_FULL, True, reason, "test")
        (problem,) = self.findings(status=1)["problem"]
        self.assertTrue(problem.endswith(f"it stores no messages: {reason}"), problem)
        self.cluster.rig.store.flags.set(DISK_FULL, False, by="test")
        self.assertEqual(set(self.findings()), {"ok"})

    def test_tableThatIsNotWrittenIsTold(self) -> None:
        """What is to be mended, as at /healthz."""
        rig = self.cluster.rig
        rig.topics.limit.most = 1
        (warning,) = self.findings()["warning"]
        self.assertIn("rocketbrokerMaxAutoTopics", warning)
        self.assertEqual(warning.split(": ", 1)[1], " ".join(rig.broker.problems()))

    def test_clock(self) -> None:
        """A clock that is off; a broker of RocketMQ does not tell it."""
        now = self.cluster.machine.wall_ms()

        def services(command: Command) -> Command:
            body = b'{"services":[{"lastRunTimestamp":%d}]}' % (now - 61_000)
            return answer(0, body=body)

        self.cluster.faults[RequestCode.GET_SERVICES] = services
        (problem,) = self.findings(status=1)["problem"]
        self.assertIn("its clock is -1 m 1 s off ours", problem)
        self.cluster.faults[RequestCode.GET_SERVICES] = refusal(3, "not supported")
        self.assertEqual(set(self.findings()), {"ok"})


class RulesTests(VerbCase):
    """What is found in figures and settings."""

    def words(self, settings: dict[str, str], count: int = 1) -> list[str]:
        """What is found in settings."""
        return [finding.words for finding in of_settings("b", settings, count)]

    def test_state(self) -> None:
        """Disks and what waits."""
        for ratio, status in (("0.74", None), ("0.75", "warning"), ("0.9", "problem")):
            found = list(of_state("b", {"commitLogDiskRatio": ratio}))
            self.assertEqual(
                [each.status for each in found], [status] if status else []
            )
        # A broker that says whether it stores messages knows it better: see
        # diskSpaceEnoughBytes.
        ours = {"commitLogDiskRatio": "0.95", "runningFlags": "0"}
        (finding,) = of_state("b", ours)
        self.assertEqual(finding.status, "warning")
        self.assertNotIn("refused", finding.words)
        found = list(of_state("b", {"dispatchBehindBytes": str(65 << 20)}))
        self.assertEqual(
            found,
            [
                Finding(
                    "warning",
                    "b",
                    "65.0 MiB are not in the queues yet: consumers do not see them",
                )
            ],
        )

    def test_settings(self) -> None:
        """Those that contradict or surprise."""
        for settings, words in (
            ({"brokerPermission": "4"}, "not for all clients"),
            ({"maxMessageSize": str(17 << 20)}, "longest frame"),
            ({"diskMaxUsedSpaceRatio": "90"}, "before old files are removed"),
            ({"flushDiskType": "SYNC_FLUSH"}, "syncFlushTimeout=5000"),
            ({"messageIndexEnable": "false"}, "found by its key"),
        ):
            (found,) = self.words(settings)
            self.assertIn(words, found)
        well = {"flushDiskType": "SYNC_FLUSH", "syncFlushTimeout": "3000"}
        auto = {"autoCreateTopicEnable": "true"}
        self.assertEqual(
            (self.words(well), self.words(auto), self.words({})), ([],) * 3
        )
        self.assertIn("one broker only", self.words(auto, 2)[0])

    def test_differences(self) -> None:
        """Masters of a cluster that differ; slaves and other clusters do not count."""
        found = of_differences(
            {
                Broker("C", "a", 0, "a:1"): {"maxMessageSize": "1"},
                Broker("C", "b", 0, "b:1"): {"maxMessageSize": "2"},
                Broker("C", "b", 1, "b:2"): {"maxMessageSize": "3"},
                Broker("D", "d", 0, "d:1"): {"maxMessageSize": "4"},
            }
        )
        self.assertEqual(
            list(found),
            [Finding("warning", "C", "maxMessageSize differs: 1 on a; 2 on b")],
        )


class MachineTests(VerbCase):
    """This machine, for a broker with a settings file."""

    def check(self, text: str, status: int = 0) -> str:
        """The findings for a file with that text."""
        path = Path(self.mktemp())
        path.write_text(text)
        return self.call("doctor", "--config", str(path), status=status).stdout

    def free_port(self) -> int:
        """A port that nobody has."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    def test_well(self) -> None:
        """Settings, address, ports, limits and disk are shown."""
        port, ha_port = self.free_port(), self.free_port()
        found = self.check(
            f"brokerIP1=10.1.2.3\nlistenPort={port}\nbindAddress=127.0.0.1\n"
            f"haListenPort={ha_port}\n"
            f"storePathRootDir={self.mktemp()}\nmetricsPromExporterPort=0\n"
            "namesrvAddr=10.0.0.1:9876\n"
        )
        self.assertIn(f"clients are told 10.1.2.3:{port} (brokerIP1)", found)
        for each in (port, ha_port):
            self.assertIn(f"{each} is free", found)
        self.assertIn("hard limit", found)
        self.assertIn("% full", found)

    def test_diskIsFullAsBrokerSeesIt(self) -> None:
        """By the broker's settings and arithmetic, in which blocks that are reserved
        for root are neither free nor used."""
        folder = self.mktemp()
        options = StoreOptions(store_path_root_dir=folder)
        disk = MemoryDisk(100 << 20)
        disk.open("/file", create=True).allocate(0, 80 << 20)
        place = os.path.dirname(os.path.abspath(folder))
        self.assertEqual(
            list(of_disk(options, disk)),
            [
                Finding(
                    "warning",
                    "storePathRootDir",
                    f"the disk of {place} is 80 % full",
                )
            ],
        )
        options = attrs.evolve(options, disk_space_warning_level_ratio=79)
        (finding,) = of_disk(options, disk)
        self.assertEqual(finding.status, "problem")
        self.assertIn(f"{place}: 80 % of 100.0 MiB are used", finding.words)
        options = attrs.evolve(options, disk_space_enough_bytes=1 << 20)
        options = attrs.evolve(options, mapped_file_size_commit_log=1 << 20)
        (finding,) = of_disk(options, disk)
        self.assertEqual(finding.status, "warning")

    def test_diskOfLogIsLookedAtToo(self) -> None:
        """Where it is another; one that names no directory is that of the root."""
        folder = os.path.dirname(os.path.abspath(self.mktemp()))
        for given, keys in (
            ("/", ["storePathRootDir", "storePathCommitLog"]),
            (",", ["storePathRootDir"]),
        ):
            options = StoreOptions(
                store_path_root_dir=folder, store_path_commit_log=given
            )
            found = list(of_disk(options, MemoryDisk(100 << 20)))
            self.assertEqual([each.what for each in found], keys)

    def test_wrong(self) -> None:
        """A file that refuses the start, and one with other mistakes."""
        found = self.check("listenPort=many\n", status=1)
        self.assertIn("problem", found)
        self.assertIn("listenPort", found)
        found = self.check(
            "brokerIP1=127.0.0.1\nnamesrvAddr=10.0.0.1:9876\ncolour=blue\n"
            "mapedFileSizeCommitLog=1\n"
            "bindAddress=127.0.0.1\n",
            status=1,
        )
        self.assertIn("colour is not known. Is it misspelt?", found)
        self.assertIn("Did you mean mappedFileSizeCommitLog?", found)
        self.assertIn("which only this machine reaches", found)

    def test_withoutNameServer(self) -> None:
        """Clients find a broker through a name server; the settings name one, or a
        page that does."""
        for text, status in (
            ("", 1),
            ("fetchNamesrvAddrByAddressServer=true\n", 0),
            ("namesrvAddr=127.0.0.1:9876\n", 0),
        ):
            found = self.check(f"bindAddress=127.0.0.1\n{text}", status=status)
            words = "no name server is configured, so no client will find this broker"
            self.assertEqual(words in found, bool(status))

    def test_taken(self) -> None:
        """A port that is taken."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            found = self.check(
                f"bindAddress=127.0.0.1\nlistenPort={port}\nnamesrvAddr=127.0.0.1:1\n"
            )
        self.assertIn(f"{port}: Address already in use", found)
