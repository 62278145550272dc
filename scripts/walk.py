#!/usr/bin/env python3
"""Walk README.rst and docs/*.rst from the top to the bottom, as a new reader would.

    python3 scripts/walk.py [--bare [--root DIR]] [PAGE...]

Every command, program and query of the pages is run as it stands there, in a root of
its own with the default ports, from a checkout as after `git clone`. Without --bare the
root borrows the programs of this machine and the packages of this Python's
environment, and what other tests run is left out: two minutes. With --bare it is a new
Debian, and everything is installed as the pages say; --root DIR is one that debootstrap
has filled before, and is used up.

What a step needs is given before it: files to send, messages, a running broker, or none
where a store is worked on; S3 of moto, if this Python has it. Servers run on until a
step needs others. Nothing of a step is replaced. Steps that cannot be run are in
scripts/walk_reasons.py, with the reason.

Exit status 0 if no step failed. Needs Linux and root. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.walk_pages import ROOT, Step, all_steps
from scripts.walk_reasons import UNITS, reason_for, stale
from scripts.walk_scene import HOME, Scene, SceneError, bare, borrowed, connect

#: How long a step may take, in seconds; nothing is asserted about it, and compiling
#: beside other work takes half an hour.
SECONDS: Final = 3600.0

#: How long something that runs until it is stopped is looked at once it has printed.
WATCHED_SECONDS: Final = 1.0

#: How long it may be silent: `tail -f | send` has nothing to say.
SILENT_SECONDS: Final = 15.0

#: Steps that install, with the network of this machine.
ONLINE: Final = re.compile(
    r"pip (install|wheel)|scripts/(wheel|quickstart)\.py|apt-get"
)

#: Steps that start servers, and those of them that bring a name server.
SERVER: Final = re.compile(
    r"(rocketbroker (standalone|(broker|namesrv|proxy) run)|twistd -n \w+)\b"
)
FIRST_SERVER: Final = re.compile(
    r"rocketbroker (standalone|namesrv run)|twistd -n namesrv"
)

#: What servers say when they can be used.
READY: Final = re.compile(r"^ready: |\"event\": ?\"ready\"|boot success", re.MULTILINE)

#: Steps that run until they are stopped.
ENDLESS: Final = re.compile(
    r"rocketbroker top\b|--watch|--follow|export follow|tail -f|uvicorn --|manage\.py "
)

#: Steps that ask whether they should.
ASKING: Final = re.compile(r"namesrv wipe|store truncate (?!.*--(dry-run|yes))")

#: Steps that work on a store which no broker uses.
STOPPED: Final = re.compile(r"store (repair|truncate)|--store |store/commitlog")

#: Steps that ask servers: verbs, programs with the address, curl; verbs that do not.
ASKS: Final = re.compile(r"(^|[|] |\$\()rocketbroker \w|127\.0\.0\.1:|curl ")
OFFLINE: Final = re.compile(r"rocketbroker (store|export (status|verify|report)) ")

#: Statuses of a program that was interrupted: with SIGINT, or for nobody reads it.
INTERRUPTED: Final = (0, 130, 141, -signal.SIGINT)

#: The status of `export run` if there is nothing new.
NOTHING_NEW: Final = 3

#: What a page needs that a reader has from before: topics with messages.
STOCK: Final = """
mkdir -p /var/rocketmq && ln -sfn ~/store /var/rocketmq/store
for topic in Invoices Copies; do
    rocketbroker topic show $topic >/dev/null 2>&1 ||
        rocketbroker topic create $topic
done
for topic in Orders Payments; do
    rocketbroker topic show $topic >/dev/null 2>&1 ||
        rocketbroker topic create $topic -q 8
    rocketbroker message send $topic --tag paid < stock.txt
done
"""

#: What a reader of README.rst has besides who exports this topic, too.
PAYMENTS: Final = """
rocketbroker topic show Payments >/dev/null 2>&1 ||
    rocketbroker message send Payments --tag paid < stock.txt
"""

#: Pages whose reader has a store of his own: those before shrink topics, and a topic
#: that was created again is not exported into the same directory.
NEW_STORE: Final = ("docs/export.rst",)

#: What a run of an export leaves that died: a plan that nobody can carry out.
DEAD_PLAN: Final = """
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.open_storage import open_storage
from rocketbroker.export.plans import FileTask, Plan, file_path, read_plan
from rocketbroker.sources.ranges import Range

storage = open_storage("/data/lake")
ledger = Ledger(storage)
numbers = range(1, ledger.next_number())
plans = (storage.read(f"_rocketbroker/plans/{n:08}.json") for n in numbers)
last = next(plan for plan in map(read_plan, plans) if plan.topic == "Orders")
wanted = Range(last.ranges[0].queue, 10**6, 10**6 + 1)
file = FileTask(file_path([wanted], 0), (wanted,))
ledger.take_lease({})
ledger.write_plan(Plan(ledger.next_number(), "Orders", 1, (wanted,), (file,)))
ledger.release()
"""

#: What a reader has who advertises a port that is forwarded: from, to.
FORWARD: Final = """
import asyncio, sys

async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()

async def accepted(reader, writer):
    inner, outer = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    ways = copy(reader, outer), copy(inner, writer)
    await asyncio.gather(*ways, return_exceptions=True)

async def main():
    server = await asyncio.start_server(accepted, "0.0.0.0", int(sys.argv[1]))
    await server.serve_forever()

asyncio.run(main())
"""

#: Where S3 listens in the scene, and what AWS's libraries look for.
S3: Final = "127.0.0.1:9000"
CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "reader",
    "AWS_SECRET_ACCESS_KEY": "reader",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ENDPOINT_URL": f"http://{S3}",
}

#: Two messages in a new store, and where they begin.
TWO_MESSAGES: Final = """
rocketbroker topic create Orders -q 1 >/dev/null
head -c {size} /dev/zero | tr '\\\\0' x | rocketbroker message send Orders
echo second | rocketbroker message send Orders
rocketbroker store cat ~/store Orders --output jsonl
"""

#: A reader's files, in the folder in which he is.
FILES: Final = {
    "orders.txt": "".join(f"order {n}\n" for n in range(4000)),
    "orders.log": "".join(f"order {n} paid\n" for n in range(10)),
    "stock.txt": "".join(f"paid invoice {n}\n" for n in range(100)),
}


class StepFailed(Exception):
    """A step has not done what the page says; the text is what it printed."""


class Walk:
    """A reader in a scene.

    @ivar scene: where he is.
    @ivar is_short: whether the environment of this Python helps him.
    """

    def __init__(self, scene: Scene, is_short: bool) -> None:
        self.scene = scene
        self.is_short = is_short
        self.variables = dict(scene.variables)
        self._servers: list[tuple[Step, subprocess.Popen[bytes], Path]] = []
        self._folder = Path(tempfile.mkdtemp(prefix="walk-logs-"))
        self._stocked = ""
        self._is_new_page = False
        for name, text in FILES.items():
            scene.path(f"{HOME}/rocketbroker/{name}").write_text(text)

    def take(self, step: Step) -> None:
        """Do a step, and what it needs before.

        @raise StepFailed: it did not work.
        """
        if step.kind == "settings":
            self.look_up(step)
            return
        if step.kind == "text":
            raise StepFailed("neither a command nor in scripts/walk_reasons.py")
        self.prepare(step)
        if step.kind == "address":
            self.look_at(step)
        elif step.text.startswith("systemctl "):
            self.play_systemd(step)
        elif step.kind == "python":
            self.finish(step, "python3", "-c", step.text)
        elif step.kind == "sql":
            self.query(step)
        elif SERVER.match(step.text):
            self.serve(step)
        elif ENDLESS.search(step.text):
            self.watch(step)
        elif ASKING.search(step.text):
            self.agree(step)
        else:
            self.finish(step)
        if self.is_short and step.text.startswith("pip install . "):
            self.lend()

    def turn_page(self) -> None:
        """Begin a page: its commands do not meet the servers of the last one."""
        self._is_new_page = True

    def look_up(self, step: Step) -> None:
        """Whether all settings of a block are known."""
        known = (ROOT / "docs" / "settings.rst").read_text("utf-8")
        for line in step.text.splitlines():
            name = line.partition("=")[0]
            if f"``{name}``" not in known:
                raise StepFailed(f"docs/settings.rst does not know {name}")

    def look_at(self, step: Step) -> None:
        """Whether a broker has an address, whatever it says there."""
        url = f"http://127.0.0.1:5557{step.text}"
        words = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url)
        if (code := self.finish(step, *words)) not in ("200", "503"):
            raise StepFailed(f"answers {code}")

    def prepare(self, step: Step) -> None:
        """Bring up what a step needs, or stop what it must not meet."""
        if ONLINE.search(step.text) or SERVER.match(step.text):
            return
        if "s3://" in step.text and "AWS_ENDPOINT_URL" not in self.variables:
            self.bring_s3(step)
        if "export abandon" in step.text:
            self.finish(step._replace(text=""), "python3", "-c", DEAD_PLAN)
        if found := re.search(r"store truncate .*--to (\d+) --dry-run", step.text):
            self.leave_message_at(step, int(found[1]))
        if "export run Orders Payments --store" in step.text:
            self.give(step, PAYMENTS)
        if STOPPED.search(step.text):
            self.stop()
            return
        is_address = step.kind == "address"
        if self._is_new_page and not is_address:
            self.stop()
            if step.page in NEW_STORE:
                self.finish(step._replace(text="rm -rf ~/store /data/*"))
        if OFFLINE.match(step.text) or not (is_address or ASKS.search(step.text)):
            return
        self.give(step, "")
        if is_address:
            return
        if self._stocked != step.page and step.page != "README.rst":
            self._stocked = step.page
            self.give(step, STOCK)

    def give(self, step: Step, text: str) -> None:
        """Have a broker that runs, and do to it what a step needs.

        @param text: the commands; empty if the broker is enough.
        """
        if not self._servers:
            self.serve(step._replace(text="rocketbroker standalone"))
        if text:
            self.finish(step._replace(text=text))

    def bring_s3(self, step: Step) -> None:
        """Start S3 in the network of the scene, with the bucket of the pages."""
        host, port = S3.split(":")
        self.scene.start(sys.executable, "-m", "moto.server", "-H", host, "-p", port)
        self.variables |= CREDENTIALS
        made = f"curl -s --retry 30 --retry-connrefused -X PUT http://{S3}/lake"
        self.finish(step._replace(text=made))

    def leave_message_at(self, step: Step, position: int) -> None:
        """Make a store of two messages, of which the second begins at a position."""
        size = 1
        while True:
            self.stop()
            self.finish(step._replace(text="rm -rf ~/store"))
            self.serve(step._replace(text="rocketbroker standalone"))
            output = self.finish(step._replace(text=TWO_MESSAGES.format(size=size)))
            rows = [line for line in output.split("\n") if line.startswith("{")]
            offsets = [json.loads(row)["position"] for row in rows]
            if max(offsets) == position:
                return
            if size > 1:
                raise StepFailed(f"no message can begin at {position}: {offsets}")
            size += position - max(offsets)

    def finish(self, step: Step, *words: str) -> str:
        """Run a step to its end, with the variables that those before have left.

        @param words: the program; else a shell.
        @return: what it prints.
        """
        shell = 'eval "$1"; status=$?; env -0 >/tmp/variables; exit $status'
        words = words or ("bash", "-c", shell, "bash", step.text)
        done = subprocess.run(
            self.call(step, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        fine = (0, NOTHING_NEW) if "export run" in step.text else (0,)
        if done.returncode not in fine or "Traceback" in output:
            raise StepFailed(f"exit status {done.returncode}\n{output}")
        for line in step.output.splitlines():
            if line not in output:
                raise StepFailed(f"does not print {line!r} but\n{output}")
        kept = self.scene.path("/tmp/variables")
        if words[0] == "bash" and kept.exists():
            entries = kept.read_bytes().decode().split("\0")
            self.variables = dict(e.split("=", 1) for e in entries if "=" in e)
        return output

    def call(self, step: Step, *words: str) -> list[str]:
        """The words of a process that does something of a step."""
        names = [f"{name}={value}" for name, value in self.variables.items()]
        online = bool(ONLINE.search(step.text))
        return self.scene.call(online, "env", "-i", *names, *words)

    def query(self, step: Step) -> None:
        """Ask DuckDB."""
        program = f"import duckdb; duckdb.sql({step.text!r}).show()"
        self.finish(step, "python3", "-c", program)

    def serve(self, step: Step) -> None:
        """Start a server, and wait until it can be used."""
        if FIRST_SERVER.match(step.text):
            self.stop()
        if found := re.search(r"--advertise \S+:(\d+)", step.text):
            self.scene.start(sys.executable, "-c", FORWARD, found[1], "10911")
        log = self._folder / f"server-{time.monotonic_ns()}"
        with open(log, "wb") as file:
            process = subprocess.Popen(
                self.call(step, "bash", "-c", f"exec {step.text}"),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        end = time.monotonic() + SECONDS
        while not READY.search(log.read_text("utf-8", "replace")):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise StepFailed(f"is not ready:\n{log.read_text()}")
            time.sleep(0.05)
        self._servers.append((step, process, log))

    def play_systemd(self, step: Step) -> None:
        """Start what units say, as their users: there is no systemd to do so."""
        self.stop()
        for name in re.findall(r"rocketbroker[\w-]*", step.text):
            path = self.scene.path(f"/etc/systemd/system/{name}.service")
            unit = dict(
                line.split("=", 1)
                for line in path.read_text().splitlines()
                if re.match(r"\w+=", line)
            )
            user, state = unit["User"], f"/var/lib/{unit['StateDirectory']}"
            made = f"mkdir -p {state} && chown {user} {state}"
            self.finish(step._replace(text=made))
            clean = f"env -i {unit['Environment']} {unit['ExecStart']}"
            self.serve(step._replace(text=f"runuser -u {user} -- {clean}"))

    def stop(self) -> None:
        """Stop all servers, the last one first.

        @raise StepFailed: one ended otherwise than it should.
        """
        servers, self._servers = self._servers, []
        self._is_new_page = False
        failed = ""
        for step, process, log in reversed(servers):
            # nsenter leaves a parent, which would end without its child.
            for child in children(process.pid):
                os.kill(child, signal.SIGTERM)
            code = process.wait(SECONDS)
            text = log.read_text("utf-8", "replace")
            if code not in (0, 143, -signal.SIGTERM) or "Traceback" in text:
                failed += f"{step.text}\nended with status {code}\n{text}"
        if failed:
            raise StepFailed(failed)

    def watch(self, step: Step) -> None:
        """Look at something endless on a terminal, then press Ctrl-C."""
        with self.terminal(step) as (screen, process):
            output = seen(screen, SILENT_SECONDS, is_first=True)
            output += seen(screen, WATCHED_SECONDS, is_first=False)
            early = process.poll()
            os.write(screen, b"\x03")
            output += seen(screen, SECONDS, is_first=False)
            code = process.wait(SECONDS)
        text = output.decode("utf-8", "replace")
        if early is not None:
            raise StepFailed(f"ended by itself, with status {early}\n{text}")
        if code not in INTERRUPTED or "Traceback" in text:
            raise StepFailed(f"exit status {code}\n{text}")

    def agree(self, step: Step) -> None:
        """Say yes to what a command asks."""
        with self.terminal(step) as (screen, process):
            output = seen(screen, SECONDS, is_first=True)
            os.write(screen, b"y\n")
            output += seen(screen, SECONDS, is_first=False)
            code = process.wait(SECONDS)
        text = output.decode("utf-8", "replace")
        if code or "Traceback" in text:
            raise StepFailed(f"exit status {code}\n{text}")

    @contextlib.contextmanager
    def terminal(self, step: Step) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        """Begin a step on a terminal: its screen, and the process."""
        screen, terminal = pty.openpty()
        try:
            process = subprocess.Popen(
                self.call(step, "setsid", "--ctty", "--wait", "bash", "-c", step.text),
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
                start_new_session=True,
            )
            os.close(terminal)
            yield screen, process
        finally:
            os.close(screen)

    def lend(self) -> None:
        """Show the packages of this environment behind those that were installed."""
        places = self.scene.path(self.variables["VIRTUAL_ENV"]).glob("lib/python3*")
        for place in places:
            path = place / "site-packages" / "lent.pth"
            path.write_text(sysconfig.get_path("purelib") + "\n")


def children(pid: int) -> Iterator[int]:
    """The last processes below one."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    yield from map(int, found)


def seen(screen: int, seconds: float, is_first: bool) -> bytes:
    """What comes from a terminal, until its end or for so long.

    @param is_first: the first bytes are enough.
    """
    found = b""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not (found and is_first):
        if select.select([screen], [], [], left)[0]:
            try:
                found += os.read(screen, 65536)
            except OSError:
                # Nobody holds the terminal any more.
                break
    return found


def run(walk: Walk, steps: list[Step]) -> int:
    """Take the steps; say of each what came of it. The exit status."""
    counts = {"done": 0, "left out": 0, "failed": 0}
    page = ""
    for step in steps:
        first = step.text.splitlines()[0]
        if step.page != page:
            walk.turn_page()
        page = step.page
        begun = time.monotonic()
        reason = reason_for(step, walk.is_short)
        if reason == UNITS and not walk.is_short:
            reason = ""
        if not reason and "s3://" in step.text and not find_spec("moto"):
            reason = "needs moto in this Python's environment"
        if reason:
            counts["left out"] += 1
            print(f"{step.where}: left out: {first}\n    {reason}", flush=True)
            continue
        try:
            walk.take(step)
        except (StepFailed, subprocess.TimeoutExpired) as error:
            counts["failed"] += 1
            print(f"{step.where}: FAILED: {step.text}\n{error}", flush=True)
        else:
            counts["done"] += 1
            seconds = time.monotonic() - begun
            print(f"{step.where}: {seconds:.1f} s: {first}", flush=True)
    try:
        walk.stop()
    except StepFailed as error:
        counts["failed"] += 1
        print(f"{page}: at its end\n{error}", flush=True)
    for entry in stale(all_steps()):
        counts["failed"] += 1
        print(f"FAILED: scripts/walk_reasons.py: no step begins with {entry.start!r}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["failed"] else 0


@contextlib.contextmanager
def scene_for(words: argparse.Namespace) -> Iterator[Scene]:
    """The scene that the command line asks for."""
    if not words.bare:
        shown = [Path(sys.base_prefix), Path(sys.prefix)]
        lines = os.environ.get("PIP_FIND_LINKS", "")
        shown += [Path(place) for place in shlex.split(lines) if place.startswith("/")]
        usable = [
            path
            for path in dict.fromkeys(shown)
            if path.exists() and not path.is_relative_to("/usr")
        ]
        with borrowed(usable) as scene:
            scene.variables["PATH"] = f"{sys.base_prefix}/bin:{scene.variables['PATH']}"
            # Most modules are never imported, so that compiling all of them is dear.
            scene.variables["PIP_NO_COMPILE"] = "1"
            yield scene
        return
    with contextlib.ExitStack() as stack:
        folder = words.root
        if folder is None:
            made = tempfile.TemporaryDirectory(prefix="walk-")
            folder = Path(stack.enter_context(made))
            bare(folder)
        connect(folder)
        scene = Scene(folder, [])
        stack.callback(scene.close)
        yield scene


def main() -> int:
    """Walk."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bare", action="store_true", help="in a new Debian")
    parser.add_argument("--root", type=Path, metavar="DIR", help="with --bare: which")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="[default: all]")
    words = parser.parse_args()
    # Whoever reads one page has installed it.
    steps = [
        step
        for step in all_steps()
        if not words.pages
        or step.page in words.pages
        or re.match(r"python3 -m venv ~|pip install", step.text)
    ]
    # A shell lets what it runs in the background ignore Ctrl-C, with all children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with scene_for(words) as scene:
            return run(Walk(scene, not words.bare), steps)
    except SceneError as error:
        print(f"walk.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
