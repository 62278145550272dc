"""The image of etc/container, built and used where there is no container engine.

Buildah builds it and runs its programs: in a root of their own, as the image's user,
but among the machine's processes. A network namespace is the container's network. The
base is what debootstrap makes, from where this machine has its own packages.
"""

from __future__ import annotations

import configparser
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path
from typing import Any

import yaml
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from scripts.lab.javaclient import why_not
from scripts.lab.servers import ROOT
from tests.heavy import HEAVY
from tests.integration.javacase import until

FOLDER = ROOT / "etc" / "container"
CLIENTS = FOLDER / "clients"
PAGE = ROOT / "docs" / "container.rst"

#: The Debian packages of the programs that are needed.
PACKAGES = {"buildah": "buildah", "debootstrap": "debootstrap", "ip": "iproute2"}

#: What the image may take when it is compressed, in bytes.
MAX_BYTES = 120_000_000

#: A start, or a program of a client, may take so long, in seconds.
SECONDS = 300.0

#: So long Docker waits, unless told otherwise, before it kills, in seconds.
STOP_SECONDS = 10.0

#: Parts of a Debian that no image has.
CACHES = ("var/cache/apt", "var/lib/apt/lists")


def quietly(*words: str | Path) -> str:
    """Run a program; what it prints.

    @raise RuntimeError: it failed, with the end of what it said.
    """
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode:
        said = f"{done.stdout}{done.stderr}"[-3000:]
        raise RuntimeError(f"{shlex.join(map(str, words))}: {done.returncode}: {said}")
    return done.stdout


def install_programs() -> None:
    """Install what is missing, as root.

    @raise SkipTest: something is missing, or the right to install it.
    """
    if reason := why_not():
        raise SkipTest(reason)
    if os.geteuid():
        raise SkipTest("needs root, for a Debian and a network of its own")
    missing = [PACKAGES[name] for name in PACKAGES if shutil.which(name) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise SkipTest(f"needs {', '.join(missing)}, and there is no apt-get")
    quietly("apt-get", "update", "-qq")
    quietly(
        *("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq"),
        *("--no-install-recommends", *missing),
    )


def make_debian(root: Path) -> None:
    """Make a small Debian with its Python, of this machine's release and mirror.

    @raise SkipTest: wheels for this Python do not fit to Debian's.
    """
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    targets = quietly("apt-get", "indextargets", "--format", "$(CODENAME) $(SITE)")
    mirror = next(
        site
        for codename, _, site in (line.partition(" ") for line in targets.split("\n"))
        if codename == release
    )
    quietly(
        *("debootstrap", "--variant=minbase", "--include=python3,python3-venv"),
        *(release, root, mirror),
    )
    for name in CACHES:
        shutil.rmtree(root / name)
        (root / name).mkdir()
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (root / "usr" / "bin" / python).exists():
        raise SkipTest(f"needs a Debian whose Python is that of the tests, {python}")


def make_wheels(into: Path) -> None:
    """Fetch all that rocketbroker is built and installed with."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    needs = config["options"]["install_requires"].split("\n")
    for extra in ("grpc", "tls"):
        needs += config["options.extras_require"][extra].split("\n")
    needs = [
        need.replace(" ", "") for need in needs if need and not need.startswith("#")
    ]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needs += build["build-system"]["requires"]
    quietly(sys.executable, "-m", "pip", "wheel", "--quiet", "-w", into, *needs)


def build_command() -> list[str]:
    """How the page says that buildah builds the image, without what it is built of."""
    page = PAGE.read_text("utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"^ +(buildah build --format .*) \.$", page, re.M)
    return shlex.split(line)


def descendant(pid: int, *names: str) -> int:
    """The process of a name below another one; buildah has helpers beside it."""
    waiting = [pid]
    while waiting:
        pid = waiting.pop()
        if Path(f"/proc/{pid}/comm").read_text().strip() in names:
            return pid
        # Buildah is a program of Go: any thread of it may have begun a child.
        for task in Path(f"/proc/{pid}/task").iterdir():
            waiting += map(int, (task / "children").read_text().split())
    raise AssertionError(f"none of {names} runs")


class Network:
    """A network namespace that this machine has one cable to.

    @ivar address: the namespace's end.
    @ivar within: words before a command that is to run in it.
    """

    def __init__(self) -> None:
        self._name = f"rocketbroker-{os.getpid()}"
        self.within = ["ip", "netns", "exec", self._name]
        # Of a block that is for documentation.
        block = 4 * (os.getpid() % 64)
        near, self.address = f"203.0.113.{block + 1}", f"203.0.113.{block + 2}"
        here, there = f"rb{os.getpid()}a", f"rb{os.getpid()}b"
        try:
            quietly("ip", "netns", "add", self._name)
        except RuntimeError as error:
            raise SkipTest(f"needs the right to make a network: {error}") from error
        for words in (
            f"ip link add {here} type veth peer name {there} netns {self._name}",
            f"ip addr add {near}/30 dev {here}",
            f"ip link set {here} up",
            f"ip -n {self._name} addr add {self.address}/30 dev {there}",
            f"ip -n {self._name} link set {there} up",
            f"ip -n {self._name} link set lo up",
            f"ip -n {self._name} route add default via {near}",
        ):
            quietly(*words.split())

    def stop(self) -> None:
        """Take the namespace away, and the cable with it."""
        quietly("ip", "netns", "del", self._name)


class ContainerTests(SynchronousTestCase):
    """As docs/container.rst says."""

    if HEAVY:

        def test_imageServesBothClients(self) -> None:
            """It is small; it becomes healthy, serves the clients of compose.yaml, and
            stops when it is told."""
            install_programs()
            self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
            self.addCleanup(shutil.rmtree, self.folder)
            self.build()
            self.measure()
            network = Network()
            self.addCleanup(network.stop)
            config = self.config()
            log = self.folder / "log"
            broker = self.start(
                [*network.within, *self.in_container("broker", [])],
                [*config["Entrypoint"], *config["Cmd"]],
                log,
            )
            # Buildah takes a container down when one of its programs has ended.
            check = self.in_container("client", config["Healthcheck"]["Test"][1:])
            self.assertTrue(
                until(lambda: self.succeeds(*network.within, *check), SECONDS),
                log.read_text(),
            )
            program = descendant(broker.pid, "rocketbroker")
            status = Path(f"/proc/{program}/status").read_text()
            user = config["User"].partition(":")[0]
            self.assertIn(f"Uid:\t{user}\t{user}\t{user}\t{user}\n", status)
            self.serve(f"{network.address}:9876")
            listed = quietly(*self.in_container("client", ["twistd", "--help"]))
            self.assertIn("rocketbroker", listed)
            began = time.monotonic()
            os.kill(program, signal.SIGTERM)
            self.assertEqual(broker.wait(SECONDS), 0, log.read_text())
            seconds = time.monotonic() - began
            print(f"stopped after {seconds:.1f} s")
            self.assertLess(seconds, STOP_SECONDS)

        def test_samplesFitTheirSchemas(self) -> None:
            """Those of Compose, of GitHub's workflows, and of Kubernetes."""
            folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
            self.addCleanup(shutil.rmtree, folder)
            venv.create(folder, with_pip=True)
            programs = folder / "bin"
            quietly(
                *(programs / "pip", "install", "--quiet"),
                *("check-jsonschema", "kubernetes-validate"),
            )
            for name, schema in (
                ("compose.yaml", "vendor.compose-spec"),
                ("github-actions.yaml", "vendor.github-workflows"),
            ):
                check = programs / "check-jsonschema"
                quietly(check, "--builtin-schema", schema, FOLDER / name)
            said = quietly(
                programs / "kubernetes-validate", "--strict", FOLDER / "kubernetes.yaml"
            )
            print(said)

    def buildah(self, *words: str | Path) -> list[str]:
        """A command of buildah, with everything in this test's folder."""
        return [
            *("buildah", "--storage-driver", "vfs"),
            *("--root", str(self.folder / "storage")),
            *("--runroot", str(self.folder / "run")),
            *map(str, words),
        ]

    def in_container(self, name: str, words: list[str], *options: str) -> list[str]:
        """What runs a command in a container."""
        run = self.buildah("run", "--isolation", "chroot", *options, name, "--")
        return [*run, *words]

    def build(self) -> None:
        """Build the image, and make two containers of it."""
        debian, wheels = self.folder / "debian", self.folder / "wheels"
        make_debian(debian)
        make_wheels(wheels)
        quietly(*self.buildah("from", "--name", "base", "scratch"))
        quietly(*self.buildah("copy", "--quiet", "base", debian, "/"))
        shutil.rmtree(debian)
        quietly(*self.buildah("commit", "--quiet", "--rm", "base", "base"))
        program, verb, *rest = build_command()
        self.assertEqual((program, rest[-1]), ("buildah", "rocketbroker"))
        quietly(
            *self.buildah(verb, "--isolation", "chroot", "--build-arg"),
            *("BASE=localhost/base", "--volume", f"{wheels}:/wheels:ro"),
            *("--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels"),
            *(*rest, "."),
        )
        for name in ("broker", "client"):
            quietly(*self.buildah("from", "--name", name, "rocketbroker"))

    def config(self) -> dict[str, Any]:
        """What the image says of itself."""
        said = quietly(*self.buildah("inspect", "--type", "image", "rocketbroker"))
        found: dict[str, Any] = json.loads(said)["Docker"]["config"]
        return found

    def measure(self) -> None:
        """Compress the image as a registry gets it."""
        pushed = self.folder / "pushed"
        quietly(*self.buildah("push", "--quiet", "rocketbroker", f"oci:{pushed}"))
        sizes = [blob.stat().st_size for blob in (pushed / "blobs").glob("*/*")]
        print(f"the image takes {sum(sizes):,} bytes: {sorted(sizes)}")
        self.assertLess(sum(sizes), MAX_BYTES)
        shutil.rmtree(pushed)

    def start(
        self, before: list[str], words: list[str], log: Path
    ) -> subprocess.Popen[bytes]:
        """Start a program, which is stopped at the end of the test."""
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [*before, *words], stdout=output, stderr=output, cwd=CLIENTS
            )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Stop a program that may run still."""
        if process.poll() is None:
            os.kill(descendant(process.pid, "rocketbroker", "java"), signal.SIGTERM)
            process.wait(SECONDS)

    def succeeds(self, *words: str) -> bool:
        """Whether a program ends with status 0."""
        return not subprocess.run(words, capture_output=True).returncode

    def serve(self, names: str) -> None:
        """Run the clients of compose.yaml, that of Java on this machine."""
        text = (FOLDER / "compose.yaml").read_text("ascii")
        services = yaml.safe_load(text.replace("broker:9876", names))["services"]
        log = self.folder / "java.log"
        to = f"-Dto={self.folder / 'java'}"
        java = self.start([], [*services["java"]["command"], to], log)
        self.assertTrue(
            until(lambda: b"waiting for orders" in log.read_bytes(), SECONDS),
            log.read_text(),
        )
        said = quietly(
            *self.in_container(
                "client",
                services["python"]["entrypoint"],
                *("--volume", f"{CLIENTS}:/clients:ro"),
            )
        )
        self.end(java)
        self.assertEqual(said.splitlines()[-1], "10 orders, each with an invoice")
