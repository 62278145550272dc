"""What the faces of the client have in common."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

from rocketbroker.client import errors
from scripts.lab.servers import ROOT, environment

#: Names of servers and options that C{connect} refuses.
NO_CONNECTIONS: list[tuple[Any, dict[str, Any]]] = [
    ("nowhere", {}),
    ([], {}),
    ("a:1", {"second": 5}),
    ("a:1", {"seconds": -5}),
    ("a:1", {"compress": "rar"}),
    ("a:1 b:2", {}),
    (5, {}),
    ("a:1", {"patience": float("nan")}),
    ("a:1", {"avoid_slow": "yes"}),
    ("a:1", {"instance_name": 5}),
]

#: Topics, groups and options that C{consumer} and C{on} refuse.
NO_CONSUMERS: list[tuple[Any, Any, dict[str, Any]]] = [
    ("T", "", {}),
    ("T", None, {}),
    ("a b", "G", {}),
    ("T", "G", {"tags": "a > 5"}),
    ("T", "G", {"start": "first"}),
    ("T", "G", {"wait": None}),
    ("T", "G", {"tag": "a"}),
    ("T", "G", {"tags": 5}),
    ("T", "G", {"sql": 5}),
    ("T", "G", {"start": True}),
    ("T", "G", {"ordered": "yes"}),
    ("T", "G", {"max_attempts": "5"}),
    ("T", "G", {"prefetch": "5"}),
]

#: What a program that sends and receives needs none of.
OTHERS = (
    *("rocketbroker.app", "rocketbroker.blocking", "rocketbroker.broker"),
    *("rocketbroker.cli", "rocketbroker.nameserver", "rocketbroker.remoting"),
    *("rocketbroker.store", "click", "prometheus_client", "rich", "yaml"),
)


def loaded(program: str, *names: str) -> str:
    """Which of these packages a fresh process has when it has run a program."""
    show = f"import sys\nprint(*[name for name in {names!r} if name in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", f"{program}\n{show}"],
        capture_output=True,
        cwd=ROOT,
        env=environment(),
        check=False,
    )
    return (found.stdout + found.stderr).decode().strip()


#: Errors that users of every face catch.
ERRORS = [*errors.__all__]


def missing(module: ModuleType) -> list[str]:
    """The names that a package tells and does not have."""
    return [name for name in module.__all__ if not hasattr(module, name)]
