"""What C{rocketbroker doctor} says of proxies."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.doctor.proxy_checks import of_proxies
from rocketbroker.errors import ConfigurationError
from tests.cli.cluster.doctor.ports import Ports, message

#: What comes on one connection, and on the next, to a port of each kind.
SERVES = [[message(1)]]
DRAINS = [[message(2)]]
CLOSES = [[b""], [b""]]
OTHER = [[b"HTTP/1.1 400 Bad Request\r\n"]]


class ProxyTests(SynchronousTestCase):
    """L{of_proxies}."""

    def findings(
        self, ports: dict[str, list[list[bytes]]], *named: str
    ) -> list[tuple[str, str]]:
        """What is found: its status, and of what it is found.

        @param ports: by C{host:port}.
        """
        settings = Settings("a:9876;b:9876;a:9877", machine=Ports(ports))
        with Client(settings) as client:
            found = list(of_proxies(Cluster(client), named))
        self.words = [each.words for each in found]
        return [(each.status, each.what) for each in found]

    def test_usualPortIsLookedAtOnEachHost(self) -> None:
        """What is not there, or is no proxy, is not told."""
        self.assertEqual(self.findings({}), [])
        self.assertEqual(self.findings({"a:8081": OTHER, "b:8081": [[]]}), [])
        self.assertEqual(
            self.findings({"a:8081": SERVES, "b:8081": DRAINS}),
            [("ok", "proxy a:8081"), ("warning", "proxy b:8081")],
        )

    def test_namedProxyThatDoesNotServeIsAProblem(self) -> None:
        """And only those that are named are looked at."""
        ports = {"a:8081": SERVES, "c:1": SERVES, "d:1": OTHER}
        self.assertEqual(
            self.findings(ports, "c:1", "d:1", "e:1"),
            [("ok", "proxy c:1"), ("problem", "proxy d:1"), ("problem", "proxy e:1")],
        )
        self.assertIn("does not speak gRPC", self.words[1])
        self.assertIn("cannot connect to e:1", self.words[2])

    def test_closedConnectionsSayWhatToInstall(self) -> None:
        """Of a port that nobody has named it is a warning."""
        for named, status in (((), "warning"), (("a:8081",), "problem")):
            self.assertEqual(self.findings({"a:8081": CLOSES}, *named)[0][0], status)
            self.assertIn("pip install 'rocketbroker[grpc]'", self.words[0])

    def test_whatIsNoAddressIsRefused(self) -> None:
        """In a sentence."""
        self.assertRaises(ConfigurationError, self.findings, {}, "nothing")
