"""The compiled form of the hot path: built in a copy of the checkout.

Nothing compiled ever lies beside the sources of the checkout, where Python would prefer
it to them, however old it is. C{scripts/wheel.py} makes a wheel of such a copy;
C{scripts/test.py --compiled} runs tests in one, and scripts that measure do so with
C{--compiled}. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: What compiles, beside what rocketbroker needs, of which it reads the types; librt,
#: whose words in bytes it makes, comes with it.
COMPILER = ("mypy[mypyc] >= 2.4", "mypy-zope >= 1.0.13", "setuptools >= 77")

#: The modules that are compiled, as one extension: the codec, which is written for it,
#: and ordinary code that runs for each connection that is ready, each turn, each pull.
MODULES = tuple(
    f"rocketbroker/{name}.py"
    for name in (
        "broker/metadata/offsets",
        "broker/pull/pull",
        "broker/pull/pull_checks",
        "broker/pull/pull_messages",
        "broker/appends/ack_rule",
        "broker/appends/append_batcher",
        "broker/send/hot_sends",
        "broker/appends/overload",
        "broker/appends/send_answers",
        "broker/appends/group_commit",
        "broker/storage/store_scheduler",
        "codec/batches",
        "codec/append",
        "codec/entries",
        "codec/keys",
        "codec/received",
        "codec/scanning",
        "codec/sends",
        "files/disk",
        "files/open_files",
        "remoting/command_channel",
        "remoting/counts",
        "remoting/hub",
        "remoting/hubconnection",
        "remoting/table",
        "remoting/turns",
        "replication/master",
        "replication/socket_writer",
        "replication/slave",
        "replication/transfer_rate",
        "store/commitlog/received",
        "store/commitlog/segment",
        "store/commitlog/segments",
        "store/commitlog/writer",
        "store/consumequeue/files",
        "store/consumequeue/queue",
        "store/dispatch/dispatcher",
        "store/dispatch/replaying",
        "store/index/buffer",
        "store/index/file",
        "store/index/keys",
        "store/message_store",
        "store/reading/checked_read",
        "store/sharing/joined_reading",
        "store/reading/property_filter",
        "store/reading/pull",
        "store/reads",
        "store/sharing/joined_store",
        "wire/hastream",
        "workers/link",
        "workers/link_frames",
        "workers/worker_pulls",
        "workers/worker_sends",
        "workers/owner_link",
        "workers/relay",
        "workers/relayed_socket",
    )
)

#: What a copy needs; tests read the documents, too.
COPIED = (
    ".github",
    "CHANGES.rst",
    "CONTRIBUTING.rst",
    "LICENSE",
    "README.rst",
    "SECURITY.rst",
    "docs",
    "etc",
    "pyproject.toml",
    "pyspark_rocketmq",
    "rocketbroker",
    "scripts",
    "setup.cfg",
    "tests",
    "twisted_plugins",
)

_SETUP = """\
from mypyc.build import mypycify
from setuptools import setup

setup(
    ext_modules=mypycify(
        ["--config-file=setup.cfg", "--strict", *{modules!r}],
        opt_level="3",
        group_name="rocketbroker_codec",
    )
)
"""


def copy(folder: Path) -> None:
    """Copy the checkout into C{folder}, with a setup.py that compiles the codec."""
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info", "_trial_temp*")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / "setup.py").write_text(_SETUP.format(modules=list(MODULES)))


def quietly(command: list[str], folder: Path) -> None:
    """Run a command; what it says is shown if it fails."""
    done = subprocess.run(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")


def in_copy(python: Path, script: str, *words: str) -> int:
    """Run a script of the checkout in a copy with the compiled codec; its exit status.

    @param python: has what the script needs, and mypy.
    @param script: its path in the checkout.
    """
    with tempfile.TemporaryDirectory(prefix="rocketbroker-compiled-") as made:
        folder = Path(made)
        copy(folder)
        build = [str(python), "setup.py", "build_ext", "--inplace", "--parallel", "2"]
        quietly(build, folder)
        variables = {
            **os.environ,
            "ROCKETBROKER_FORM": "compiled",
            "PYTHONPATH": os.pathsep.join(
                map(str, (folder, folder / "twisted_plugins"))
            ),
        }
        command = [str(python), script, *words]
        return subprocess.run(command, cwd=folder, env=variables).returncode


def inside(python: Path, script: str) -> int:
    """Run a script again with the words of this call and C{--inside}: with another
    Python, and with C{--compiled} in such a copy; its exit status.

    @param script: its path in the checkout.
    """
    # Paths of files have to be good there, too.
    words = [str(Path(w).resolve()) if Path(w).exists() else w for w in sys.argv[1:]]
    if "--compiled" in words:
        return in_copy(python, script, "--inside", *words)
    return subprocess.call([str(python), str(ROOT / script), "--inside", *words])
