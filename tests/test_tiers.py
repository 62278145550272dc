"""Which package may import which, so that imports only ever go down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parent.parent / "rocketbroker"

BELOW_BROKER = {
    "codec",
    "records",
    "wire",
    "filtering",
    "routing",
    "auth",
    "config",
    "files",
    "store",
    "remoting",
    "replication",
}

#: The rooms of store and broker, from the ground: each imports only those above it in
#: its list. A name without modules below it is a module of the package itself.
ROOMS: dict[str, tuple[str, ...]] = {
    "store": (
        "running_flags",
        "disk_usage",
        "shared_positions",
        "store_lock",
        "file_names",
        "flush_threshold",
        "quarantine",
        "corruption_log",
        "dispatched_record",
        "raw_log",
        "append_lock",
        "reads",
        "interfaces",
        "plugins",
        "consumequeue",
        "commitlog",
        "index",
        "reading",
        "sharing",
        "dispatch",
        "timerwheel",
        "retention",
        "recovery",
        "reader",
        "log_tail",
        "assembly",
        "message_store",
    ),
    "storetools": (
        "inspect",
        "verify",
        "pending_timers",
        "popped",
        "repair",
        "truncation",
    ),
    "broker": (
        "json_bodies",
        "long_requests",
        "wait_limits",
        "background_work",
        "waiting_requests",
        "roles",
        "services",
        "running_settings",
        "json_table",
        "table_files",
        "context",
        "room",
        "messages",
        "metadata",
        "stats",
        "registration",
        "clients",
        "replicas",
        "appends",
        "storage",
        "timer",
        "schedule",
        "transaction",
        "send",
        "pull",
        "statictopics",
        "diagnostics",
        "pop",
        "figures",
        "acting",
        "access",
        "ports",
        "admin",
        "broker",
        "plugins",
    ),
    "cli": (
        "formats",
        "rows",
        "progress",
        "lazycommands",
        "exit_status",
        "server",
        "cluster",
        "store",
        "export",
        "command",
    ),
}

#: What a face of the client hands on.
FACE = {"client", "records", "routing"}

#: What each package may import of ours, besides itself and errors.
TABLE: dict[str, set[str]] = {
    "codec": set(),
    "records": set(),
    "wire": set(),
    "config": set(),
    "files": set(),
    "filtering": {"records"},
    "auth": {"records", "wire"},
    "routing": {"records", "wire"},
    "store": {"codec", "records", "config", "files"},
    "storetools": {"store", "records", "config", "files"},
    "blocking": {"records", "wire", "routing", "config", "auth"},
    "remoting": {"codec", "wire", "config", "auth"},
    "nameserver": {"wire", "routing", "remoting", "config", "files", "auth"},
    "replication": {"records", "files", "wire", "store", "remoting", "config"},
    "controller": {"wire", "remoting", "config"},
    "client": {"records", "wire", "filtering", "routing", "config"} | {"files", "auth"},
    "proxy": {"client", "records", "routing", "wire", "config", "auth"},
    "aio": FACE,
    "threads": FACE,
    "deferred": FACE,
    "broker": BELOW_BROKER,
    "workers": BELOW_BROKER | {"broker"},
    "sources": {"records", "wire", "routing", "blocking", "config", "files", "store"}
    | {"filtering", "auth"},
    "arrow": {"records", "filtering", "sources"},
    "metrics": BELOW_BROKER
    | {"broker", "nameserver", "client", "controller", "workers", "proxy"},
    "spark": {"records", "wire", "routing", "blocking", "store", "files", "config"}
    | {"sources", "arrow", "filtering"},
    "export": {"spark", "sources", "arrow", "records", "blocking", "files", "config"},
    "testing": BELOW_BROKER | {"broker", "nameserver", "client", "blocking", "export"},
    "app": BELOW_BROKER
    | {"broker", "nameserver", "controller", "client", "workers", "metrics", "proxy"},
    "cli": BELOW_BROKER
    | {"broker", "blocking", "storetools", "sources", "arrow", "export", "app"}
    | {"client", "threads", "testing"},
}

#: Edges that go up, and circles, which are still to be cut.
LEFT: set[str] = set()
CIRCLES: list[set[str]] = []

#: Packages that know nothing of Twisted.
WITHOUT_TWISTED = {
    "codec",
    "records",
    "wire",
    "filtering",
    "routing",
    "auth",
    "config",
    "files",
    "store",
    "storetools",
    "blocking",
    "sources",
    "arrow",
    "spark",
    "export",
    "cli",
    "proxy",
    "aio",
    "threads",
}

#: The verbs that start servers, which import the reactor as servers do.
SERVER_VERBS = ROOT / "cli" / "server"

#: What pure packages may not touch: the outside world and the time.
IMPURE = {
    "asyncio",
    "datetime",
    "os",
    "random",
    "select",
    "socket",
    "subprocess",
    "threading",
    "time",
}
PURE = {"codec", "records", "wire", "filtering", "routing", "auth"}


def imports(path: Path) -> Iterator[str]:
    """The absolute names of all modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def modules() -> list[tuple[str, Path, set[str]]]:
    """C{(package, file, imported names)} of each module of ours."""
    paths = sorted(ROOT.rglob("*.py"))
    inside = [(path, path.relative_to(ROOT).parts) for path in paths]
    return [(parts[0], p, set(imports(p))) for p, parts in inside if len(parts) > 1]


def graph() -> dict[str, set[str]]:
    """What each module of ours imports of ours, for types too."""
    names = {
        ".".join(["rocketbroker", *path.relative_to(ROOT).with_suffix("").parts]): found
        for _, path, found in modules()
        if path.name != "__init__.py"
    }
    return {name: names.keys() & found - {name} for name, found in names.items()}


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules each of which leads to all the others."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        ahead = set(edges[start])
        while ahead:
            seen |= ahead
            ahead = {far for near in ahead for far in edges[near]} - seen
        reached[start] = seen
    found: list[set[str]] = []
    for name, seen in reached.items():
        if name in seen and not any(name in circle for circle in found):
            found.append({other for other in seen if name in reached[other]})
    return found


#: What of the client may know an event loop.
RUNTIMES = "rocketbroker/client/runtimes"


class TierTests(SynchronousTestCase):
    """The table above holds."""

    def test_packages(self) -> None:
        """Each package of the tree stands in the table."""
        found = {package for package, _, _ in modules()}
        self.assertEqual(found - set(TABLE), set())

    def test_downwards(self) -> None:
        """A package imports only itself, errors, and what the table allows."""
        wrong = []
        for package, path, names in modules():
            for name in names:
                parts = name.split(".")
                if parts[0] != "rocketbroker" or len(parts) < 2:
                    continue
                if parts[1] not in {package, "errors"} | TABLE[package]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {name}")
        self.assertEqual(wrong, [])

    def test_rooms(self) -> None:
        """Inside store, storetools and broker, a room imports only those below it."""
        wrong = []
        for name, targets in graph().items():
            package, room = (*name.split(".")[1:3], "")[:2]
            for target in targets:
                other, below = (*target.split(".")[1:3], "")[:2]
                if package != other or package not in ROOMS or room == below:
                    continue
                order = ROOMS[package]
                if order.index(below) > order.index(room):
                    wrong.append(f"{name} > {target}".replace("rocketbroker.", ""))
        self.assertEqual(set(wrong) - LEFT, set())

    def test_allRooms(self) -> None:
        """Each room, and each module beside the rooms, stands in the list."""
        for package, order in ROOMS.items():
            found = {
                path.stem
                for path in (ROOT / package).iterdir()
                if path.suffix == ".py" or (path / "__init__.py").exists()
            }
            self.assertEqual(found - {"__init__"}, set(order))

    def test_architecture(self) -> None:
        """docs/architecture.rst names all packages and rooms, in this order."""
        text = (ROOT.parent / "docs" / "architecture.rst").read_text("utf-8")
        for prefix, names in [("", (*TABLE,)), *ROOMS.items()]:
            paths = {name: ROOT.joinpath(prefix, name) for name in names}
            rooms = [
                f"{prefix}.{name}".lstrip(".")
                for name, path in paths.items()
                if path.is_dir()
            ]
            rows = [f"\n``{room}`` " for room in rooms]
            self.assertEqual([row for row in rows if row not in text], [])
            self.assertEqual(sorted(rows, key=text.index), rows)

    def test_circles(self) -> None:
        """No modules import one another in a circle, for types neither."""
        left = [set(circle) for circle in circles(graph())]
        self.assertEqual([c for c in left if not any(c <= k for k in CIRCLES)], [])

    def test_findsCircles(self) -> None:
        """A circle of three is found, and a chain is none."""
        found = circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()})
        self.assertEqual([sorted(circle) for circle in found], [["a", "b", "c"]])

    def test_exportAndSparkOfTheStore(self) -> None:
        """Exports see of the store nothing but its reader."""
        reader = "rocketbroker.store.reader"
        wrong = [
            name
            for package, _, names in modules()
            if package in ("sources", "arrow", "spark", "export")
            for name in names
            if name.startswith("rocketbroker.store")
            and name not in ("rocketbroker.store", reader)
            and not name.startswith(f"{reader}.")
        ]
        self.assertEqual(wrong, [])

    def test_withoutTwisted(self) -> None:
        """What runs in executors and tools does not import Twisted."""
        wrong = [
            str(path)
            for package, path, names in modules()
            if package in WITHOUT_TWISTED
            and path.parent != SERVER_VERBS
            and any(name.split(".")[0] == "twisted" for name in names)
        ]
        self.assertEqual(wrong, [])

    def test_clientKnowsNoEventLoop(self) -> None:
        """The client's logic imports neither asyncio nor Twisted; its runtimes do."""
        wrong = [
            f"{path} imports {name}"
            for package, path, names in modules()
            if package == "client" and not str(path.parent).endswith(RUNTIMES)
            for name in names
            if name.split(".")[0] in ("asyncio", "twisted", "zope")
        ]
        self.assertEqual(wrong, [])

    def test_pure(self) -> None:
        """Pure packages have no I/O and no clock."""
        wrong = [
            f"{path.relative_to(ROOT)} imports {name}"
            for package, path, names in modules()
            if package in PURE
            for name in names
            if name.split(".")[0] in IMPURE
        ]
        self.assertEqual(wrong, [])

    def test_reactor(self) -> None:
        """Only the programs import the reactor."""
        wrong = [
            str(path.relative_to(ROOT))
            for package, path, names in modules()
            if package != "app"
            and path.parent != SERVER_VERBS
            and "twisted.internet.reactor" in names
        ]
        self.assertEqual(wrong, [])
