"""What docs/architecture.rst says of modules and request codes is true."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any, cast

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.codes import RequestCode
from tests.broker.rig import Rig

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "architecture.rst").read_text("utf-8")


def documented(heading: str) -> str:
    """The rows of the table of request codes under a heading."""
    after = TEXT.split(f"\n{heading}", 1)[1]
    return re.split(r"\n=====+ +=.*\n", after, maxsplit=3)[2]


def served(table: ResponderTable) -> str:
    """The rows that the table should have."""
    rows = []
    for code, responder in sorted(table.responders.items()):
        if isinstance(responder, partial):
            # Of a room that is made by its first request.
            responder = cast(Any, responder.func).__self__.responder(code)
        function = getattr(responder, "__func__", responder)
        module = str(function.__module__).removeprefix("rocketbroker.")
        rows.append(f"{code:<5}  {RequestCode(code).name:<42}  ``{module}``")
    return "\n".join(rows)


class ArchitectureTests(SynchronousTestCase):
    """The document beside the code."""

    maxDiff = None

    def test_modules(self) -> None:
        """Each module and package that is named exists."""
        tops = {path.stem for path in (ROOT / "rocketbroker").iterdir()}
        wrong = []
        for name in re.findall(r"``([a-z_]+(?:\.[a-z_]+)+)``", TEXT):
            path = ROOT.joinpath("rocketbroker", *name.split("."))
            if name.split(".")[0] in tops:
                there = path.with_suffix(".py").exists() or path.is_dir()
                if not there:
                    wrong.append(name)
        self.assertEqual(wrong, [])

    def test_brokersCodes(self) -> None:
        """The table of the broker's request codes is complete."""
        self.assertEqual(documented("Broker:"), served(Rig({}).broker.main))

    def test_nameServersCodes(self) -> None:
        """The table of the name server's request codes is complete."""
        server = NameServer(
            Clock(),
            NamesrvSettings.from_properties({}),
            MemoryDisk(),
            lambda: 0,
            at_once,
            lambda address, command: None,
        )
        self.assertEqual(documented("Name server ("), served(server.responders))
