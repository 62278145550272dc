"""Push consumers whose listeners are slow, through our proxy: messages come once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any, Final

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.grpcjava import java_client
from scripts.lab.javaclient import body_of
from scripts.lab.proxyserver import ProxyServer
from scripts.lab.servers import Cluster, environment
from tests.heavy import HEAVY
from tests.integration.typed_topics import prepare

#: How long a listener takes, in seconds, and for how long nothing may come after that:
#: until the end of the time for which the proxy has asked last. In the small form the
#: first invisible time is over in between.
SLOW: Final = 300 if HEAVY else 8
AFTER: Final = 300 if HEAVY else 2

#: Settings of the proxy: in the large form it has its defaults.
SETTINGS: Final[dict[str, int]] = (
    {}
    if HEAVY
    else {
        "defaultInvisibleTimeMills": 4000,
        "renewAheadTimeMillis": 2000,
        "renewSchedulePeriodMillis": 500,
    }
)


class SlowListenerTests(SynchronousTestCase):
    """Invisible times are renewed, and the acknowledgement comes in time."""

    timeout = SLOW + AFTER + 180

    def setUp(self) -> None:
        """Servers."""
        cluster = Cluster()
        self.addCleanup(cluster.stop)
        cluster.start()
        self.folder = cluster.folder
        for topic in ("T_python", "T_java"):
            prepare(cluster.broker.port, topic, "NORMAL", False)
        proxy = ProxyServer(cluster.names, cluster.folder, **SETTINGS)
        self.addCleanup(proxy.stop, signal.SIGKILL)
        proxy.start()
        self.address = proxy.address

    def python(self) -> subprocess.Popen[str]:
        """The scenario of the client for Python."""
        return subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-m", "scripts.lab.official_python"),
                *(self.address, "slow", "T_python", str(SLOW), str(AFTER)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment(), "HOME": str(self.folder)},
        )

    def test_messagesComeOnce(self) -> None:
        """At the clients for Python and for Java, which do so at the same time."""
        python = self.python()
        self.addCleanup(python.wait)
        self.addCleanup(python.kill)
        java = java_client(self.address, self.folder)
        self.addCleanup(java.stop)
        java("push", name="c", group="G_T_java", topic="T_java", slowMs=SLOW * 1000)
        java("producer", name="p", topic="T_java")
        sent = [b"0", b"1", b"2"]
        for body in sent:
            java.send("p", "T_java", body)
        time.sleep(SLOW + AFTER)
        found: list[Any] = java.received("c", len(sent), 60)
        self.assertEqual(sorted(map(body_of, found)), sent)
        output, errors = python.communicate(timeout=120)
        self.assertEqual(output, "passed\n", errors[-3000:])
