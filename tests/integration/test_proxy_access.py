"""Access control at our proxy, with the official clients, before our broker.

In the large form of heavy tests the client for Java does the same, and RocketMQ's own
Proxy stands before the same broker: what is expected of ours is what that one does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from google.protobuf.message import Message as AnyMessage
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials
from rocketbroker.blocking import Client, Settings
from rocketbroker.config.certificates import ClientTls
from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.wire.command import Command
from scripts.lab.grpcjava import java_client
from scripts.lab.grpcpeer import GrpcPeer
from scripts.lab.javaclient import JavaError, body_of
from scripts.lab.official_python import CREDENTIALS
from scripts.lab.servers import ROOT as CHECKOUT
from scripts.lab.servers import STOP_SECONDS, Cluster, children, environment
from tests.heavy import HEAVY
from tests.integration.javaproxy import JavaProxy
from tests.integration.proxied import JavaCluster
from tests.integration.typed_topics import prepare_by

ROOT = Credentials("root", "root-secret-0")
INNER = Credentials("inner", "inner-secret-0")
ALICE = Credentials("alice", "alice-secret-0")
GUESSING = Credentials("alice", "guess")
EVE = Credentials("eve", "guess")

#: What a broker is told of these.
SETTINGS: dict[str, object] = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": json.dumps(
        {"username": ROOT.access_key, "password": ROOT.secret_key}
    ),
    "innerClientAuthenticationCredentials": json.dumps(
        {"accessKey": INNER.access_key, "secretKey": INNER.secret_key}
    ),
}

#: And a proxy before it; changes count after a second.
PROXY_SETTINGS: dict[str, object] = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "enableAclRpcHookForClusterMode": True,
    "innerClientAuthenticationCredentials": SETTINGS[
        "innerClientAuthenticationCredentials"
    ],
    "userCacheRefreshSeconds": 1,
    "aclCacheRefreshSeconds": 1,
}

#: Keys of RocketMQ's Proxy beside these.
JAVA_SETTINGS: dict[str, object] = {
    "authenticationMetadataProvider": "org.apache.rocketmq.proxy.auth."
    "ProxyAuthenticationMetadataProvider",
    "authorizationMetadataProvider": "org.apache.rocketmq.proxy.auth."
    "ProxyAuthorizationMetadataProvider",
}

#: And of RocketMQ's broker.
JAVA_BROKER_SETTINGS: dict[str, object] = {
    f"{key}{kind}": f"org.apache.rocketmq.auth.{key}.provider.{name}"
    for key in ("authentication", "authorization")
    for kind, name in (
        ("Provider", f"Default{key.title()}Provider"),
        ("MetadataProvider", f"Local{key.title()}MetadataProvider"),
    )
}

#: The topics that there are; alice may use the first, and is a member of its group, and
#: she may read the second.
TOPICS = ("Mine", "Read", "Secret")

#: How long something may take that comes by itself, in seconds.
PATIENCE = 60.0

NO_POLICY = "User:alice has no permission to access {} from 127.0.0.1, no matched"

#: What is said to nobody.
NOBODY = "username cannot be null."

#: What is refused: who it is, what is done with which topic, and what the error says.
REFUSED = (
    (ALICE, "send", "Secret", NO_POLICY.format("Topic:Secret")),
    (GUESSING, "send", "Mine", "check signature failed."),
    (EVE, "send", "Mine", "User:eve is not found."),
)

#: And what is refused only behind the route of the topic.
REFUSED_LATER = (
    (ALICE, "send", "Read", NO_POLICY.format("Topic:Read")),
    (ALICE, "receive", "Read", NO_POLICY.format("Group:G_Read")),
)

UNAUTHORIZED = int(pb.Code.UNAUTHORIZED)


def entry(text: str, *actions: str) -> dict[str, object]:
    """What a user may do."""
    return {"resource": text, "actions": actions, "decision": "Allow"}


class UsersCase(SynchronousTestCase):
    """Brokers with users, and clients that are one."""

    timeout = 300

    def setUp(self) -> None:
        """A directory."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def populate(self, names: str, address: str, tls: ClientTls | None = None) -> None:
        """Make topics, and alice."""
        client = Client(Settings(names, credentials=ROOT, tls=tls))
        self.addCleanup(client.close)
        self.ask = lambda command: client.connections.to(address).invoke(command, 30.0)
        for topic in TOPICS:
            prepare_by(self.ask, topic)
        self.done(3001, {"password": ALICE.secret_key}, username="alice")
        entries = [
            entry("Topic:Mine", "Pub", "Sub"),
            entry("Group:G_Mine", "Sub"),
            entry("Topic:Read", "Sub"),
        ]
        policies = {"policies": [{"policyType": "Custom", "entries": entries}]}
        self.done(3006, policies, subject="User:alice")

    def done(self, code: int, body: object, **fields: str) -> None:
        """Ask the broker for something that it does."""
        answer = self.ask(Command(code, fields, json.dumps(body).encode()))
        self.assertEqual(answer.code, 0, answer.remark)

    def passes(
        self, endpoint: str, who: Credentials, scenario: str, topic: str, *words: str
    ) -> None:
        """A scenario with the official client for Python."""
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", "-m", "scripts.lab.official_python"),
                *(endpoint, scenario, topic, *words),
            ],
            capture_output=True,
            text=True,
            cwd=CHECKOUT,
            env={
                **os.environ,
                "HOME": tempfile.mkdtemp(dir=self.folder),
                CREDENTIALS: f"{who.access_key}:{who.secret_key}",
            },
            timeout=self.timeout,
        )
        said = f"{topic} {words}: {done.stderr[-3000:]}"
        self.assertEqual(done.stdout, "passed\n", said)


class ProxyCase(UsersCase):
    """A cluster with users, and what clients do through a proxy."""

    def made(self) -> Cluster | JavaCluster:
        """A cluster that knows the first users."""
        return Cluster(**SETTINGS)

    def setUp(self) -> None:
        """A cluster."""
        super().setUp()
        self.cluster = self.made()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.populate(self.cluster.names, self.cluster.address)

    def proxy(self, settings: Mapping[str, object] = PROXY_SETTINGS) -> str:
        """Start our proxy; where it listens."""
        path = self.folder / "rmq-proxy.json"
        path.touch(0o600)
        path.write_text(json.dumps({**settings, "grpcServerPort": 0}))
        words = ["-n", self.cluster.names, "-c", str(path), "--metrics-port", "off"]
        with open(self.folder / "proxy.log", "wb") as log:
            proxy = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.cli.command", "proxy", "run"),
                    *(*words, "--output", "json"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                cwd=self.folder,
            )
        self.addCleanup(proxy.wait, STOP_SECONDS)
        self.addCleanup(proxy.send_signal, signal.SIGTERM)
        assert proxy.stdout is not None
        with proxy.stdout as output:
            return str(json.loads(output.readline())["proxy"])

    def java_proxy(self) -> str:
        """Start RocketMQ's Proxy; where it listens."""
        folder = self.folder / "java"
        folder.mkdir()
        settings = {**PROXY_SETTINGS, **JAVA_SETTINGS}
        proxy = JavaProxy(self.cluster.names, folder, **settings)
        self.addCleanup(proxy.stop)
        proxy.start()
        return proxy.address

    def check_calls(self, endpoint: str) -> None:
        """Each call is refused, or is not, as L{CALLS} says."""
        for who, request, words in CALLS:
            found = status(endpoint, who, request)
            said = f"{request.DESCRIPTOR.name} {request}: {found}"
            self.assertEqual(found.code == UNAUTHORIZED, bool(words), said)
            self.assertIn(words, found.message, said)

    def use_python(self, endpoint: str) -> None:
        """What the client for Python may do, and what it may not."""
        runs: list[tuple[Credentials, str, str, str]] = [(ALICE, "normal", "Mine", "")]
        for who, what, topic, words in (*REFUSED, *REFUSED_LATER):
            runs.append((who, "refused", topic, f"{what} {UNAUTHORIZED}, {words}"))
        nobody = Credentials("", "")
        runs.append((nobody, "refused", "Mine", f"send {UNAUTHORIZED}, {NOBODY}"))
        with ThreadPoolExecutor(len(runs)) as threads:
            for done in [
                threads.submit(self.passes, endpoint, *run[:3], *run[3].split())
                for run in runs
            ]:
                done.result()

    def use_java(self, endpoint: str) -> None:
        """And the client for Java."""
        java = self.java(endpoint, ALICE)
        java("producer", name="p", topic="Mine")
        java("push", name="c", group="G_Mine", topic="Mine")
        java.send("p", "Mine", b"hello")
        (message,) = java.received("c", 1, PATIENCE)
        self.assertEqual(body_of(message), b"hello")
        # Others are members of its group, too.
        java("stop", name="c")
        for who, _, topic, words in REFUSED:
            client = java if who is ALICE else self.java(endpoint, who)
            self.assertRefused(client, topic, words)
        # It is told in vain why its settings are refused, and waits for them.
        with self.assertRaises(JavaError) as caught:
            java("simple", name="later", topic="Read", group="G_Read")
        self.assertIn("has FAILED", caught.exception.text)
        nobody = java_client(endpoint, self.folder, "plain")
        self.addCleanup(nobody.stop)
        self.assertRefused(nobody, "Mine", NOBODY)

    def java(self, endpoint: str, who: Credentials) -> Any:
        """The client for Java of a user."""
        words = "plain", who.access_key, who.secret_key
        client = java_client(endpoint, self.folder, *words)
        self.addCleanup(client.stop)
        return client

    def assertRefused(self, java: Any, topic: str, words: str) -> None:
        """It does not start: clients for Java ask for their topics first."""
        with self.assertRaises(JavaError) as caught:
            java("producer", name="refused", topic=topic)
        self.assertEqual(caught.exception.code, UNAUTHORIZED, caught.exception)
        self.assertIn(words, caught.exception.text)


#: A heartbeat of a producer: it needs a user, and no policy.
BEAT = pb.HeartbeatRequest()

MINE, READ, SECRET = (pb.Resource(name=topic) for topic in TOPICS)
GROUP, OTHER_GROUP = pb.Resource(name="G_Mine"), pb.Resource(name="G_Read")
CONSUMER = pb.ClientType.PUSH_CONSUMER

#: Calls: who makes each, its message, and what its status says; nothing: whatever comes
#: of it, it is not refused.
CALLS: tuple[tuple[Credentials | None, AnyMessage, str], ...] = (
    (None, pb.QueryRouteRequest(topic=MINE), NOBODY),
    (GUESSING, pb.QueryRouteRequest(topic=MINE), "check signature failed."),
    (EVE, pb.HeartbeatRequest(), "User:eve is not found."),
    (ALICE, pb.QueryRouteRequest(topic=MINE), ""),
    (ALICE, pb.QueryRouteRequest(topic=READ), ""),
    (ALICE, pb.QueryRouteRequest(topic=SECRET), NO_POLICY.format("Topic:Secret")),
    (ALICE, pb.QueryRouteRequest(), "topic is null."),
    (ALICE, pb.HeartbeatRequest(), ""),
    (ALICE, pb.HeartbeatRequest(client_type=CONSUMER, group=GROUP), ""),
    (
        ALICE,
        pb.HeartbeatRequest(client_type=CONSUMER, group=OTHER_GROUP),
        NO_POLICY.format("Group:G_Read"),
    ),
    (ALICE, pb.HeartbeatRequest(client_type=CONSUMER), "group is null."),
    (ALICE, pb.SendMessageRequest(), "message is null."),
    (
        ALICE,
        pb.SendMessageRequest(messages=[pb.Message(topic=READ)]),
        NO_POLICY.format("Topic:Read"),
    ),
    (ALICE, pb.QueryAssignmentRequest(topic=MINE, group=GROUP), ""),
    (
        ALICE,
        pb.QueryAssignmentRequest(topic=SECRET, group=GROUP),
        NO_POLICY.format("Topic:Secret"),
    ),
    (
        ALICE,
        pb.AckMessageRequest(topic=MINE, group=OTHER_GROUP),
        NO_POLICY.format("Group:G_Read"),
    ),
    (
        ALICE,
        pb.ForwardMessageToDeadLetterQueueRequest(topic=SECRET, group=GROUP),
        NO_POLICY.format("Topic:Secret"),
    ),
    (
        ALICE,
        pb.ChangeInvisibleDurationRequest(topic=SECRET, group=OTHER_GROUP),
        NO_POLICY.format("Group:G_Read"),
    ),
    (ALICE, pb.EndTransactionRequest(topic=READ), NO_POLICY.format("Topic:Read")),
    (ALICE, pb.RecallMessageRequest(topic=READ), NO_POLICY.format("Topic:Read")),
    (ALICE, pb.NotifyClientTerminationRequest(), ""),
    (
        ALICE,
        pb.NotifyClientTerminationRequest(group=OTHER_GROUP),
        NO_POLICY.format("Group:G_Read"),
    ),
    (ROOT, pb.QueryRouteRequest(topic=SECRET), ""),
)


def status(
    endpoint: str, who: Credentials | None, request: AnyMessage = BEAT
) -> pb.Status:
    """What becomes of a call."""
    method = request.DESCRIPTOR.name.removesuffix("Request")

    async def call() -> pb.Status:
        async with GrpcPeer(endpoint, "C", who) as peer:
            answer: Any = await peer.call(
                method, request, getattr(pb, f"{method}Response")
            )
            found: pb.Status = answer.status
            return found

    return asyncio.run(call())


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that comes by itself."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


class ProxyAccessTests(ProxyCase):
    """Our proxy."""

    def test_officialClients(self) -> None:
        """They do what their policies say; whoever is refused hears why."""
        endpoint = self.proxy()
        self.check_calls(endpoint)
        self.use_python(endpoint)
        if HEAVY:
            self.use_java(endpoint)
        said = (self.folder / "proxy.log").read_text()
        self.assertNotIn("secret", said)
        if HEAVY:
            java = self.java_proxy()
            self.check_calls(java)
            self.use_python(java)
            self.use_java(java)

    def test_proxyThatDoesNotSignSaysSo(self) -> None:
        """To its log at the start, and to whoever it cannot look up."""
        endpoint = self.proxy({"authenticationEnabled": True})
        found = status(endpoint, ALICE)
        self.assertEqual(found.code, pb.Code.INTERNAL_SERVER_ERROR)
        words = f"The proxy cannot look up its users now: {NOBODY}"
        self.assertEqual(found.message, words)
        said = (self.folder / "proxy.log").read_text()
        self.assertEqual(said.count("Users are looked up without a signature"), 1)

    def test_changesAndFailuresOfBrokers(self) -> None:
        """A new password counts soon; a broker that is away makes nobody unknown, and
        whom the proxy knows goes on."""
        endpoint = self.proxy()
        stream = settings_answer(endpoint, None)
        self.assertEqual(stream.status.message, NOBODY)
        self.assertEqual(stream.status.code, UNAUTHORIZED)
        self.assertFalse(stream.HasField("settings"))
        self.assertTrue(settings_answer(endpoint, ALICE).HasField("settings"))
        known = pb.Code.UNRECOGNIZED_CLIENT_TYPE
        self.assertEqual(status(endpoint, ALICE).code, known)
        self.done(3002, {"password": "another-secret"}, username="alice")
        wait_until(lambda: status(endpoint, ALICE).code == UNAUTHORIZED)
        alice = Credentials("alice", "another-secret")
        self.assertEqual(status(endpoint, alice).code, known)
        assert isinstance(self.cluster, Cluster)
        self.cluster.broker.stop()
        eve = status(endpoint, Credentials("eve", "x"))
        self.assertEqual(eve.code, pb.Code.PROXY_TIMEOUT)
        self.assertIn("cannot look up its users now", eve.message)
        time.sleep(1.0)
        self.assertEqual(status(endpoint, alice).code, known)


def settings_answer(endpoint: str, who: Credentials | None) -> pb.TelemetryCommand:
    """What a producer of Mine gets that says what it does."""

    async def introduce() -> pb.TelemetryCommand:
        async with GrpcPeer(endpoint, "T", who) as peer:
            stream = peer.telemetry()
            topics = [pb.Resource(name="Mine")]
            given = pb.Settings(
                client_type=pb.ClientType.PRODUCER,
                publishing=pb.Publishing(topics=topics),
            )
            await stream.write(pb.TelemetryCommand(settings=given))
            answer: pb.TelemetryCommand = await stream.read()
            stream.cancel()
            return answer

    return asyncio.run(introduce())


class JavaBrokerTests(ProxyCase):
    """Our proxy before RocketMQ's broker, where the tests are heavy."""

    def made(self) -> Cluster | JavaCluster:
        """Ours in the small form."""
        if HEAVY:
            return JavaCluster(**SETTINGS, **JAVA_BROKER_SETTINGS)
        return super().made()

    def test_brokerTellsUsersAndPolicies(self) -> None:
        """They count as at ours."""
        endpoint = self.proxy()
        self.check_calls(endpoint)
        if HEAVY:
            self.use_python(endpoint)


class StandaloneAccessTests(UsersCase):
    """C{rocketbroker standalone -c}."""

    def test_embeddedProxyKnowsUsers(self) -> None:
        """It signs, and speaks TLS where nothing else is taken; nobody else on the
        machine sees with what."""
        path = self.folder / "broker.conf"
        path.touch(0o600)
        settings = {**SETTINGS, "tls.server.mode": "enforcing"}
        path.write_text("".join(f"{key}={settings[key]}\n" for key in settings))
        words = "standalone --temporary --namesrv-port 0 --port 0 --metrics-port off"
        with open(self.folder / "standalone.log", "wb") as log:
            servers = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.cli.command", *words.split()),
                    *("-c", str(path), "--grpc-port", "0", "--output", "json"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                cwd=self.folder,
            )
        assert servers.stdout is not None
        with servers.stdout as output:
            ready = json.loads(output.readline())
        self.addCleanup(servers.wait, STOP_SECONDS)
        self.addCleanup(servers.kill)
        broker = ready["brokers"][0]["address"]
        self.populate(ready["namesrv"], broker, ClientTls(verify=False))
        self.passes(ready["grpc"], ALICE, "normal", "Mine")
        who, what, topic, refusal = REFUSED[0]
        self.passes(ready["grpc"], who, "refused", topic, what, *refusal.split())
        (proxy,) = children(servers.pid)
        for name in ("cmdline", "environ"):
            shown = Path(f"/proc/{proxy}/{name}").read_bytes()
            for credentials in (ROOT, INNER):
                self.assertNotIn(credentials.secret_key.encode(), shown)
        servers.send_signal(signal.SIGTERM)
        self.assertEqual(servers.wait(STOP_SECONDS), 0)
        self.assertFalse(Path(f"/proc/{proxy}").exists())
        self.assertNotIn("secret", (self.folder / "standalone.log").read_text())
