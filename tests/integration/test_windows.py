"""The commands where Python lacks what Windows lacks."""

from __future__ import annotations

import json
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.windows import SENTENCE
from tests.integration.scripts import ROOT

#: Takes from Python what it does not have on Windows; calls the command with each of
#: several command lines, and prints the exit statuses and all that was said.
PROGRAM = """
import contextlib, importlib, io, json, os, pkgutil, select, socket, sys

for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp"):
    sys.modules[name] = None
for name in [name for name in vars(select) if name.lower().lstrip("e")[:4] == "poll"]:
    delattr(select, name)
for name in ("fork", "pread", "pwrite", "statvfs", "O_DIRECTORY", "O_CLOEXEC"):
    delattr(os, name)
del socket.AF_UNIX

import rocketbroker.blocking
from rocketbroker.cli.command import main
from rocketbroker.cli.cluster import verbs

for module in pkgutil.iter_modules(verbs.__path__):
    if module.name != "doctor_machine":
        importlib.import_module(f"rocketbroker.cli.cluster.verbs.{module.name}")
found = []
for line in json.loads(sys.argv[1]):
    sys.argv = ["rocketbroker", *line]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            found.append((end.code, said.getvalue()))
        else:
            found.append((0, said.getvalue()))
print(json.dumps(found))
"""


class WindowsTests(SynchronousTestCase):
    """C{rocketbroker}."""

    def test_clientsRunAndServersRefuse(self) -> None:
        """Commands on a cluster speak to it; servers and stores say that they do not
        run there."""
        lines = [
            ["--help"],
            ["topic", "ls", "-n", "127.0.0.1:1"],
            ["standalone"],
            ["broker", "run"],
            ["namesrv", "run"],
            ["store", "ls", "."],
            ["doctor", "--config", "setup.cfg"],
        ]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(lines)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.stderr, "")
        (_, told), (status, refused), *others = json.loads(done.stdout)
        self.assertIn("doctor", told)
        self.assertEqual(status, 1)
        self.assertIn("127.0.0.1:1", refused)
        for each in others:
            self.assertEqual(each, [1, f"rocketbroker: {SENTENCE}\n"])
