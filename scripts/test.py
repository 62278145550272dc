#!/usr/bin/env python3
"""Bring every Python package needed and run the tests, several parts at a time.

    python3 scripts/test.py [--fast] [--heavy] [--no-install] [--no-skips]
                            [--compiled] [names of tests ...]

Without a name it runs all tests, but the large forms of the heavy ones. --fast leaves
out tests/integration; --heavy runs only the heavy tests (those that import
tests.heavy), in their large form: long hand-overs and full sweeps. With names it runs
those packages, modules, classes or methods.

--compiled compiles the codec in a copy of the checkout (scripts/compiled.py) and runs
the tests there: without a name those of the codec and of what uses it.

--no-install uses this Python as it is; --no-skips fails when a test was skipped.

A part is a package of tests, or a class of tests/integration, or what a class says with
its attribute C{part}; each runs in a process
and a directory (_trial_temp-NAME) of its own. What a part says is printed when it has
ended; until then it is in _trial_temp-NAME.log. The environment is .env in the
checkout. The last line is `N passed, N failed, N skipped`. Standard library only.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # whoever starts it may have an older one
    sys.exit(
        f"{sys.argv[0]} needs Python 3.11 or newer; this one, {sys.executable}, is "
        f"{sys.version.split()[0]}. With python3.11 or a later one it works."
    )

import argparse
import hashlib
import os
import re
import subprocess
import time
import venv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ENVIRONMENT = ROOT / ".env"

#: Where what is installed lies.
INSTALLED = ("rocketbroker", "pyspark_rocketmq", "twisted_plugins")

#: How many of the slowest tests and parts are named.
MAX_SLOW = 15

#: So many lines of why a test failed are told again at the end.
MAX_REASON = 30

#: By this variable tests.heavy learns that the large forms are wanted.
HEAVY_VARIABLE = "ROCKETBROKER_HEAVY_TESTS"

#: What runs on the compiled form, too: what is compiled, and what is done with it.
ON_BOTH_FORMS = (
    "tests.codec",
    "tests.wire.test_hot",
    "tests.wire.test_hastream",
    "tests.files",
    "tests.remoting",
    "tests.broker.metadata.test_offsets",
    "tests.broker.pop.test_pop",
    "tests.broker.pull",
    "tests.broker.replicas",
    "tests.broker.send",
    "tests.broker.storage",
    "tests.replication",
    "tests.store.commitlog",
    "tests.store.consumequeue",
    "tests.store.dispatch",
    "tests.store.index",
    "tests.store.reading",
    "tests.store.sharing",
    "tests.store.test_message_store",
    "tests.workers",
)

#: How much of a processor a part keeps busy: parts of integration wait for half of
#: their time, but for the large forms.
SHARE = 1.0
SHARE_OF_INTEGRATION = 0.5

#: Parts of integration of which that is far from true, by their modules.
SHARES = {
    "tests.integration.test_delay_handover": 0.25,
    "tests.integration.test_pop_handover": 0.25,
    "tests.integration.test_queue_handover": 0.75,
    "tests.integration.test_repair": 0.75,
    "tests.integration.test_replication": 1.0,
    "tests.integration.test_slave_life": 0.25,
    "tests.integration.test_timer_handover": 0.25,
    "tests.integration.test_transaction_handover": 0.25,
}

#: How long the slow parts take, roughly, in seconds: they begin first. All others
#: take a few seconds.
SECONDS = {
    "tests.integration.test_transaction_handover.TransactionHandOverTests": 150,
    "tests.integration.test_walk.WalkTests": 120,
    "tests.integration.test_delay_handover.DelayHandOverTests": 130,
    "tests.integration.test_replication.ReplicationTests": 140,
    "tests.integration.test_repair.RepairTests": 130,
    "tests.integration.test_timer_handover.TimerHandOverTests": 120,
    "tests.integration.test_pop_handover.PopHandOverTests": 120,
    "tests.integration.test_pages.PageTests": 110,
    "tests.integration.test_spark_cluster.ClusterTests": 90,
    "tests.integration.proxy": 100,
    "tests.integration.test_export.ExportTests": 80,
    "tests.integration.java-5.3.3": 80,
    "tests.integration.test_slave_life.TablesTests": 70,
    "tests.integration.test_slave_life.JavaTablesTests": 70,
    "tests.integration.test_slave_life.FailoverTests": 70,
    "tests.integration.test_handover.HandOverTests": 60,
    "tests.integration.test_queue_handover.QueueHandOverTests": 60,
    "tests.integration.java-4.9.8": 60,
    "tests.integration.test_java_client.BrokerComesAndGoes": 60,
    "tests.integration.test_discrepancies.DiscrepanciesTests": 45,
    "tests.integration.test_mqadmin.MqadminTests": 40,
    "tests.integration.test_workers.WorkersTests": 40,
    "tests.integration.test_status.StatusTests": 40,
    "tests.integration.test_sidebyside.SideBySideTests": 30,
    "tests.integration.test_store_in_use.InUseTests": 30,
    "tests.integration.test_scale.ScaleTests": 30,
    "tests.integration.test_sink.SinkTests": 45,
    "tests.integration.test_streams.StreamTests": 60,
    "tests.integration.test_static_topics.StaticTopicTests": 55,
    "tests.integration.test_follow.FollowTests": 40,
    "tests.integration.test_replication_rows.ReplicationRowsTests": 27,
    "tests.integration.test_pop_rows.PopRowsTests": 60,
    "tests.integration.test_timer_rows.TimerRowsTests": 30,
    "tests.integration.test_quickstart.QuickstartTests": 20,
    "tests.broker": 20,
    "tests.sweeps": 16,
    "tests.integration.test_full_disk.FullDiskTests": 14,
    "tests.integration.test_refusals.RefusedStarts": 13,
    "tests.integration.test_model.ModelTests": 12,
    "tests.storetools.repair": 12,
    "tests": 11,
    "tests.app": 10,
    "tests.store": 10,
}


@dataclass
class Part:
    """What one process runs.

    @ivar name: of the package or class, or what it was called for.
    @ivar names: what trial is told.
    @ivar is_heavy: whether it is one test in its large form.
    """

    name: str
    names: list[str]
    is_heavy: bool

    @property
    def share(self) -> float:
        """How much of a processor it keeps busy."""
        name = self.names[0]
        if self.is_heavy or not name.startswith("tests.integration"):
            return SHARE
        return SHARES.get(".".join(name.split(".")[:3]), SHARE_OF_INTEGRATION)

    @property
    def log(self) -> Path:
        """The file for what it says."""
        return ROOT / f"_trial_temp-{self.name}.log"


@dataclass
class Outcome:
    """What has come of all parts.

    @ivar counts: of trial's words: successes, failures, errors, skips.
    @ivar tests: seconds and name of each test.
    @ivar parts: seconds, seconds of processors, and name of each part.
    @ivar failed: names of tests, or of parts that ended without counts.
    @ivar reasons: what trial said of each failure, and of each such part the end.
    """

    counts: Counter[str] = field(default_factory=Counter)
    tests: list[tuple[float, str]] = field(default_factory=list)
    parts: list[tuple[float, float, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, part: Part, code: int) -> None:
        """Print what a part has said without its times, and count it."""
        name = ""
        failed: list[str] = []
        lines = part.log.read_text("utf-8", "replace").splitlines()
        for line in lines:
            if line.startswith("====="):
                # What follows tells the failures again.
                name = ""
            timed = re.match(r"\(([\d.]+) secs\)$", line)
            if timed:
                self.tests.append((float(timed[1]), name))
                continue
            begun = re.match(r"(tests(?:\.\w+)+) \.\.\. ", line)
            if begun:
                # What the test prints may stand between its name and its outcome.
                name = begun[1]
            if name and line.endswith(("[FAILURE]", "[ERROR]")):
                failed.append(name)
            print(line)
        tail = "\n".join(lines[-4:])
        for said in "\n".join(lines).split(f"\n{'=' * 79}\n")[1:]:
            if said.startswith(("[FAIL]", "[ERROR]")):
                self.reasons.append("\n".join(said.splitlines()[-MAX_REASON:]))
        found = {kind: int(n) for kind, n in re.findall(r"(\w+)=(\d+)", tail)}
        if code and not found.get("failures") and not found.get("errors"):
            found["errors"] = 1
            failed.append(f"{part.name}, with exit status {code}")
            self.reasons.append("\n".join(lines[-MAX_REASON:]))
        self.counts.update(found)
        self.failed += failed
        part.log.unlink()

    def close(self, skips_fail: bool) -> int:
        """Print what was slow and what failed, and the counts; the exit status."""
        print("the slowest parts, with the time of processors:")
        for seconds, processors, name in sorted(self.parts, reverse=True)[:MAX_SLOW]:
            print(f"  {seconds:8.2f} s  {processors:8.2f} s  {name}")
        print("the slowest tests:")
        for seconds, name in sorted(self.tests, reverse=True)[:MAX_SLOW]:
            print(f"  {seconds:8.2f} s  {name}")
        for reason in self.reasons:
            print(reason)
        for name in self.failed:
            print(f"failed: {name}")
        counts = self.counts
        failed = counts["failures"] + counts["errors"]
        code = 1 if failed or self.failed else 0
        if counts["skips"] and skips_fail:
            print("tests were skipped, which --no-skips forbids")
            code = 1
        passed, skipped = counts["successes"], counts["skips"]
        print(f"{passed} passed, {failed} failed, {skipped} skipped")
        return code


def environment(extras: str) -> Path:
    """The Python of the checkout's environment, with rocketbroker and C{extras}."""
    python = ENVIRONMENT / "bin" / "python"
    stamp = ENVIRONMENT / f".installed-{extras.replace(',', '-')}"
    # An editable installation links each module by itself: a new one needs another.
    modules = (p for top in INSTALLED for p in sorted((ROOT / top).rglob("*.py")))
    parts = [(ROOT / "setup.cfg").read_bytes(), *(str(p).encode() for p in modules)]
    wanted = hashlib.sha256(b"\n".join(parts)).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    print("installing rocketbroker and what it needs into .env", flush=True)
    # Most modules are never imported, so that compiling all of them is dear.
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    install.append("--editable")
    subprocess.run([*install, f"{ROOT}[{extras}]"], check=True, cwd=ROOT)
    stamp.write_text(wanted)
    return python


def list_tests(names: list[str]) -> None:
    """Print the part and the id of each test; called in the environment."""
    from twisted.trial.runner import TestLoader

    def each(found: Any) -> Iterator[Any]:
        if hasattr(found, "__iter__"):
            for inner in found:
                yield from each(inner)
        else:
            yield found

    for test in each(TestLoader().loadByNames(names, recurse=True)):
        part = test.id()
        found = re.match(r"(tests[.\w]*?)\.test_\w+\.[A-Z]\w*", part)
        if found:
            whole = found[0] if found[1] == "tests.integration" else found[1]
            part = getattr(test, "part", whole)
        print(part, test.id())


def call(python: Path, heavy: bool) -> tuple[list[str], dict[str, str]]:
    """How Python is called, and its variables."""
    variables = dict(os.environ)
    variables["PATH"] = f"{python.parent}{os.pathsep}{variables.get('PATH', '')}"
    if heavy:
        variables[HEAVY_VARIABLE] = "1"
    return [str(python), "-u", "-b", "-W", "error"], variables


def parts_of(python: Path, names: list[str], heavy: bool) -> list[Part]:
    """The parts, the slowest first.

    @param heavy: each test is a part of its own.
    """
    command, variables = call(python, heavy)
    listed = subprocess.run(
        [*command, __file__, "--list", *names],
        cwd=ROOT,
        env=variables,
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    parts: dict[str, Part] = {}
    for line in listed.stdout.splitlines():
        part, name = line.split(" ", 1)
        part = name if heavy else part
        # A class that two modules know is run once.
        names = parts.setdefault(part, Part(part, [], heavy)).names
        if name not in names:
            names.append(name)
    return sorted(parts.values(), key=lambda part: -SECONDS.get(part.name, 0))


def start(part: Part, python: Path, heavy: bool) -> subprocess.Popen[bytes]:
    """Run trial.

    @return: its process, which has to be kept until it was waited for: one that is
        forgotten is waited for when the next begins.
    """
    command, variables = call(python, heavy)
    folder = f"--temp-directory=_trial_temp-{part.name}"
    with open(part.log, "wb") as log:
        return subprocess.Popen(
            [*command, "-m", "twisted.trial", "--reporter=timing", folder, *part.names],
            cwd=ROOT,
            env=variables,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def run(python: Path, names: list[str], heavy: bool) -> Outcome:
    """Run all parts, as many at a time as keep the processors busy."""
    outcome = Outcome()
    waiting = parts_of(python, names, heavy)
    running: dict[int, tuple[Part, float, subprocess.Popen[bytes]]] = {}
    room = float(os.cpu_count() or 1)
    while waiting or running:
        busy = sum(part.share for part, *_ in running.values())
        fits = [part for part in waiting if busy + part.share <= room]
        if fits and busy < room:
            waiting.remove(fits[0])
            process = start(fits[0], python, heavy)
            running[process.pid] = fits[0], time.monotonic(), process
            continue
        pid, status, usage = os.wait4(-1, 0)
        part, begun, process = running.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        processors = usage.ru_utime + usage.ru_stime
        outcome.parts.append((seconds, processors, part.name))
        print(f"== {part.name}: {seconds:.1f} s", flush=True)
        outcome.add(part, process.returncode)
    return outcome


def chosen(words: argparse.Namespace) -> list[str]:
    """The names of the packages and modules of tests to run."""
    if words.names:
        return list(words.names)
    if words.heavy:
        return [
            ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for path in sorted((ROOT / "tests").rglob("test_*.py"))
            if "from tests.heavy import" in path.read_text("utf-8")
        ]
    inside = [p.parent for p in sorted((ROOT / "tests").glob("*/__init__.py"))]
    names = [f"tests.{path.name}" for path in inside]
    names += [f"tests.{path.stem}" for path in sorted((ROOT / "tests").glob("test_*"))]
    if words.fast:
        names.remove("tests.integration")
    return names


def main() -> int:
    """Install unless told not to, then run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    for flag in ("--fast", "--heavy", "--no-install", "--no-skips", "--compiled"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("names", nargs="*")
    words = parser.parse_args()
    if words.list:
        list_tests(words.names)
        return 0
    python = Path(sys.executable)
    if not words.no_install:
        python = environment("spark,test,docs" if words.heavy else "spark,test")
    if words.compiled:
        # Here, as the environment must be there first.
        from scripts.compiled import in_copy

        names = words.names or ON_BOTH_FORMS
        return in_copy(python, "scripts/test.py", "--no-install", "--no-skips", *names)
    return run(python, chosen(words), words.heavy).close(words.no_skips)


if __name__ == "__main__":
    sys.exit(main())
