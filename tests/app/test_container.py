"""The files in etc/container agree with the code, and with each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import yaml
from twisted.internet.defer import succeed
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.broker import VIP_DISTANCE
from rocketbroker.cli.command import command
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NAMESRV_PORT
from rocketbroker.metrics.samples import Samples
from rocketbroker.metrics.site import metrics_site
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.testing.threads import at_once

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "etc" / "container"

#: What a stopping server is given in the other samples.
UNIT = ROOT / "etc" / "systemd" / "rocketbroker.service"


def instructions() -> dict[str, list[str]]:
    """The instructions of the last stage, by their words."""
    text = re.sub(
        r"^#.*\n", "", (FOLDER / "Containerfile").read_text("ascii"), flags=re.M
    )
    found: dict[str, list[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found = {}
        found.setdefault(word, []).append(" ".join(rest.split()))
    return found


def documents(name: str) -> list[Any]:
    """What is in a file of YAML."""
    return list(yaml.safe_load_all((FOLDER / name).read_text("ascii")))


def ports() -> dict[str, int]:
    """The ports of `rocketbroker standalone`, by the names that the samples use."""
    settings = BrokerSettings.from_properties({})
    broker = settings.server.listen_port
    return {
        "namesrv": NAMESRV_PORT,
        "broker": broker,
        "vip": broker - VIP_DISTANCE,
        "metrics": settings.broker.metrics_prom_exporter_port,
    }


def status(path: str) -> int:
    """What a server that lives, but that clients cannot use yet, answers a probe."""
    site = metrics_site(
        lambda _: succeed(Samples({})),
        at_once,
        lambda: None,
        tuple,
        lambda: "not yet",
    )
    site.startFactory()
    channel = site.buildProtocol(None)
    assert channel is not None
    transport = StringTransport()
    channel.makeConnection(transport)
    channel.dataReceived(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
    site.stopFactory()
    return int(transport.value().split()[1])


class ContainerTests(SynchronousTestCase):
    """Ports, paths, users and commands."""

    def test_imageExposesEachPort(self) -> None:
        """Those that clients, slaves and scrapers connect to."""
        settings = BrokerSettings.from_properties({})
        wanted = {*ports().values(), settings.store.ha_listen_port}
        wanted.add(ProxySettings().grpc_server_port)
        (exposed,) = instructions()["EXPOSE"]
        self.assertEqual(set(map(int, exposed.split())), wanted)

    def test_imageHasAProxy(self) -> None:
        """What it needs is installed, for TLS, too, which official clients speak by
        default; the page says how wheels of that are had."""
        text = (FOLDER / "Containerfile").read_text("ascii")
        self.assertIn(" '/src[grpc,tls]' ", text)
        page = (ROOT / "docs" / "container.rst").read_text("utf-8")
        self.assertIn("'.[grpc,tls]'", page)

    def test_imageStartsWhatTheCommandLineTakes(self) -> None:
        """The command is `rocketbroker standalone` with a store in the volume."""
        found = instructions()
        self.assertEqual(yaml.safe_load(found["ENTRYPOINT"][0]), ["rocketbroker"])
        words = yaml.safe_load(found["CMD"][0])
        assert isinstance(command, click.Group)
        context = click.Context(command)
        name, verb, rest = command.resolve_command(context, words)
        assert name is not None
        assert verb is not None
        given = verb.make_context(name, rest, parent=context).params
        (volume,) = found["VOLUME"]
        self.assertEqual((name, given["directory"]), ("standalone", f"{volume}/store"))

    def test_imageHasAUserOfItsOwn(self) -> None:
        """The user has a number, which the samples use, and owns the volume."""
        found = instructions()
        (user,) = found["USER"]
        number, _, group = user.partition(":")
        self.assertEqual(number, group)
        self.assertIn(f"useradd --uid {number} --user-group ", found["RUN"][0])
        (volume,) = found["VOLUME"]
        self.assertIn(f"--home-dir {volume} ", found["RUN"][0])
        self.assertIn(f"HOME={volume} ", found["ENV"][0])
        pod = documents("kubernetes.yaml")[1]["spec"]["template"]["spec"]
        given = {
            pod["securityContext"][key]
            for key in ("runAsUser", "runAsGroup", "fsGroup")
        }
        self.assertEqual(given, {int(number)})
        (mount,) = pod["containers"][0]["volumeMounts"]
        self.assertEqual(mount["mountPath"], volume)
        broker = documents("compose.yaml")[0]["services"]["broker"]
        self.assertEqual(broker["volumes"], [f"store:{volume}"])

    def test_probesAskWhatThereIs(self) -> None:
        """A server that clients cannot use yet is alive, and is not ready."""
        spec = documents("kubernetes.yaml")[1]["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        for kind, wanted in (
            ("startupProbe", 200),
            ("livenessProbe", 200),
            ("readinessProbe", 503),
        ):
            probe = container[kind]["httpGet"]
            self.assertEqual(probe["port"], "metrics")
            self.assertEqual(status(probe["path"]), wanted, kind)
        text = (FOLDER / "healthy.py").read_text("ascii")
        (path,) = re.findall(r'"GET", "(\S+)"', text)
        self.assertEqual(status(path), 503)
        (port,) = re.findall(r'def main\(port="(\d+)"\)', text)
        self.assertEqual(int(port), ports()["metrics"])
        (check,) = instructions()["HEALTHCHECK"]
        (_, copied) = instructions()["COPY"]
        self.assertIn(copied.split()[1], yaml.safe_load(check.partition("CMD ")[2]))

    def test_samplesUseThePortsOfTheImage(self) -> None:
        """The same ports outside as inside."""
        service, stateful = documents("kubernetes.yaml")
        self.assertEqual(
            {port["name"]: port["port"] for port in service["spec"]["ports"]}, ports()
        )
        (container,) = stateful["spec"]["template"]["spec"]["containers"]
        self.assertEqual(
            {port["name"]: port["containerPort"] for port in container["ports"]},
            ports(),
        )
        (workflow,) = documents("github-actions.yaml")
        published = workflow["jobs"]["test"]["services"]["rocketmq"]["ports"]
        self.assertEqual(published, [f"{port}:{port}" for port in ports().values()])
        services = documents("compose.yaml")[0]["services"]
        address = f"broker:{ports()['namesrv']}"
        self.assertEqual(services["python"]["entrypoint"][-1], address)
        self.assertEqual(services["java"]["command"][-1], f"-Dexec.args={address}")

    def test_brokerHasTheTimeToStop(self) -> None:
        """As much as the unit for systemd gives; the signal is the same."""
        (seconds,) = re.findall(r"TimeoutStopSec=(\d+)", UNIT.read_text("ascii"))
        pod = documents("kubernetes.yaml")[1]["spec"]["template"]["spec"]
        self.assertEqual(pod["terminationGracePeriodSeconds"], int(seconds))
        broker = documents("compose.yaml")[0]["services"]["broker"]
        self.assertEqual(broker["stop_grace_period"], f"{int(seconds) // 60}m")
        self.assertEqual(instructions()["STOPSIGNAL"], ["SIGTERM"])

    def test_buildSeesWhatIsInstalled(self) -> None:
        """What the build copies and installs is not ignored; the rest is."""
        lines = (FOLDER / "Containerfile.dockerignore").read_text("ascii").splitlines()
        self.assertIn("*", lines)
        seen = {line[1:] for line in lines if line.startswith("!")}
        self.assertEqual({name for name in seen if not (ROOT / name).exists()}, set())
        wanted = {"setup.cfg", "pyproject.toml", "README.rst", "CHANGES.rst", "LICENSE"}
        wanted |= {"rocketbroker", "pyspark_rocketmq", "twisted_plugins"}
        wanted |= {
            source.split()[0]
            for source in instructions()["COPY"]
            if not source.startswith("--from")
        }
        self.assertEqual(seen, wanted)

    def test_pageNamesEachFile(self) -> None:
        """The documentation says what each is for."""
        page = (ROOT / "docs" / "container.rst").read_text("utf-8")
        for path in FOLDER.iterdir():
            self.assertIn(path.name, page)
