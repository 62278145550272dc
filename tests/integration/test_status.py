"""What `mqadmin brokerStatus` prints of our broker and of the Java broker."""

from __future__ import annotations

import re
import signal
import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from scripts.lab.javabroker import JavaBroker
from scripts.lab.javaclient import QUICK, build, why_not
from scripts.lab.servers import Cluster, free_base

#: The client whose tool is used, and the broker that it goes with.
BROKERS = {"5.3.3": "5.3.3", "4.9.8": "4.9.7"}

#: So often the tool is called: in its first second, before it has sampled anything, the
#: Java broker answers with a NoSuchElementException.
MAX_TRIES = 5


def status(version: str, address: str, folder: Path) -> dict[str, str]:
    """What the tool of that version prints of a broker, by key."""
    quiet = folder / "conf" / "logback_tools.xml"
    quiet.parent.mkdir(exist_ok=True)
    quiet.write_text('<configuration><root level="OFF"/></configuration>')
    command = [
        "java",
        *QUICK,
        "-Xmx256m",
        f"-Duser.home={folder}",
        f"-Drocketmq.home.dir={folder}",
        f"-Dlogback.configurationFile={quiet}",
        f"-Drmq.logback.configurationFile={quiet}",
        "-cp",
        build(version),
        "org.apache.rocketmq.tools.command.MQAdminStartup",
        "brokerStatus",
        "-b",
        address,
    ]
    output = ""
    for _ in range(MAX_TRIES):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        found = {}
        for line in done.stdout.splitlines():
            key, colon, value = line.partition(": ")
            if colon:
                found[key.strip()] = value
        if "runtime" in found:
            return found
        output = done.stdout + done.stderr
    raise AssertionError(output)


def shape(key: str, value: str) -> str:
    """A value without what differs from broker to broker and from hour to hour."""
    if key.endswith("Tps") and " " in value:
        # Of ten seconds or a minute there is a rate only when they are over.
        return re.sub(r"\d+\.\d+", "", value)
    if key == "putMessageDistributeTime":
        # Likewise; its form has a test of its own.
        return key
    value = re.sub(r"\d+\.\d+", "1.0", value)
    value = re.sub(r"-?\b\d+\b(?!\.)", "1", value)
    return re.sub(r"1(\.0)? [KMGT]?i?B\b", "1 B", value)


class StatusTests(SynchronousTestCase):
    """No key of RocketMQ is missing, and each value has its form."""

    def compare(self, version: str) -> None:
        """Both brokers, young and without messages, by the tool of one version."""
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        cluster.start()
        port = free_base()
        folder = Path(tempfile.mkdtemp(dir=cluster.folder)) / "java"
        store = folder / "store"
        java = JavaBroker(
            BROKERS[version],
            folder,
            {
                "brokerIP1": "127.0.0.1",
                "listenPort": port + 10,
                "haListenPort": port + 11,
                "storePathRootDir": store,
                "storePathCommitLog": store / "commitlog",
            },
        )
        self.addCleanup(java.stop, signal.SIGKILL)
        java.start()
        wanted = status(version, f"127.0.0.1:{port + 10}", cluster.folder)
        found = status(version, cluster.address, cluster.folder)
        ours = str(cluster.store)
        found = {key.replace(ours, str(store)): text for key, text in found.items()}
        self.assertEqual(sorted(set(wanted) - set(found)), [])
        other = {
            key: (text, found[key])
            for key, text in wanted.items()
            if key != "brokerVersionDesc" and shape(key, text) != shape(key, found[key])
        }
        self.assertEqual(other, {})

    def test_5(self) -> None:
        """As 5.3.3 says it."""
        self.compare("5.3.3")

    def test_4(self) -> None:
        """As 4.9.7 says it."""
        self.compare("4.9.8")
