"""What official gRPC clients do before each proxy, by trying it::

    python3 -m tests.integration.grpc_table [--scene NAME] [--client NAME] [--only NAME]

Prints a line per scenario; with C{--write} keeps what came of it in grpc_table.json,
from which L{tests.compatibility} makes a table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SkipTest

from tests.integration.grpc_scenarios import SCENARIOS
from tests.integration.grpc_scenes import (
    LACKS,
    SCENES,
    Scene,
    folder_of_its_own,
    outcome,
    users,
)
from tests.integration.official import NEWEST_GO, NEWEST_JAVA, OFFICIAL, PYTHON_VERSION

#: What came of all, by client, scenario and scene.
TABLE: Final = Path(__file__).with_suffix(".json")

#: The clients that continuous integration has, before our proxy and broker.
CONTINUOUS: Final = (f"Java {NEWEST_JAVA}", f"Python {PYTHON_VERSION}")

#: What is not as it should be before any proxy, because of the client.
NOTES: Final = {
    f"Go {NEWEST_GO}, failure in order": "the client goes on with the messages behind "
    "one that fails.",
}

#: How many clients work at the same time: most of it they wait.
AT_ONCE: Final = 3

Table = dict[str, dict[str, dict[str, str]]]


def tried(client: str, scene: Scene, only: list[str]) -> dict[str, str]:
    """What comes of the scenarios of a client; each with a line, as it ends."""
    found = {}
    with users(OFFICIAL[client], scene) as user:
        for name in only:
            begun = time.monotonic()
            found[name], words = outcome(name, user)
            seconds = f"{time.monotonic() - begun:.1f} s"
            print(f"  {client}: {name}: {found[name]} {words} ({seconds})", flush=True)
    return found


@dataclass
class Tried:
    """What came of clients in a scene.

    @ivar rows: the outcomes of scenarios, by client.
    @ivar missing: why the others could not run.
    """

    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def all_tried(clients: Sequence[str], scene: Scene, only: list[str]) -> Tried:
    """What comes of the scenarios of clients, some of which work at the same time."""
    found = Tried()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {each: pool.submit(tried, each, scene, only) for each in clients}
    for client, run in runs.items():
        try:
            found.rows[client] = run.result()
        except SkipTest as reason:
            found.missing.append(f"{client}: {reason}")
    return found


def recorded() -> Table:
    """What came of all, as it was kept."""
    found: Table = json.loads(TABLE.read_text("utf-8"))
    return found


def keep(scene: str, found: Tried) -> None:
    """Keep what came of clients in a scene."""
    table = recorded()
    for client, row in found.rows.items():
        for name, what in row.items():
            table.setdefault(client, {}).setdefault(name, {})[scene] = what
    text = json.dumps(table, indent=1, sort_keys=True)
    TABLE.write_text(text + "\n", "utf-8")


def table_rows(table: Table) -> Iterator[Sequence[str]]:
    """What came of all, a row for each scenario and a column for each client; where
    the scenes differ, one after the other."""
    for name in SCENARIOS:
        cells = [[table[client][name][scene] for scene in SCENES] for client in table]
        told = [" / ".join(each if len(set(each)) > 1 else each[:1]) for each in cells]
        # A cell that begins with the sign is a list.
        yield (name, *(f"\\{each}" if each == LACKS else each for each in told))


def main() -> int:
    """Try what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", action="append", choices=SCENES)
    parser.add_argument("--client", action="append", choices=OFFICIAL)
    parser.add_argument("--only", action="append", choices=SCENARIOS)
    parser.add_argument("--write", action="store_true")
    words = parser.parse_args()
    clients = words.client or list(OFFICIAL)
    only = words.only or list(SCENARIOS)
    for name in words.scene or SCENES:
        print(name, flush=True)
        with folder_of_its_own() as folder, SCENES[name](folder) as scene:
            found = all_tried(clients, scene, only)
        for reason in found.missing:
            print(f"not tried: {reason}")
        if words.write:
            keep(name, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
