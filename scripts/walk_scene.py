"""Where the pages are walked: a root, and namespaces of its own.

The root is that of a new machine: an empty home, nothing in /data, the checkout as
after `git clone`. Processes, mounts, the host's name and the network are its own, so
servers have their default ports there, whatever runs on this machine. Steps that
install something see the network of this machine instead.

    borrowed   /usr and what else is needed of this machine, read only; the rest empty
    bare       a directory that debootstrap has filled

Needs Linux and root. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent

#: The reader's home directory, in the root of the walk, and the clone in it.
HOME: Final = "/srv/reader"
CLONE: Final = f"{HOME}/rocketbroker"

#: The host's name: brokers without a name have it, and pages say broker-a.
HOST: Final = "broker-a"

#: Addresses of which pages speak as of the host's, and names as of other machines.
ADDRESS: Final = "192.168.1.20"
NAMES: Final = "127.0.0.1 localhost broker-a SLAVE names-1 names-2\n"

#: Variables that go on into the scene: how package indexes are reached and trusted.
HANDED_ON: Final = ("PIP_", "SSL_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "JAVA_HOME")
PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy")

#: Requests of ioctl, from linux/sockios.h, and the flag of an interface that is up.
SIOCSIFFLAGS: Final = 0x8914
SIOCSIFADDR: Final = 0x8916
IFF_UP: Final = 0x1

#: Of the packages of a bare root those that a reader is supposed to have: Python, the
#: tools of the pages, a C compiler, and the certificates of package indexes.
PACKAGES: Final = (
    "ca-certificates,curl,gcc,git,jq,libc6-dev,passwd,procps,python3-dev,python3-pip,"
    "python3-venv,systemd"
)


class SceneError(Exception):
    """There can be no scene here; the text is one sentence."""


def copy_checkout(target: Path) -> None:
    """What a fresh clone of this checkout has, with what is not committed yet."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        source = ROOT / name
        if name and source.is_file():
            place = target / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def kept(variables: Mapping[str, str]) -> dict[str, str]:
    """Of the variables of this process those that a step has."""
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(HANDED_ON) or name.lower() in PROXIES
    }


def bind(source: Path, root: Path) -> None:
    """Show a directory or a file of this machine at the same place, read only."""
    target = root / source.relative_to("/")
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount("--rbind", str(source), str(target))
    mount("-o", "remount,bind,ro", str(target))


def mount(*words: str) -> None:
    """Call mount."""
    subprocess.run(["mount", *words], check=True)


def borrow(root: Path, more: list[Path]) -> None:
    """Make a root out of this machine's: its programs, and copies of its settings.

    @param more: what else is shown there.
    """
    mount("-t", "tmpfs", "-o", "mode=0755", "none", str(root))
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        place = Path("/", name)
        if place.is_symlink():
            (root / name).symlink_to(os.readlink(place))
        elif place.is_dir():
            bind(place, root)
    bind(Path("/usr"), root)
    shutil.copytree("/etc", root / "etc", symlinks=True, copy_function=copied)
    shutil.rmtree(root / "etc" / "rocketbroker", ignore_errors=True)
    for source in more:
        bind(source, root)


def copied(source: str, target: str) -> None:
    """Copy a file with its owner; one that is gone meanwhile is left out."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)
        found = os.stat(source)
        os.chown(target, found.st_uid, found.st_gid)


def furnish(root: Path) -> None:
    """Mount what every root has, and name hosts; called in the namespaces."""
    for name in ("proc", "dev", "tmp", "data", "run", "var/tmp", "var/lib", "home"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc" / "systemd" / "system").mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    mount("-t", "proc", "proc", str(root / "proc"))
    mount("--rbind", "/dev", str(root / "dev"))
    for name in ("hosts", "hostname"):
        (root / "etc" / name).unlink(missing_ok=True)
    (root / "etc" / "hosts").write_text(NAMES)
    (root / "etc" / "hostname").write_text(f"{HOST}\n")
    socket.sethostname(HOST)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        up = struct.pack("16sh14x", b"lo", IFF_UP)
        fcntl.ioctl(asked, SIOCSIFFLAGS, up)
        address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(ADDRESS))
        fcntl.ioctl(asked, SIOCSIFADDR, struct.pack("16s16s", b"lo:1", address))


def hold() -> None:
    """The first process of the namespaces: make the root, say so, and wait.

    Called as C{python3 -m scripts.walk_scene ROOT [SHOWN...]}; with something that is
    shown it borrows.
    """
    root, *shown = map(Path, sys.argv[1:])
    if shown:
        borrow(root, shown)
    furnish(root)
    # Nobody waits for what steps leave behind.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("furnished", flush=True)
    # Its end is the end of all processes here.
    signal.pause()


class Scene:
    """A root with its namespaces, in which steps are run.

    @ivar root: the root, as the steps see it from this machine: use L{path}.
    """

    def __init__(self, root: Path, shown: list[Path]) -> None:
        """
        @param root: a directory: an empty one to borrow, or a bare root.
        @param shown: what of this machine is shown besides; empty for a bare root.
        """
        if os.geteuid() != 0:
            raise SceneError("walking the pages needs root, for namespaces of its own")
        self.root = root
        words = "unshare --mount --net --pid --uts --fork --kill-child".split()
        self._helpers: list[subprocess.Popen[bytes]] = []
        self._holder = subprocess.Popen(
            [*words, "--propagation", "private", "--", sys.executable, "-u"]
            + ["-m", "scripts.walk_scene", *map(str, (root, *shown))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "furnished\n":
            self._holder.wait()
            raise SceneError("no namespaces can be made here, see above")
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self._first = int(children.read_text().split()[0])
        copy_checkout(self.path(CLONE))
        self.variables = {
            **kept(os.environ),
            "HOME": HOME,
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONUNBUFFERED": "1",
            "TERM": "xterm",
            "USER": "root",
        }

    def path(self, inside: str) -> Path:
        """A place of the scene, as this process reaches it."""
        return Path(f"/proc/{self._first}/root{self.root}") / inside.lstrip("/")

    def call(self, is_online: bool, *words: str) -> list[str]:
        """The words of a process that runs a program in the scene.

        @param is_online: whether it has this machine's network instead of its own.
        """
        enter = ["nsenter", f"--target={self._first}", "--mount", "--pid", "--uts"]
        enter += [] if is_online else ["--net"]
        # chroot of coreutils would go to /; a step begins in the clone.
        inside = 'cd "$1" && shift && exec "$@"'
        return [
            *enter,
            "chroot",
            str(self.root),
            "sh",
            "-c",
            inside,
            "sh",
            CLONE,
            *words,
        ]

    def start(self, *words: str) -> None:
        """Run a program of this machine in the network of the scene, until its end."""
        silent = subprocess.DEVNULL
        enter = ["nsenter", f"--target={self._first}", "--net"]
        self._helpers.append(
            subprocess.Popen([*enter, *words], stdout=silent, stderr=silent)
        )

    def close(self) -> None:
        """End everything that runs there."""
        for helper in self._helpers:
            helper.kill()
            helper.wait()
        self._holder.kill()
        self._holder.wait()


@contextlib.contextmanager
def borrowed(shown: list[Path]) -> Iterator[Scene]:
    """A scene out of this machine's programs."""
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        scene = Scene(Path(folder), shown)
        try:
            yield scene
        finally:
            scene.close()


def mirror() -> tuple[str, str]:
    """The address and the name of the Debian that this machine installs from."""
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    name = release["VERSION_CODENAME"].strip('"')
    policy = subprocess.run(
        ["apt-cache", "policy"], capture_output=True, text=True, check=True
    ).stdout
    for line in policy.splitlines():
        words = line.split()
        if (
            len(words) > 2
            and words[1].startswith("http")
            and words[2] == f"{name}/main"
        ):
            return words[1], name
    raise SceneError(f"apt-cache policy names no mirror of {name}/main")


def bare(folder: Path) -> None:
    """Fill a directory with a small Debian, which users of its own may enter."""
    if shutil.which("debootstrap") is None:
        raise SceneError("debootstrap is missing: apt-get install debootstrap")
    address, name = mirror()
    include = f"--include={PACKAGES}"
    subprocess.run(
        ["debootstrap", "--variant=minbase", include, name, str(folder), address],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    # One for temporary files is its owner's alone.
    folder.chmod(0o755)


def connect(folder: Path) -> None:
    """Give a root what this machine's files say of names and package indexes."""
    for place in ("/etc/resolv.conf", "/etc/pip.conf", *kept(os.environ).values()):
        source, target = Path(place), folder / place.lstrip("/")
        if not (source.is_absolute() and source.exists()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_dir():
            # A link there would lead to a file of this machine.
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)
        elif not target.exists():
            shutil.copytree(source, target)


if __name__ == "__main__":
    hold()
