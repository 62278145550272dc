#!/usr/bin/env python3
"""Build a wheel with the compiled codec for this machine, and prove that it works.

    python3 scripts/wheel.py [--into DIR] [--pure]

For x86-64 and arm64 alike: it compiles for the machine and the Python that it runs on,
and needs a C compiler. Everything is done in temporary folders: a copy of the checkout,
an environment with the compiler, and another into which the wheel is installed. There a
standalone broker is started, messages are sent and received, and the broker has to say
that its codec is compiled. Then the wheel is put into DIR (dist in the checkout).

--pure proves the same of C{pip install .}, without a compiler: that codec is pure.
Standard library only.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # whoever starts it may have an older one
    sys.exit(
        f"{sys.argv[0]} needs Python 3.11 or newer; this one, {sys.executable}, is "
        f"{sys.version.split()[0]}. With python3.11 or a later one it works."
    )

import argparse
import contextlib
import re
import shutil
import subprocess
import tempfile
import time
import venv
from configparser import ConfigParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.compiled import COMPILER, ROOT, copy, quietly

READY_SECONDS = 300.0

#: What a standalone says when it can be used, with the name server's address.
_READY = re.compile(r"^ready: .*name server ([^,\s]+),", re.MULTILINE)

#: Sends and receives with the installed rocketbroker.
_PROOF = """\
import sys

from rocketbroker.codec import build, sends
from rocketbroker.threads import connect

print(build.FORM, sends.__file__)
with connect(sys.argv[1]) as mq:
    for number in range(20):
        mq.send("Wheel", b"body %d" % number, keys=[f"k{number}"])
    bodies = set()
    with mq.consumer("Wheel", group="wheel", start="earliest") as messages:
        while len(bodies) < 20 and (message := messages.next(10)):
            bodies.add(message.body)
            message.ack()
assert bodies == {b"body %d" % number for number in range(20)}, bodies
"""


def made_environment(folder: Path, *packages: str) -> Path:
    """The Python of a new environment with these packages."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", *packages]
    quietly(install, folder)
    return python


def build(folder: Path) -> Path:
    """The wheel, in C{folder}."""
    tree = folder / "tree"
    tree.mkdir()
    copy(tree)
    settings = tree / "setup.cfg"
    parser = ConfigParser()
    parser.read(settings)
    needed = parser["options"]["install_requires"].strip().splitlines()
    python = made_environment(folder / "compiler", *COMPILER, *needed)
    # Compiled code calls librt at run time: not an older one than it was built with.
    show = [str(python), "-m", "pip", "show", "librt"]
    shown = subprocess.run(show, check=True, text=True, stdout=subprocess.PIPE).stdout
    found = re.search(r"^Version: (\S+)$", shown, re.M)
    assert found, shown
    first = f"install_requires =\n    librt >= {found[1]}\n"
    text = settings.read_text().replace("install_requires =\n", first, 1)
    settings.write_text(text)
    make = [str(python), "-m", "pip", "wheel", "--quiet", "--no-deps"]
    quietly([*make, "--no-build-isolation", f"--wheel-dir={folder}", "."], tree)
    (wheel,) = folder.glob("rocketbroker-*.whl")
    return wheel


def prove(folder: Path, package: str, form: str) -> None:
    """Install C{package}, and send and receive with it.

    @param form: what its codec has to be.
    """
    home = folder / "home"
    home.mkdir()
    python = made_environment(folder / "environment", package)
    log = home / "broker.log"
    command = [str(python.parent / "rocketbroker"), "standalone", "--temporary"]
    command += ["--namesrv-port", "0", "--port", "0", "--metrics-port", "off"]
    with open(log, "wb") as output:
        broker = subprocess.Popen(command, cwd=home, stdout=output, stderr=output)
    try:
        end = time.monotonic() + READY_SECONDS
        found = None
        while found is None:
            if time.monotonic() > end or broker.poll() is not None:
                sys.exit(f"the broker is not ready:\n{log.read_text()}")
            time.sleep(0.05)
            found = _READY.search(log.read_text())
        quietly([str(python), "-c", _PROOF, found[1]], home)
    finally:
        broker.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            broker.wait(30)
    if f"The codec of messages is {form}." not in log.read_text():
        sys.exit(f"the codec is not {form}:\n{log.read_text()}")
    print(f"{package}: {form}, 20 messages sent and received")


def main() -> int:
    """Build, prove, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    parser.add_argument("--pure", action="store_true")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rocketbroker-wheel-") as made:
        folder = Path(made)
        if words.pure:
            tree = folder / "tree"
            tree.mkdir()
            copy(tree)
            (tree / "setup.py").unlink()
            prove(folder, str(tree), "pure")
            return 0
        wheel = build(folder)
        prove(folder, str(wheel), "compiled")
        words.into.mkdir(exist_ok=True)
        shutil.copy(wheel, words.into)
        print(words.into / wheel.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
