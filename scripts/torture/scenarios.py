#!/usr/bin/env python3
"""The same scenarios of the official clients against the Java broker and against ours.

    python3 scripts/torture/scenarios.py --kit KIT [--client 5.3.3,4.9.8]
        [--only NAME,NAME] [--server 5.3.3] [--no-kit-scenarios]

KIT is a kit.py that runs the Java servers and scenarios of its own (`scenarios`), which
say PASS or FAIL and with which code or count they failed. Those of
observed.py have the same names, and note each status, code, count
and property that a client sees on the way. One side after the other, each in a fresh
store, all but `timer`; it takes some ten minutes for each client.

Prints both outcomes of each, and what differs. Times are shown and not compared. Exit
status 1 if anything differs or fails here; but a scenario that the Java broker fails
itself at times (`offsets`) may pass here, and one that it fails on a busy machine
(it refuses what has waited for 200 ms) is run again.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.names import AUTO_CREATE_TOPIC
from scripts.lab.javaclient import VERSIONS, JavaClient
from scripts.lab.kit import Kit
from scripts.lab.servers import READY_SECONDS, Cluster, free_base
from scripts.torture.observed import SCENARIOS
from scripts.torture.stage import EARLY, Stage

#: What scenarios expect of a broker, beside RocketMQ's defaults.
SETTINGS = {"autoCreateTopicEnable": "true", "enablePropertyFilter": "true"}

#: How often scenarios are run that the Java broker fails.
MAX_RUNS = 3

#: What the Java broker fails in about half of the runs: a pull that it still holds for
#: a consumer that has gone eats the reset. It always has to pass here.
JAVA_MAY_FAIL = ("offsets",)

#: What comes of a step of such a scenario if the broker does not fail it.
JAVA_MAY_MISS: dict[str, object] = {
    "after a reset": [f"second-{number:02}" for number in range(10)]
}

#: Where we differ on purpose: scenario and step, and why.
ON_PURPOSE = {
    ("admin-tables", "groups"): "5.3.3 names a topic among the groups that read it",
}

#: What was noted of a scenario, by step.
Notes = dict[str, object]

LINE = re.compile(r"(PASS|FAIL|SKIP)\s+(\S+)\s+(\S+)\s*(.*)")


class Outcome(NamedTuple):
    """What came of one scenario: PASS, FAIL or SKIP; how long; and why."""

    status: str
    seconds: str
    reason: str


class Servers(NamedTuple):
    """Where a name server and its broker are."""

    names: str
    address: str


@contextlib.contextmanager
def ours() -> Iterator[Servers]:
    """Our servers."""
    cluster = Cluster(**SETTINGS)
    try:
        cluster.start()
        yield Servers(cluster.names, cluster.address)
    finally:
        cluster.stop()


@contextlib.contextmanager
def java(kit: Kit, version: str) -> Iterator[Servers]:
    """The Java servers."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        base = free_base()
        words = [f"--port={base}", f"--version={version}", f"--home={folder}/names"]
        stack.enter_context(kit.serving("namesrv", *words))
        names = f"127.0.0.1:{base}"
        words = [f"--namesrv={names}", f"--port={base + 10}", f"--version={version}"]
        words.append(f"--store={folder}/store")
        for key, value in SETTINGS.items():
            words += ["-s", f"{key}={value}"]
        stack.enter_context(kit.serving("broker", *words))
        wait_for_broker(names)
        yield Servers(names, f"127.0.0.1:{base + 10}")


def wait_for_broker(names: str) -> None:
    """Wait until clients get routes: the Java broker says earlier that it is ready."""
    end = time.monotonic() + READY_SECONDS
    with Client(Settings(names)) as client:
        while time.monotonic() < end:
            with contextlib.suppress(RocketbrokerError):
                if client.masters() and client.queues(AUTO_CREATE_TOPIC):
                    return
            time.sleep(0.2)
    sys.exit(f"no broker has registered at {names} in {READY_SECONDS:.0f} s")


def outcomes(
    kit: str, names: str, client: str, wanted: list[str]
) -> dict[str, Outcome]:
    """Run scenarios of the kit; what came of each, in their order."""
    command = [sys.executable, kit, "scenarios", names, "--client", client]
    command += ["--only", ",".join(wanted)]
    found = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            match = LINE.match(line)
            if match is not None:
                status, name, seconds, reason = match.groups()
                found[name] = Outcome(status, seconds, reason.strip())
                print(f"  {status} {name} {seconds} {reason}", flush=True)
    return found


def notes(servers: Servers, client: str, wanted: list[str]) -> dict[str, Notes]:
    """What a client notes of our own scenarios."""
    with tempfile.TemporaryDirectory() as folder:
        java = JavaClient(client, servers.names, Path(folder))
        try:
            stage = Stage(java, servers.address)
            for name in wanted:
                begin = time.monotonic()
                stage.run(name, SCENARIOS[name])
                seconds = time.monotonic() - begin
                count = len(stage.notes[name])
                print(f"  {name}: {count} notes {seconds:.1f}", flush=True)
            return stage.notes
        finally:
            java.stop()


class Side(NamedTuple):
    """What one client has seen of one broker."""

    outcomes: dict[str, Outcome]
    notes: dict[str, Notes]


def seen(kit: str, servers: Servers, client: str, wanted: list[str], own: bool) -> Side:
    """Run all scenarios against one broker.

    @param own: whether those of the kit are left out.
    """
    found = {} if own else outcomes(kit, servers.names, client, wanted)
    return Side(found, notes(servers, client, wanted))


def again(kit: str, servers: Servers, client: str, side: Side) -> None:
    """Run those of the kit again that the Java broker has failed."""
    for _ in range(MAX_RUNS - 1):
        failed = [n for n, one in side.outcomes.items() if one.status == "FAIL"]
        failed = [name for name in failed if name not in JAVA_MAY_FAIL]
        if failed:
            print(f"once more: {', '.join(failed)}")
            side.outcomes.update(outcomes(kit, servers.names, client, failed))


def differences(theirs: Side, own: Side) -> list[str]:
    """What differs or fails here, a line each."""
    found = []
    for name in dict.fromkeys([*theirs.outcomes, *own.outcomes]):
        one, two = theirs.outcomes.get(name), own.outcomes.get(name)
        if one is None or two is None:
            found.append(f"{name}: only one side has it")
            continue
        excused = name in JAVA_MAY_FAIL and one.status == "FAIL"
        if two.status == "FAIL":
            found.append(f"{name}: fails here: {two.reason}")
        elif one.status != two.status and not excused:
            found.append(f"{name}: Java {one.status}, ours {two.status}: {one.reason}")
        elif one.reason != two.reason and not excused:
            found.append(f"{name}: Java says {one.reason!r}, ours {two.reason!r}")
    for name in own.notes:
        found += noted_differences(name, theirs.notes[name], own.notes[name])
    return found


def noted_differences(name: str, theirs: Notes, own: Notes) -> list[str]:
    """What differs in one scenario's notes."""
    found = [f"{name} {EARLY}: {own[EARLY]}"] if EARLY in own else []
    for step in dict.fromkeys([*theirs, *own]):
        one, two = (side.get(step, "nothing") for side in (theirs, own))
        if one == two:
            continue
        if (name, step) in ON_PURPOSE:
            print(f"on purpose: {name}, {step}: {ON_PURPOSE[name, step]}")
            continue
        if (
            name in JAVA_MAY_FAIL
            and step in JAVA_MAY_MISS
            and two == JAVA_MAY_MISS[step]
        ):
            continue
        found.append(f"{name}, {step}:\n    Java {one}\n    ours {two}")
    return found


def columns(theirs: Side, own: Side) -> None:
    """Print what came of each scenario on both sides."""
    nothing = Outcome("-", "", "")
    head = f"{'scenario':16}{'Java':>6}{'s':>7}{'ours':>6}{'s':>7}"
    print(f"\n{head}{'notes':>8}{'alike':>7}")
    for name in dict.fromkeys([*theirs.outcomes, *own.outcomes, *own.notes]):
        one, two = (side.outcomes.get(name, nothing) for side in (theirs, own))
        steps = own.notes.get(name, {})
        alike = sum(theirs.notes.get(name, {}).get(k) == v for k, v in steps.items())
        print(f"{name:16}{one.status:>6}{one.seconds:>7}", end="")
        print(f"{two.status:>6}{two.seconds:>7}{len(steps):>8}{alike:>7}")


def compared(given: argparse.Namespace, client: str, wanted: list[str]) -> list[str]:
    """Run both sides with one client, print both columns; what differs."""
    own_only = given.no_kit_scenarios
    print(f"Java broker {given.server}, client {client}:")
    with java(Kit(given.kit, 0), given.server) as servers:
        theirs = seen(given.kit, servers, client, wanted, own_only)
        again(given.kit, servers, client, theirs)
    print(f"rocketbroker, client {client}:")
    with ours() as servers:
        own = seen(given.kit, servers, client, wanted, own_only)
    columns(theirs, own)
    wrong = differences(theirs, own) if own.notes else ["no scenario has run"]
    print("\n" + ("\n".join(wrong) if wrong else "No difference."))
    return wrong


def main() -> int:
    """Run both sides with each client, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--kit", required=True)
    clients = ",".join(VERSIONS)
    parser.add_argument("--client", default=clients, help="the clients' versions")
    parser.add_argument("--server", default="5.3.3", help="the Java servers' version")
    parser.add_argument("--only", default=",".join(SCENARIOS), metavar="NAME,NAME")
    parser.add_argument(
        "--no-kit-scenarios", action="store_true", help="without those of the kit"
    )
    given = parser.parse_args()
    wanted = given.only.split(",")
    if not SCENARIOS.keys() >= set(wanted):
        parser.error(f"the scenarios are {', '.join(SCENARIOS)}")
    wrong = [compared(given, client, wanted) for client in given.client.split(",")]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
