"""docs/security.rst: what each port answers, and the five steps as they stand."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker import threads
from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking import Client, Settings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import BrokerError
from rocketbroker.proxy.service import SERVICE
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from rocketbroker.wire.hastream import report
from scripts.lab.pair import until
from scripts.lab.servers import Cluster, Server, environment, free_base
from tests.broker.rig import pull_ext, send_ext
from tests.missing import needs
from tests.remoting.certificates import client_context

PAGE = Path(__file__).parents[2] / "docs" / "security.rst"

#: Where the page has its files.
PLACE = "/etc/rocketmq"

#: What the examples of requests ask for.
TOPIC = {"topic": "T", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6"}
FIELDS: dict[int, dict[str, str]] = {
    310: send_ext("T"),
    11: pull_ext(0, 0, topic="T", sysFlag="4"),
    17: {**TOPIC, "topicFilterType": "SINGLE_TAG", "defaultTopic": "D"},
    100: {"namespace": "N", "key": "k", "value": "v"},
    105: {"topic": "T"},
}

#: The change of settings that is asked for.
BODIES = {25: b"traceOn=true\n", 318: b"orderMessageEnable=false\n"}

#: The answers of a server that does not do what it is asked.
REFUSALS = {ResponseCode.NO_PERMISSION, ResponseCode.REQUEST_CODE_NOT_SUPPORTED}


def section(title: str) -> str:
    """The part of the page below a heading, up to the next one of its kind."""
    text = PAGE.read_text()
    begin = text.index(f"\n{title}\n===") + 1
    end = re.compile(r"\n\n[^\n]+\n={5,}\n").search(text, begin + len(title))
    assert end is not None
    return text[begin : end.start()]


def rows() -> list[list[str]]:
    """The rows of the table, without its head."""
    text = section("What each port answers without credentials")
    found = [
        [cell.strip() for cell in re.split(r"\n {5}- ", row)]
        for row in text.split("\n   * - ")[1:]
    ]
    return found[1:]


def blocks() -> Iterator[tuple[str, str]]:
    """The literal blocks of the five steps: their first lines, and the rest."""
    text = section("Lock down in five steps")
    literal = "\n".join(
        line[4:] if line.startswith("    ") else "" for line in text.splitlines()
    )
    for block in re.split(r"(?m)^# ", literal)[1:]:
        head, _, lines = block.partition("\n")
        yield head, lines.replace(PLACE, "{place}").strip() + "\n"


class Asker:
    """Asks the ports of a cluster, with TLS or without, and no credentials."""

    def __init__(self, ports: dict[str, int], context: ssl.SSLContext | None) -> None:
        self.ports = ports
        self.context = context

    def is_answered(self, row: str, example: str) -> bool:
        """Whether a port does what it is asked."""
        port = self.ports[row]
        try:
            if example.startswith("/"):
                return self._page(port, example)
            if example.isdigit():
                return self._request(port, int(example))
            if example == "log":
                return len(self._exchange(port, report(0), 12)) >= 12
            return self._call(port, example)
        except OSError:
            return False

    def _exchange(self, port: int, data: bytes, size: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), 30) as plain:
            sock = plain
            if self.context is not None:
                sock = self.context.wrap_socket(plain)
            with sock:
                sock.sendall(data)
                return sock.recv(size)

    def _request(self, port: int, code: int) -> bool:
        command = Command(code, FIELDS.get(code, {}), BODIES.get(code, b""))
        data = self._exchange(port, encode(command), 65536)
        commands = list(Connection().receive(data))
        return bool(data) and all(each.code not in REFUSALS for each in commands)

    def _page(self, port: int, path: str) -> bool:
        scheme = "http" if self.context is None else "https"
        url = f"{scheme}://127.0.0.1:{port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=30, context=self.context) as got:
                return bool(got.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False

    def _call(self, port: int, name: str) -> bool:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary(f"/{SERVICE}/{name}")
            try:
                call(b"", metadata=(("x-mq-client-id", "C"),), timeout=30)
            except grpc.RpcError:
                return False
            return True


def ports_of(cluster: Cluster, **more: int) -> dict[str, int]:
    """The ports of the rows, by how they are called before the comma."""
    main = cluster.broker.port
    return {
        "broker": main,
        "broker's VIP port": main - 2,
        "replication": main + 1,
        "broker's metrics": cluster.broker_metrics,
        "name server": cluster.namesrv.port,
        "name server's metrics": cluster.namesrv_metrics,
        **more,
    }


class PortsTests(SynchronousTestCase):
    """The table."""

    def test_withoutCredentials(self) -> None:
        """With the defaults each port answers each example of its row."""
        cluster = Cluster().start()
        self.addCleanup(cluster.stop)
        proxy = subprocess.Popen(
            [
                *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
                *("-n", cluster.names, "--set", "grpcServerPort=0"),
                *("--metrics-port", "0", "--output", "json"),
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
            ready = json.loads(output.readline())
        numbers = {
            "proxy": int(ready["proxy"].rpartition(":")[2]),
            "proxy's metrics": int(ready["metrics"].rpartition(":")[2]),
        }
        asker = Asker(ports_of(cluster, **numbers), None)
        asked = 0
        for name, _, _, examples, _ in rows():
            row = name.partition(",")[0]
            for example in re.findall(r"``(.+?)``", examples):
                self.assertTrue(asker.is_answered(row, example), (row, example))
                asked += 1
            self.assertEqual(examples == "none", row == "admin port")
        self.assertGreater(asked, 30)


@needs("cryptography")
class StepsTests(SynchronousTestCase):
    """The five steps."""

    def setUp(self) -> None:
        """A cluster that has followed them, and a slave that has, too."""
        if shutil.which("openssl") is None:
            raise SkipTest("needs openssl")
        self.cluster = Cluster(autoCreateTopicEnable="false")
        self.addCleanup(self.cluster.stop)
        self.place = self.cluster.folder
        main = self.cluster.broker.port
        slave = free_base() + 10
        folder = self.place / "slave"
        folder.mkdir()
        self.slave = Server(
            "rocketbroker",
            {
                "brokerName": "broker-a",
                "brokerId": 1,
                "brokerRole": "SLAVE",
                "brokerIP1": "127.0.0.1",
                "brokerIP2": "127.0.0.1",
                "listenPort": slave,
                "namesrvAddr": self.cluster.names,
                "haMasterAddress": f"127.0.0.1:{main + 1}",
                "storePathRootDir": folder / "store",
                "metricsPromExporterPort": slave - 5,
            },
            folder,
            slave,
        )
        self.addCleanup(self.slave.stop)
        # Two brokers are on this machine.
        self.admin = main + 6
        for head, text in blocks():
            self.follow(head, text.replace("{place}", str(self.place)))
        self.slave.set(rocketbrokerAdminPort=slave + 6)
        self.cluster.broker.set(rocketbrokerAdminPort=self.admin)
        self.cluster.start()
        self.slave.start()

    def follow(self, head: str, text: str) -> None:
        """Do what a block says."""
        if head == f"in a shell, in {PLACE}":
            subprocess.run(
                text, shell=True, cwd=self.place, check=True, capture_output=True
            )
        elif head == "conf/plain_acl.yml":
            for folder in (self.place, self.slave.folder):
                (folder / "conf").mkdir()
                (folder / head).write_text(text)
        else:
            lines = dict(line.split("=", 1) for line in text.split())
            servers = {
                "broker.properties": [self.cluster.broker, self.slave],
                "namesrv.properties": [self.cluster.namesrv],
            }
            for name in head.split(" and "):
                for server in servers[name]:
                    server.set(**lines)

    def tls(self) -> ClientTls:
        """What a client has of step 1."""
        return ClientTls(
            ca_path=str(self.place / "ca.crt"),
            certificate_path=str(self.place / "client.crt"),
            key_path=str(self.place / "client.key"),
        )

    def client(self, name: str, secret: str) -> Client:
        """One with an account."""
        credentials = Credentials(name, secret)
        settings = Settings(
            self.cluster.names, seconds=30, tls=self.tls(), credentials=credentials
        )
        client = Client(settings)
        self.addCleanup(client.close)
        return client

    def test_lockedDown(self) -> None:
        """Nobody else is answered anything; those who are meant work as before."""
        ports = ports_of(self.cluster, **{"admin port": self.admin})
        trusting = client_context()
        for name, _, _, examples, after in rows():
            row = name.partition(",")[0]
            if row not in ports:
                self.assertIn("the same", after)
                continue
            self.assertEqual(after, "nothing")
            wanted = re.findall(r"``(.+?)``", examples) or ["28", "17"]
            for context in (None, trusting):
                asker = Asker(ports, context)
                for example in wanted:
                    self.assertFalse(asker.is_answered(row, example), (row, example))
        self.check_administrator()
        self.check_application()
        self.check_slave()
        self.check_scraper(ports["broker's metrics"], ports["name server's metrics"])

    def check_administrator(self) -> None:
        """Topics are made at the admin port, and not at that of clients."""
        administrator = self.client("administrator", "change-this-secret")
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        fields = {**FIELDS[17], "topic": "Orders"}
        with self.assertRaises(BrokerError) as refused:
            administrator.ask_server(self.cluster.address, code, fields)
        self.assertIn("rocketbrokerAdminPort", str(refused.exception))
        administrator.ask_server(f"127.0.0.1:{self.admin}", code, fields)
        billing = self.client("billing", "and-this-one")
        with self.assertRaises(BrokerError):
            billing.ask_server(f"127.0.0.1:{self.admin}", code, fields)

    def check_application(self) -> None:
        """The client of the page sends and receives."""
        own = self.tls()
        with threads.connect(
            self.cluster.names,
            tls=True,
            tls_ca=own.ca_path,
            tls_certificate=own.certificate_path,
            tls_key=own.key_path,
            access_key="billing",
            secret_key="and-this-one",
        ) as session:
            session.send("Orders", b"locked down")
            with session.consumer("Orders", group="billing", start="earliest") as got:
                self.assertEqual(next(got).body, b"locked down")

    def check_slave(self) -> None:
        """A slave with the same lines has the log."""
        log = self.slave.folder / "store" / "commitlog"

        def has_log() -> bool:
            return any(b"locked down" in path.read_bytes() for path in log.iterdir())

        self.assertTrue(until(has_log), self.slave.log.read_text()[-3000:])

    def check_scraper(self, *ports: int) -> None:
        """A certificate and the token open the pages; one of both does not."""
        own = self.tls()
        context = client_context()
        context.load_cert_chain(own.certificate_path, own.key_path)
        token = (self.place / "metrics.token").read_text().strip()
        for port in ports:
            url = f"https://127.0.0.1:{port}/metrics"
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(url, context=context)
            self.assertEqual(refused.exception.code, 401)
            refused.exception.close()
            request = urllib.request.Request(
                url, headers={"Authorization": f"Bearer {token}"}
            )
            with urllib.request.urlopen(request, context=context) as answer:
                self.assertIn(b"rocketbroker_", answer.read())
            with self.assertRaises(OSError):
                urllib.request.urlopen(request, context=client_context())
