"""The official gRPC clients: programs that carry out commands.

java/grpc/GrpcDriver.java, scripts/lab/python_driver.py and the drivers in node, go and
rust know the same commands. A driver answers C{Missing} where its client has no such
thing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SkipTest

from scripts.lab.grpcjava import JAVA_VERSION, java_client
from scripts.lab.javaclient import PROJECT, Program, building
from scripts.lab.servers import environment

#: What makes a client, given the address of a proxy and a directory for its logs.
Maker = Callable[[str, Path], Program]

#: The versions of clients: of Java the one of RocketMQ 5.3.3 and the newest, of Go the
#: last without push consumers and the newest.
NEWEST_JAVA: Final = "5.2.0"
PYTHON_VERSION: Final = "5.1.2"
NODE_VERSION: Final = "1.0.8"
GO_VERSION: Final = "5.1.2"
NEWEST_GO: Final = "5.1.4"
RUST_VERSION: Final = "5.0.0"

#: What a driver says its client lacks: the kind of its error.
MISSING: Final = "Missing"

HERE: Final = Path(__file__).resolve().parent
NODE_DRIVER: Final = HERE / "node" / "driver.js"
GO_CLIENT: Final = "github.com/apache/rocketmq-clients/golang/v5"


def not_here(what: str, *programs: str) -> str | None:
    """Why programs cannot run here, None if they can."""
    missing = [name for name in programs if shutil.which(name) is None]
    return f"needs {what}; not found: {', '.join(missing)}" if missing else None


def no_node() -> str | None:
    """Why Node.js cannot run here, None if it can."""
    return not_here("Node.js with npm", "node", "npm")


def skip(reason: str | None) -> None:
    """Skip the test if there is a reason."""
    if reason is not None:
        raise SkipTest(reason)


def built(name: str, make: Callable[[Path], None]) -> Path:
    """The folder that C{make} has filled, now or before."""
    target = PROJECT / "target" / name
    stamp = target / "complete"
    with building():
        if not stamp.exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            make(target)
            stamp.touch()
    return target


def run(folder: Path, *words: str, **variables: str) -> None:
    """Run a program that must succeed."""
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def node_package(name: str, version: str) -> Path:
    """The folder with a package of npm's, and with what it needs."""
    words = "--no-save --no-audit --no-fund --ignore-scripts --prefix".split()

    def make(target: Path) -> None:
        run(target, "npm", "install", *words, str(target), f"{name}@{version}")

    return built(f"{name}-{version}", make) / "node_modules"


def python_client(address: str, folder: Path) -> Program:
    """Python's client before the proxy at an address."""
    words = [sys.executable, "-W", "ignore", "-m", "scripts.lab.python_driver", address]
    variables = {**environment(), "HOME": str(folder)}
    return Program(words, folder, "grpc-python.log", variables)


def node_client(address: str, folder: Path) -> Program:
    """Node's client before the proxy at an address."""
    skip(no_node())
    modules = node_package("rocketmq-client-nodejs", NODE_VERSION)
    variables = {**os.environ, "NODE_PATH": str(modules), "HOME": str(folder)}
    return Program(
        ["node", str(NODE_DRIVER), address], folder, "grpc-node.log", variables
    )


def go_client(address: str, folder: Path, version: str = GO_VERSION) -> Program:
    """Go's client before the proxy at an address; it speaks TLS."""
    skip(not_here("Go", "go"))

    def make(target: Path) -> None:
        shutil.copy(HERE / "go" / "driver.go", target)
        shutil.copy(HERE / "go" / f"v{version}.go", target)
        run(target, "go", "mod", "init", "driver")
        run(target, "go", "get", f"{GO_CLIENT}@v{version}")
        run(target, "go", "mod", "tidy")
        run(target, "go", "build", "-o", "driver", ".")

    driver = built(f"go-{version}", make) / "driver"
    variables = {**os.environ, "rocketmq.client.logRoot": str(folder)}
    log = f"grpc-go-{version}.log"
    return Program([str(driver), address], folder, log, variables)


def rust_client(address: str, folder: Path, *words: str) -> Program:
    """Rust's client before the proxy at an address.

    @param words: C{tls}, for connections as it makes them unless told otherwise.
    """
    skip(not_here("Rust with cargo", "cargo"))

    def make(target: Path) -> None:
        shutil.copytree(HERE / "rust", target / "driver")
        out = target / "out"
        run(target / "driver", "cargo", "build", CARGO_TARGET_DIR=str(out))
        shutil.copy(out / "debug" / "driver", target / "program")
        shutil.rmtree(out)

    driver = built(f"rust-{RUST_VERSION}", make) / "program"
    started: Sequence[str] = [str(driver), address, *words]
    return Program(started, folder, "grpc-rust.log")


#: What makes a client, by its language and version; continuous integration has those
#: of the first two languages.
OFFICIAL: Final[dict[str, Maker]] = {
    f"Java {NEWEST_JAVA}": partial(java_client, version=NEWEST_JAVA),
    f"Java {JAVA_VERSION}": java_client,
    f"Python {PYTHON_VERSION}": python_client,
    f"Node.js {NODE_VERSION}": node_client,
    f"Go {NEWEST_GO}": partial(go_client, version=NEWEST_GO),
    f"Go {GO_VERSION}": go_client,
    f"Rust {RUST_VERSION}": rust_client,
}
