"""A real Prometheus scrapes servers of each kind."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import grpc
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.app.certificates import self_signed
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.proxy.service import SERVICE
from rocketbroker.threads import connect
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode
from scripts.lab.servers import Cluster, environment, free_base
from tests.broker.rig import heartbeat
from tests.integration.javacase import until
from tests.missing import needs
from tests.remoting.certificates import client_context

ETC = Path(__file__).resolve().parent.parent.parent / "etc"

#: Parts of the names of metrics of which there is none while nothing fails.
QUIET = ("dlq", "sent_back", "half_messages", "broker_slave_", "broker_master_")

#: Alerts that may be near here: the group has gone, and a machine's disk may be full.
EXPECTED = ("RocketbrokerGroupGone", "RocketbrokerDiskAlmostFull")

CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ['{etc}/prometheus/rocketbroker.rules.yml']
scrape_configs:
  - job_name: rocketbroker
    static_configs:
      - targets: ['127.0.0.1:{broker}', '127.0.0.1:{namesrv}', '{proxy}']
"""


class ScrapedCase(SynchronousTestCase):
    """A cluster with a proxy, and a Prometheus that knows them."""

    def scrape(
        self, cluster: Cluster, text: str, *proxys: str, folder: Path | None = None
    ) -> None:
        """Start them.

        @param text: Prometheus's settings, for the ports.
        @param proxys: settings of the proxy.
        @param folder: has a certificate and a token.
        """
        program = shutil.which("prometheus")
        if program is None:
            raise SkipTest("needs Prometheus; no program of that name was found")
        self.addCleanup(cluster.stop)
        self.cluster = cluster.start()
        self.proxy = self.started_proxy(cluster, *proxys)
        text = text.format(
            broker=cluster.broker_metrics,
            namesrv=cluster.namesrv_metrics,
            proxy=self.proxy["metrics"],
            etc=ETC,
            folder=folder,
        )
        (cluster.folder / "prometheus.yml").write_text(text)
        self.port = free_base()
        log = open(cluster.folder / "prometheus.log", "wb")  # noqa: SIM115
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [
                program,
                f"--config.file={cluster.folder}/prometheus.yml",
                f"--storage.tsdb.path={cluster.folder}/prometheus",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=log,
            stderr=log,
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def started_proxy(self, cluster: Cluster, *settings: str) -> dict[str, Any]:
        """A proxy; what it says when it is ready."""
        words = [word for text in settings for word in ("--set", text)]
        proxy = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
                *("-n", cluster.names, "--set", "grpcServerPort=0"),
                *("--metrics-port", "0", "--output", "json", *words),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            cwd=cluster.folder,
        )
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        assert proxy.stdout is not None
        with proxy.stdout as output:
            ready: dict[str, Any] = json.loads(output.readline())
        return ready

    def ask(self, path: str, **words: str) -> dict[str, Any]:
        """What Prometheus answers."""
        query = urllib.parse.urlencode(words)
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
            return data

    def query(self, expression: str, seconds: float = 60.0) -> list[dict[str, Any]]:
        """The series of an expression, once there are any."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found: list[dict[str, Any]] = self.ask("query", query=expression)[
                    "result"
                ]
            except OSError:
                found = []
            if found:
                return found
            time.sleep(0.3)
        raise AssertionError(f"no series for {expression}")


class PrometheusTests(ScrapedCase):
    """What it stores is what happened."""

    def setUp(self) -> None:
        """All with their defaults."""
        self.scrape(Cluster(), CONFIGURATION)

    def call_proxy(self, seconds: float = 1.0) -> None:
        """Calls that are answered, and others that are refused, for a while."""
        end = time.monotonic() + seconds
        with grpc.insecure_channel(self.proxy["proxy"]) as channel:
            while time.monotonic() < end:
                for method in ("Heartbeat", "AckMessage"):
                    call: Any = channel.unary_unary(f"/{SERVICE}/{method}")
                    call(b"", metadata=(("x-mq-client-id", "C"),), timeout=10)
                time.sleep(0.1)

    def broadcast(self, group: str, topic: str) -> None:
        """A member of a group that broadcasts."""
        host, _, port = self.cluster.address.partition(":")
        member = socket.create_connection((host, int(port)), 30)
        self.addCleanup(member.close)
        beat = heartbeat([topic], group=group).replace(b"CLUSTERING", b"BROADCASTING")
        member.sendall(encode(Command(RequestCode.HEART_BEAT, body=beat)))

    def test_scrape(self) -> None:
        """All targets are up, and timers of two are timed; counters have RocketMQ's
        names and our numbers. A group that broadcasts has members and no lag."""
        with Client(Settings(self.cluster.names)) as client:
            producer = Producer(client)
            for number in range(7):
                producer.send(Message("Scraped", b"%d" % number))
        self.broadcast("Everywhere", "Scraped")
        self.query('rocketbroker_group_members{consumer_group="Everywhere"} == 1')
        self.query(
            'absent({__name__=~".*(lag|ready|latency).*",consumer_group="Everywhere"})'
        )
        self.query("count(up == 1) == 3")
        (series,) = self.query('rocketmq_messages_in_total{topic="Scraped"} == 7')
        labels = series["metric"]
        self.assertEqual(labels["message_type"], "normal")
        self.assertEqual(labels["node_id"], "broker-a")
        self.query("rocketmq_storage_dispatch_behind_bytes == 0")
        self.query("rocketbroker_namesrv_brokers == 1")
        self.query('count(rocketbroker_longest_turn_seconds{work="timers"}) == 2')

    def test_dashboard(self) -> None:
        """Each query of the dashboard finds something where something happened; each
        alert rule can be evaluated. No alert is near that nothing here causes."""
        with connect(self.cluster.names) as session:
            for number in range(7):
                session.send("Shown", b"%d" % number)
            session.send("Shown", b"late", delay_level=18)
            with session.consumer("Shown", group="G", start="earliest") as messages:
                next(messages).ack()
        # A counter that appears has a rate when it has grown.
        self.call_proxy()
        self.query('rocketbroker_proxy_calls_total{code="ILLEGAL_TOPIC"}')
        self.call_proxy()
        dashboard = json.loads((ETC / "grafana" / "rocketbroker.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                expression = target["expr"].replace("$instance", ".*")
                expression = expression.replace("$__rate_interval", "1m")
                if any(quiet in expression for quiet in QUIET):
                    continue
                self.assertTrue(self.query(expression), expression)
        # On a busy machine a scrape may fail, or a turn may be long, for a moment.
        until(lambda: not self.near(), 90)
        self.assertEqual(self.near(), [])

    def near(self) -> list[dict[str, Any]]:
        """The rules that cannot be evaluated, or whose alerts are not far, but for the
        expected ones."""
        groups = self.ask("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        self.assertGreater(len(rules), 10)
        return [
            rule
            for rule in rules
            if rule["health"] != "ok"
            or (rule["name"] not in EXPECTED and rule["state"] != "inactive")
        ]

    def test_text(self) -> None:
        """Prometheus asks for OpenMetrics; its tool reads the older format, too."""
        program = shutil.which("promtool")
        if program is None:
            raise SkipTest("needs promtool")
        with Client(Settings(self.cluster.names)) as client:
            Producer(client).send(Message("Scraped", b"x"))
        self.call_proxy()
        for address in (
            f"127.0.0.1:{self.cluster.broker_metrics}",
            f"127.0.0.1:{self.cluster.namesrv_metrics}",
            self.proxy["metrics"],
        ):
            with urllib.request.urlopen(f"http://{address}/metrics") as answer:
                self.assertIn("version=0.0.4", answer.headers["Content-Type"])
                text = answer.read()
            checked = subprocess.run(
                [program, "check", "metrics"], input=text, capture_output=True
            )
            # 1: it cannot be read. 3: it can, and names are not as it advises.
            self.assertIn(checked.returncode, (0, 3), checked.stderr)

    def test_health(self) -> None:
        """Both say that they are well."""
        cluster = self.cluster
        for port in (cluster.broker_metrics, cluster.namesrv_metrics):
            url = f"http://127.0.0.1:{port}/healthz"
            with urllib.request.urlopen(url, timeout=10) as answer:
                self.assertEqual((answer.status, answer.read()), (200, b"ok\n"))


SECURED = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
scrape_configs:
  - job_name: rocketbroker
    scheme: https
    tls_config: {{ca_file: {folder}/server.crt, server_name: server}}
    authorization: {{credentials_file: {folder}/token}}
    static_configs:
      - targets: ['127.0.0.1:{broker}', '127.0.0.1:{namesrv}', '{proxy}']
"""


@needs("cryptography")
class SecuredTests(ScrapedCase):
    """The pages by TLS, with a certificate that is checked, and a token."""

    def setUp(self) -> None:
        """Servers of each kind with one certificate and one token."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        names = ("server.crt", "server.key")
        for name, content in zip(names, self_signed(["server"]), strict=True):
            (folder / name).write_bytes(content)
        (folder / "token").write_text("right\n")
        own = {
            "metricsTls": "enforcing",
            "metricsBearerTokenFile": folder / "token",
            "tls.test.mode.enable": "false",
            "tls.server.certPath": folder / "server.crt",
            "tls.server.keyPath": folder / "server.key",
        }
        cluster = Cluster(**own)
        cluster.namesrv.set(**own)
        self.scrape(
            cluster,
            SECURED,
            "metricsTls=enforcing",
            f"metricsBearerTokenFile={folder / 'token'}",
            "tlsTestModeEnable=false",
            f"tlsCertPath={folder / 'server.crt'}",
            f"tlsKeyPath={folder / 'server.key'}",
            folder=folder,
        )

    def test_scrapeWithToken(self) -> None:
        """All targets are up. Who has no token sees no page but those of probes."""
        self.query("count(up == 1) == 3")
        self.query("rocketbroker_namesrv_brokers == 1")
        addresses = (
            f"127.0.0.1:{self.cluster.broker_metrics}",
            f"127.0.0.1:{self.cluster.namesrv_metrics}",
            self.proxy["metrics"],
        )
        for address in addresses:
            for page, status in (
                ("metrics", 401),
                ("healthz", 401),
                ("healthz/live", 200),
                ("healthz/ready", 200),
            ):
                url = f"https://{address}/{page}"
                try:
                    with urllib.request.urlopen(url, context=client_context()) as got:
                        found = got.status
                except urllib.error.HTTPError as error:
                    found = error.code
                    error.close()
                self.assertEqual(found, status, url)
            with self.assertRaises(OSError):
                urllib.request.urlopen(f"http://{address}/healthz/live")


class RuleTests(SynchronousTestCase):
    """The alert rules alone."""

    def test_rules(self) -> None:
        """The alerts fire when they are to, by promtool's own tests."""
        program = shutil.which("promtool")
        if program is None:
            raise SkipTest("needs promtool")
        checked = subprocess.run(
            [program, "test", "rules", "rocketbroker.tests.yml"],
            cwd=ETC / "prometheus",
            capture_output=True,
        )
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
