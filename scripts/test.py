#!/usr/bin/env python3
"""Bring every Python package needed and run the tests, several parts at a time.

    python3 scripts/test.py [--fast] [--heavy] [--no-install] [--no-skips]
                            [--compiled] [names of tests ...]

Without a name it runs all tests, but the large forms of the heavy ones. --fast leaves
out tests/integration, and installs no more than unit tests need (the extra C{test}):
those of exports and Spark are skipped where these are not installed. --heavy runs only
the heavy tests (those that import tests.heavy), in their large form: long hand-overs
and full sweeps. With names it runs those packages, modules, classes or methods.

--compiled compiles the codec in a copy of the checkout (scripts/compiled.py) and runs
the tests there: without a name those of the codec and of what uses it.

--no-install uses this Python as it is; --no-skips fails when a test was skipped.

A part is a package of tests, or a class of tests/integration, or what a class says with
its attribute C{part}; each runs in a process
and a directory (_trial_temp-NAME) of its own. What a part says is printed when it has
ended, below a line with its counts; until then it is in _trial_temp-NAME.log. When no
part has ended for half a minute, a line says which run. The environment is .env in the
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
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

#: The extras of setup.cfg that unit tests need, all tests, and the large forms.
FAST_EXTRAS = "test"
EXTRAS = "spark,test,integration"
HEAVY_EXTRAS = f"{EXTRAS},docs"

#: After so many seconds in which no part has ended, a line says which run.
QUIET_SECONDS = 30.0

#: How often the ends of parts are looked for, in seconds.
LOOK_SECONDS = 0.1

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
    "tests.integration.test_grpc_clients": 0.25,
    "tests.integration.test_pop_handover": 0.25,
    "tests.integration.test_queue_handover": 0.75,
    "tests.integration.test_repair": 0.75,
    "tests.integration.test_replication": 1.0,
    "tests.integration.test_slave_life": 0.25,
    "tests.integration.test_timer_handover": 0.25,
    "tests.integration.test_transaction_handover": 0.25,
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
    def order(self) -> int:
        """When it begins: what takes longest comes first, so that nothing is left to
        run alone at the end. Integration takes longer than unit tests, and what has a
        large form longest, in its small one, too."""
        if not self.names[0].startswith("tests.integration"):
            return 2
        return 1 if self.modules.isdisjoint(heavy_modules()) else 0

    @property
    def modules(self) -> set[str]:
        """The modules of its tests."""
        return {name.rsplit(".", 2)[0] for name in self.names}

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

    def add(self, part: Part, code: int, took: str) -> None:
        """Print a line for a part that has ended, and what it has said without its
        times; count it.

        @param took: how long it took, in words.
        """
        name = ""
        failed: list[str] = []
        said: list[str] = []
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
            said.append(line)
        tail = "\n".join(lines[-4:])
        for reason in "\n".join(lines).split(f"\n{'=' * 79}\n")[1:]:
            if reason.startswith(("[FAIL]", "[ERROR]")):
                self.reasons.append("\n".join(reason.splitlines()[-MAX_REASON:]))
        found = {kind: int(n) for kind, n in re.findall(r"(\w+)=(\d+)", tail)}
        if code and not found.get("failures") and not found.get("errors"):
            found["errors"] = 1
            failed.append(f"{part.name}, with exit status {code}")
            self.reasons.append("\n".join(lines[-MAX_REASON:]))
        self.counts.update(found)
        self.failed += failed
        print(f"== {part.name}: {counted(Counter(found))}{took}")
        print("\n".join(said), flush=True)
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
        print(counted(counts))
        return code


def counted(counts: Counter[str]) -> str:
    """Counts of trial's, as the last line has them."""
    failed = counts["failures"] + counts["errors"]
    passed, skipped = counts["successes"], counts["skips"]
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def environment(extras: str) -> Path:
    """The Python of the checkout's environment, with rocketbroker and C{extras}."""
    python = ENVIRONMENT / "bin" / "python"
    wanted_extras = set(extras.split(","))
    stamp = ENVIRONMENT / f".installed-{extras.replace(',', '-')}"
    # An editable installation links each module by itself: a new one needs another.
    modules = (p for top in INSTALLED for p in sorted((ROOT / top).rglob("*.py")))
    parts = [(ROOT / "setup.cfg").read_bytes(), *(str(p).encode() for p in modules)]
    wanted = hashlib.sha256(b"\n".join(parts)).hexdigest()
    for found in ENVIRONMENT.glob(".installed-*"):
        has = set(found.name.removeprefix(".installed-").split("-"))
        if wanted_extras <= has and found.read_text() == wanted:
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


@cache
def heavy_modules() -> tuple[str, ...]:
    """The test modules that have large forms."""
    return tuple(
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "from tests.heavy import" in path.read_text("utf-8")
    )


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
    """The parts, in the order in which they begin.

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
    return sorted(parts.values(), key=lambda part: part.order)


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


@dataclass
class Running:
    """A part that runs.

    @ivar begun: when it began, by the monotonic clock.
    """

    part: Part
    begun: float
    process: subprocess.Popen[bytes]


def still_running(begun: Iterable[tuple[Part, float]], now: float) -> str:
    """The line that says which parts run, and for how long."""
    names = [f"{part.name} ({now - since:.0f} s)" for part, since in begun]
    return f".. still running: {', '.join(names)}"


def wait(running: dict[int, Running]) -> tuple[Running, float]:
    """Wait until a part has ended; say which run when that takes long.

    @return: the part, and how many seconds of processors it took.
    """
    quiet = time.monotonic()
    while True:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if pid:
            ended = running.pop(pid)
            ended.process.returncode = os.waitstatus_to_exitcode(status)
            return ended, usage.ru_utime + usage.ru_stime
        now = time.monotonic()
        if now - quiet >= QUIET_SECONDS:
            begun = [(each.part, each.begun) for each in running.values()]
            print(still_running(begun, now), flush=True)
            quiet = now
        time.sleep(LOOK_SECONDS)


def run(python: Path, names: list[str], heavy: bool) -> Outcome:
    """Run all parts, as many at a time as keep the processors busy."""
    outcome = Outcome()
    waiting = parts_of(python, names, heavy)
    count = len(waiting)
    running: dict[int, Running] = {}
    room = float(os.cpu_count() or 1)
    while waiting or running:
        busy = sum(each.part.share for each in running.values())
        fits = [part for part in waiting if busy + part.share <= room]
        if fits and busy < room:
            waiting.remove(fits[0])
            process = start(fits[0], python, heavy)
            running[process.pid] = Running(fits[0], time.monotonic(), process)
            continue
        ended, processors = wait(running)
        seconds = time.monotonic() - ended.begun
        outcome.parts.append((seconds, processors, ended.part.name))
        took = f" in {seconds:.1f} s; {len(outcome.parts)} of {count} parts"
        outcome.add(ended.part, ended.process.returncode, took)
    return outcome


def chosen(words: argparse.Namespace) -> list[str]:
    """The names of the packages and modules of tests to run."""
    if words.names:
        return list(words.names)
    if words.heavy:
        return [*heavy_modules()]
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
        extras = FAST_EXTRAS if words.fast else EXTRAS
        python = environment(HEAVY_EXTRAS if words.heavy else extras)
    if words.compiled:
        # Here, as the environment must be there first.
        from scripts.compiled import in_copy

        names = words.names or ON_BOTH_FORMS
        return in_copy(python, "scripts/test.py", "--no-install", "--no-skips", *names)
    return run(python, chosen(words), words.heavy).close(words.no_skips)


if __name__ == "__main__":
    sys.exit(main())
