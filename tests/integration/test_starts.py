"""How servers are started, and what they say and do then."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.bodies.routes import BrokerData, ClusterInfo, TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from scripts.lab.servers import (
    STOP_SECONDS,
    ask,
    environment,
    free_base,
    is_there,
    workers_of,
)

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command")

#: This machine for itself, whatever address the brokers register.
HERE = "127.0.0.1"

#: Starts the words behind it, and waits for them: the parent of a server.
PARENT = "import subprocess, sys; subprocess.run(sys.argv[1:])"


#: What a broker with the settings of a new installation imports with the first request,
#: setting or message that needs it, with what of these a start needs all the same.
LATE = {
    "lz4": (),
    "rocketbroker.app.testing": (),
    "rocketbroker.broker.admin": ("codes",),
    "rocketbroker.broker.acting": ("group_roles", "ha_exchange"),
    "rocketbroker.broker.pop": ("need",),
    "rocketbroker.filtering.sql": (),
    "rocketbroker.metrics": (),
    "rocketbroker.workers": (),
    "twisted.web": (),
    "zstandard": (),
}


class StartTests(SynchronousTestCase):
    """The verbs that start servers."""

    def setUp(self) -> None:
        """A folder for stores."""
        folder = tempfile.TemporaryDirectory(prefix="rocketbroker-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.log = self.folder / "log"

    def launch(
        self, line: str, *before: str
    ) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        """Start a server; its process and the ready line."""
        own = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        with open(self.log, "a") as log:
            process = subprocess.Popen(
                [*before, *COMMAND, *line.split(), "--output", "json"],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**environment(), **own},
                text=True,
            )
        self.addCleanup(self.stop, process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    def stop(self, process: subprocess.Popen[str]) -> None:
        """End it."""
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=STOP_SECONDS)

    def imported(self) -> set[str]:
        """What a server with PYTHONPROFILEIMPORTTIME has imported so far."""
        lines = self.log.read_text().splitlines()
        return {
            line.rpartition("|")[2].strip()
            for line in lines
            if line.startswith("import time:")
        }

    def test_startImportsNoRoomThatNobodyHasAskedFor(self) -> None:
        """A room of administration comes with its first request."""
        _, ready = self.launch(
            f"standalone --dir {self.folder}/store --namesrv-port 0 --port 0 "
            "--metrics-port off",
            "env",
            "PYTHONPROFILEIMPORTTIME=1",
        )
        found = self.imported()
        self.assertIn("rocketbroker.broker.broker", found)
        early = {
            f"{package}.{module}" for package, some in LATE.items() for module in some
        }
        late = [
            name
            for name in sorted(found - early)
            for package, some in LATE.items()
            if name.startswith(f"{package}.") or (name == package and not some)
        ]
        self.assertEqual(late, [])
        (broker,) = ready["brokers"]
        port = int(broker["address"].rpartition(":")[2])
        answer = ask(port, Command(RequestCode.GET_BROKER_RUNTIME_INFO, {}), HERE)
        self.assertEqual(answer.code, 0)
        self.assertIn("rocketbroker.broker.admin.runtime_info", self.imported())

    def test_serversRunInTheForegroundWithoutTwistd(self) -> None:
        """A name server and a broker say where they are, with topic and metrics."""
        base = free_base()
        names, ready = self.launch(
            f"namesrv run --set listenPort={base} --metrics-port off"
        )
        address = f"127.0.0.1:{base}"
        self.assertEqual(
            ready,
            {
                "event": "ready",
                "namesrv": address,
                "brokers": [],
                "metrics": None,
                "grpc": None,
                "store": None,
                "pid": names.pid,
            },
        )
        store = self.folder / "own"
        broker, ready = self.launch(
            f"broker run -n {address} --set listenPort={base + 4} --advertise 127.0.0.1"
            f" --set brokerName=b --set storePathRootDir={store} --metrics-port 0"
            " --topic orders:3"
        )
        metrics = ready.pop("metrics")
        self.assertEqual(
            ready,
            {
                "event": "ready",
                "namesrv": address,
                "brokers": [{"name": "b", "id": 0, "address": f"127.0.0.1:{base + 4}"}],
                "grpc": None,
                "store": str(store),
                "pid": broker.pid,
            },
        )
        with urllib.request.urlopen(f"http://{metrics}/healthz/ready") as page:
            self.assertEqual(page.status, 200)
        answer = ask(
            base, Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "orders"})
        )
        (queues,) = TopicRouteData.from_json(loads(answer.body)).queue_datas
        self.assertEqual(queues.write_queue_nums, 3)
        for process in (broker, names):
            process.terminate()
            self.assertEqual(process.wait(STOP_SECONDS), 0)

    def test_copiedFileJoinsNoOtherNameServersUnlessTold(self) -> None:
        """Without --join the broker has its own; what it left, killed, goes then."""
        base = free_base()
        address = f"127.0.0.1:{base}"
        self.launch(f"namesrv run --set listenPort={base} --metrics-port off")
        file = self.folder / "production.conf"
        file.write_text(f"namesrvAddr={address}\nbrokerName=copy\n")
        line = f"standalone -c {file} --temporary --port 0 --metrics-port off"
        alone, ready = self.launch(f"{line} --namesrv-port 0")
        left = Path(ready["store"])
        self.assertNotEqual(ready["namesrv"], address)
        self.assertEqual(list(self.cluster(base)), [])
        self.assertIn(
            f"This broker does not join the name servers {address} (namesrvAddr)",
            self.log.read_text(),
        )
        alone.kill()
        alone.wait()
        self.assertTrue((left / "abort").exists())
        joined, ready = self.launch(f"{line} --join")
        self.assertEqual(ready["namesrv"], address)
        self.assertEqual(list(self.cluster(base)), ["copy"])
        self.assertFalse(left.exists())
        self.assertTrue(Path(ready["store"]).exists())
        joined.terminate()
        self.assertEqual(joined.wait(STOP_SECONDS), 0)
        self.assertFalse(Path(ready["store"]).exists())

    def cluster(self, port: int) -> dict[str, BrokerData]:
        """The brokers that a name server knows, by name."""
        answer = ask(port, Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        return ClusterInfo.from_json(loads(answer.body)).broker_addr_table

    def test_allEndCleanlyWhenTheParentIsKilled(self) -> None:
        """Broker, worker and slave are gone, and the stores were closed."""
        store = self.folder / "store"
        parent, ready = self.launch(
            f"standalone --dir {store} --namesrv-port 0 --port 0 --metrics-port off"
            " --replicas 2 --set workers=1 --exit-with-parent",
            *(sys.executable, "-c", PARENT),
        )
        server = ready["pid"]
        self.assertNotEqual(server, parent.pid)
        self.assertEqual([each["id"] for each in ready["brokers"]], [0, 1])
        port = int(ready["namesrv"].rpartition(":")[2])
        told = {each["id"]: each["address"] for each in ready["brokers"]}
        self.assertEqual({each.rpartition(":")[0] for each in told.values()}, {HERE})
        (group,) = self.cluster(port).values()
        self.assertEqual(group.broker_addrs, told)
        slaves = children_of(server)
        processes = [server, *workers_of(server), *slaves]
        self.assertEqual(len(workers_of(server)), 1)
        parent.send_signal(signal.SIGKILL)
        end = time.monotonic() + STOP_SECONDS
        while any(map(is_there, processes)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual([each for each in processes if is_there(each)], [])
        for root in (store, store / "replica-1"):
            self.assertTrue((root / "checkpoint").exists())
            self.assertFalse((root / "abort").exists())


def children_of(process: int) -> list[int]:
    """The processes that it has started."""
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(word) for word in path.read_text().split()]
