"""C{docs/compatibility.rst}, made from the tables of the code and of the tests::

python3 -m tests.compatibility > docs/compatibility.rst

What a broker and a name server answer is what their tables of responders have; what a
client answers is what one says that is asked everything. Settings are those of the
options' classes, commands of mqadmin those that tests call, and scenarios those that
C{.ci/run} and C{tests/integration} have.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from twisted.internet.task import Clock

from rocketbroker.app.testing.mode import TestingMode
from rocketbroker.cli.cluster.verbs.mqadmin_names import COMMANDS, MISSING
from rocketbroker.client.consumer import Consumer
from rocketbroker.client.producer import Producer
from rocketbroker.client.replies import Replies
from rocketbroker.client.served import ServedRequests
from rocketbroker.client.settings import ConsumerSettings, ProducerSettings
from rocketbroker.client.subscription import subscription
from rocketbroker.client.transactions import Transactions
from rocketbroker.config.effects import REFUSED_KEYS, keys_without_effect
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.settings_page import SECTIONS
from rocketbroker.config.settings_page import Section as Settings
from rocketbroker.config.unsupported import (
    BROKER,
    NAME_SERVER,
    REMOVED,
    SERVER,
    UnsupportedKey,
)
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from tests.broker.rig import Rig
from tests.client.cluster import ClientCluster
from tests.integration import mqadmin_lines as commands
from tests.integration.access_rows import ROWS, SECRETS
from tests.integration.grpc_scenarios import SCENARIOS
from tests.integration.grpc_scenes import DONE
from tests.integration.grpc_table import CONTINUOUS, NOTES, recorded, table_rows
from tests.integration.javacase import JavaCase
from tests.integration.javaproxy import PROXY_VERSION
from tests.integration.sidebyside import COMPARED

ROOT: Final = Path(__file__).resolve().parent.parent

#: What requests wait for that RocketMQ's servers answer and ours do not.
WAITING: Final[dict[str, tuple[int, ...]]] = {
    "controllers are not supported yet": (*range(1001, 1019),),
    "there are no containers of brokers": (902, 903),
}

#: The state of a request that has a code and nothing else.
UNUSED: Final = "not supported by RocketMQ's servers either"

INTRODUCTION: Final = """\
=============
Compatibility
=============

.. Made from the code: python3 -m tests.compatibility > docs/compatibility.rst

What of RocketMQ 5.3 is here: each request code, each setting, the official clients with
what they do in tests, and each command of mqadmin. The page is made from the code's own
tables and from those of the tests, and a test compares it with them. Where an answer
differs from RocketMQ's on purpose, ``docs/differences.rst`` has it.

.. contents::
   :local:
"""

CODES: Final = """\
Request codes
=============

*Served*: there is a responder. *Not supported*: RocketMQ answers it in that role; here
the answer is ``REQUEST_CODE_NOT_SUPPORTED`` (3). No word: RocketMQ does not send it to
that role; the answer is the same. *Compared*: ``tests/integration/test_sidebyside.py``
asks RocketMQ's broker {version} and ours and compares the answers. The client is that
of ``rocketbroker.aio``, ``rocketbroker.threads`` and ``rocketbroker.deferred``.
"""

SETTINGS: Final = """\
Settings
========

``docs/settings.rst`` has defaults, units and meanings. *Supported*: it has an effect;
*while running*: also when it is changed while the server runs. *Without effect*: it is
known, kept and printed, and changes nothing. *Refused*: another value than the named
ones ends the start, with the reason as one sentence. A key that stands nowhere here is
named in the log at the start.
"""

CLIENTS: Final = """\
Official clients
================

*Each commit*: continuous integration runs it for each commit. *Heavy set*:
``python3 scripts/test.py --heavy`` runs it. Clients without a row are not run by tests.
"""

GRPC: Final = """\
Clients of gRPC
===============

What the official clients of RocketMQ 5 do, each unchanged, three times: before our
proxy and our broker (``rocketbroker standalone``), before our proxy and RocketMQ's
broker {version} (``rocketbroker proxy run``), and before RocketMQ's Proxy and broker
{version}. *yes*: all was as it should be all three times; *-*: the client has no such
thing; *no*: it was not as it should be. Where the three differ they stand in this
order. Clients for Go speak TLS, the others plain text.
``python3 -m tests.integration.grpc_table --write`` tries it all again, and the heavy
set compares what comes of it with this table; ``tests/integration/grpc_scenarios.py``
says what each row asks for.
"""

ACCESS: Final = """\
Access control
==============

What an official Java client that signs is answered: client 4.9.8 with ACL 1.0, client
5.3.3 with ACL 2.0. ``tests/integration/test_access_rows.py`` asks RocketMQ's broker
({plain} and {version}) and ours, and has made these rows: of each what came of it, or
the request that was refused with the response code and the words. They are the same at
both brokers, but where it is said. The application's permissions, and accounts and
secrets, stand in ``tests/integration/access_rows.py``.
"""

MQADMIN: Final = """\
Commands of mqadmin
===================

*mqadmin*: what RocketMQ's own tool {version} does at a broker and a name server of
ours: {works} of its {all} commands work, which means that they show what they show of
RocketMQ's servers, but where it is said. Tests call each with both. *rocketbroker
mqadmin*: whether the command line takes the same name and options, or what to use
instead: {verbs} names have a verb.
"""

Row = Sequence[str]


# Request codes.


def directions() -> dict[int, str]:
    """Who sends a request to whom, by code: C{docs/facts/remoting.md} 18."""
    text = (ROOT / "docs" / "facts" / "remoting.md").read_text("utf-8")
    text = text.split("\n## 18. ")[1].split("\n## 19. ")[0]
    found = {}
    rows = re.findall(r"(?m)^\| (\d[\d ,/-]*) \|[^|]*\| ([^|]*) \|", text)
    for numbers, direction in rows:
        for part in re.split(r"[ ,/]+", numbers.strip()):
            first, _, last = part.partition("-")
            for code in range(int(first), int(last or first) + 1):
                found[code] = direction
    return found


def receivers(code: int, known: dict[int, str]) -> set[str]:
    """The letters of the roles that RocketMQ sends a request to."""
    if code not in known:
        return {"B"}  # of 4.9 alone, or ours
    return set(re.findall(r">([A-Z])", known[code]))


def served_by_broker() -> tuple[set[int], dict[int, str]]:
    """What a broker answers, and what some answer besides, each with what it takes."""
    broker = Rig({}).broker
    ordinary = set(broker.main.responders)
    front = TestingMode(Clock(), lambda: 0).front(broker.main)
    found = dict.fromkeys(front.responders, "--testing")
    for setting in "aclEnable", "authenticationEnabled":
        for code in Rig({setting: "true"}).broker.main.responders:
            before = f"{found[code]}``, ``" if code in found else ""
            found[code] = before + setting
    return ordinary, {c: words for c, words in found.items() if c not in ordinary}


def served_by_name_server() -> set[int]:
    """What a name server answers."""
    server = NameServer(
        Clock(),
        NamesrvSettings.from_properties({}),
        MemoryDisk(),
        lambda: 0,
        at_once,
        lambda address, command: None,
    )
    return set(server.responders.responders)


def served_by_client() -> set[int]:
    """What a client does not refuse that consumes, sends transactions and requests."""
    here = ClientCluster("b1")
    instance = here.instance()
    producer = Producer(instance, ProducerSettings())
    settings = ConsumerSettings(group="G")
    consumer = Consumer(instance, settings, [subscription("T", None)])
    here.runtime.finish(consumer.start())
    Replies(instance, producer)
    Transactions(instance, producer, "P", {})
    ServedRequests(instance, consumer, None)
    (link,) = here.runtime.links_to("b1:10911")
    for code in RequestCode:
        link.send(Command(code, {}, opaque=code))
    here.runtime.settle()
    refused = {
        each.opaque
        for each in link.requests
        if each.is_response and each.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    }
    return {int(code) for code in RequestCode} - refused


def reason(code: int) -> str:
    """Why RocketMQ answers a request and nobody here."""
    (found,) = (why for why, codes in WAITING.items() if code in codes)
    return found


def code_rows() -> Iterator[Row]:
    """Number, name, the states in each role, and whether it is compared."""
    broker, others = served_by_broker()
    served = {
        "B": broker,
        "N": served_by_name_server(),
        "C": served_by_client(),
    }
    known = directions()
    compared = set(json.loads(COMPARED.read_text("utf-8")))
    for code in sorted(RequestCode):
        wanted = receivers(code, known)
        states = []
        for role, codes in served.items():
            if code in codes:
                states.append("served")
            elif role == "B" and code in others:
                states.append(f"served with ``{others[code]}``")
            else:
                missing = role in wanted
                states.append(f"not supported: {reason(code)}" if missing else "")
        if not any(states):
            states[0] = UNUSED if known.get(code, "").startswith("-") else reason(code)
        mark = "yes" if code in compared else ""
        yield (str(int(code)), f"``{code.name}``", *states, mark)


# Settings.


def setting_rows(section: Settings) -> Iterator[Row]:
    """Key and state of the settings of a class."""
    options = section.options
    idle = set(keys_without_effect(options))
    running = options.running_keys()
    for key, name in options.keys().items():
        if key in idle:
            state = "without effect"
        elif name not in options.ABOUT:
            continue
        else:
            state = "supported, while running" if key in running else "supported"
        if key not in REFUSED_KEYS:
            yield f"``{key}``", state


def refused_rows() -> Iterator[Row]:
    """Key and state of the settings that refuse the start, and of those removed."""
    tables: tuple[tuple[str, tuple[UnsupportedKey, ...]], ...] = (
        ("broker, name server", SERVER),
        ("broker", BROKER),
        ("name server", NAME_SERVER),
    )
    for server, table in tables:
        for key, served, why in table:
            values = " ".join(f"``{each}``" for each in served if each)
            yield f"``{key}``", server, f"refused but for {values}: {why}"
    for key, instead in REMOVED.items():
        yield f"``{key}``", "broker", f"removed: {instead}"


# Official clients.


class Run(NamedTuple):
    """Tests that run an official client.

    @ivar client: which.
    @ivar where: the tests.
    @ivar scenarios: what it does there.
    @ivar is_heavy: whether only the heavy set has it.
    """

    client: str
    where: str
    scenarios: tuple[str, ...]
    is_heavy: bool


class Tests(NamedTuple):
    """A class of tests.

    @ivar bases: the names of its bases.
    @ivar version: its attribute of that name, of JavaCase.
    @ivar helpers: what all its tests do.
    @ivar tests: each test, and whether only the heavy set has it.
    """

    bases: tuple[str, ...]
    version: str | None
    helpers: tuple[ast.FunctionDef, ...]
    tests: tuple[tuple[ast.FunctionDef, bool], ...]


def lifted(body: Iterable[ast.stmt], heavy: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Statements, and whether only the heavy set runs them: C{if HEAVY}."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "HEAVY":
            yield from lifted(node.body, True)
        else:
            yield node, heavy


def classes_of(path: Path) -> dict[str, Tests]:
    """The classes of a module, by name."""
    found = {}
    for node, is_heavy in lifted(ast.parse(path.read_text("utf-8")).body, False):
        if not isinstance(node, ast.ClassDef):
            continue
        version = None
        helpers, tests = [], []
        for each, heavy in lifted(node.body, is_heavy):
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == (
                "version"
            ):
                version = str(ast.literal_eval(each.value))
            if isinstance(each, ast.FunctionDef):
                if each.name.startswith("test_"):
                    tests.append((each, heavy))
                else:
                    helpers.append(each)
        bases = tuple(map(ast.unparse, node.bases))
        found[node.name] = Tests(bases, version, tuple(helpers), tuple(tests))
    return found


def java_of(function: ast.FunctionDef) -> list[str]:
    """The Java clients that it starts itself."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "JavaClient":
            first = node.args[0]
            if isinstance(first, ast.Constant):
                found.append(f"Java {first.value!s}")
            elif ast.unparse(first) != "self.version":
                found.append("Java")
    return found


def languages_of(function: ast.FunctionDef) -> list[str]:
    """The clients of the examples that it runs: their files say which they need."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.run_in":
            folder = EXAMPLES / ast.literal_eval(node.args[0])
            for name, pattern in NEEDED.items():
                path = folder / name
                text = path.read_text("utf-8") if path.exists() else ""
                versions = re.findall(pattern, text)
                found += [f"{LANGUAGES[name]} {version}" for version in versions]
    return found


#: The examples in other languages.
EXAMPLES: Final = ROOT / "docs" / "examples" / "testing"

#: What files of examples say of the official client that they need.
NEEDED: Final = {
    "go.mod": r"rocketmq-client-go/v2 v([\d.]+)",
    "pom.xml": r"<artifactId>rocketmq-client</artifactId>\s*<version>([\d.]+)<",
}
LANGUAGES: Final = {"go.mod": "Go", "pom.xml": "Java"}


def java_runs(java_case: str) -> Iterator[Run]:
    """The tests of C{tests/integration} that run clients of the remoting protocol.

    @param java_case: the version of JavaCase.
    """
    for path in sorted((ROOT / "tests" / "integration").glob("test_*.py")):
        classes = classes_of(path)
        for name, own in classes.items():
            line = [own]
            while line[-1].bases[:1] and line[-1].bases[0] in classes:
                line.append(classes[line[-1].bases[0]])
            whole = []
            if line[-1].bases == ("JavaCase",):
                given = next((each.version for each in line if each.version), None)
                whole = [f"Java {given or java_case}"]
            for each in line:
                for helper in each.helpers:
                    whole += java_of(helper)
            found: dict[tuple[str, bool], list[str]] = {}
            for each in reversed(line):
                for test, heavy in each.tests:
                    clients = {*whole, *java_of(test), *languages_of(test)}
                    for client in sorted(clients):
                        found.setdefault((client, heavy), []).append(words(test.name))
            for (client, heavy), scenarios in found.items():
                yield Run(client, f"{path.stem}.{name}", tuple(scenarios), heavy)


def words(name: str) -> str:
    """The name of a test as words."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?=[A-Z][a-z])", " ", name[len("test_") :])
    return text.strip().lower()


def outer_runs() -> Iterator[Run]:
    """The scenarios of the runner beside the tests: C{.ci/run}."""
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    (listed,) = re.findall(r"(?m)^scenarios=\(\n([^)]*)\)", text)
    (versions,) = re.findall(r"check\.py clients ([\d. ]+) --only", text)
    without = set(re.findall(r"Client ([\d.]+) skips `([\w-]+)`", text))
    for version in versions.split():
        done = [each for each in listed.split() if (version, each) not in without]
        yield Run(f"Java {version}", ".ci/run", tuple(done), False)


def python_run() -> Run:
    """The official client for gRPC, through our proxy."""
    text = (ROOT / "setup.cfg").read_text("utf-8")
    (version,) = re.findall(r"rocketmq-python-client == ([\d.]+)", text)
    client = f"Python {version} (gRPC, through ``rocketbroker proxy run``)"
    path = ROOT / "tests" / "integration" / "test_proxy.py"
    (scenarios,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SCENARIOS"
    )
    return Run(client, "test_proxy.OfficialPythonTests", tuple(scenarios), False)


def grpc_runs() -> Iterator[Run]:
    """The official clients for gRPC, through our proxy and RocketMQ's."""
    for client, row in recorded().items():
        done = tuple(name for name in SCENARIOS if DONE in row[name].values())
        where = "EveryClientTests"
        if client in CONTINUOUS:
            where = f"{client.partition(' ')[0]}Tests"
        is_heavy = client not in CONTINUOUS
        yield Run(f"{client} (gRPC)", f"test_grpc_clients.{where}", done, is_heavy)


def runs() -> list[Run]:
    """All, by client."""
    found = [*outer_runs(), *java_runs(JavaCase.version), python_run(), *grpc_runs()]
    return sorted(found, key=lambda run: (run.client, run.is_heavy))


# Access control.


def access_rows() -> Iterator[Row]:
    """What is asked, by whom, and the outcomes in both generations."""
    found = json.loads(ROWS.read_text("utf-8"))
    names = dict.fromkeys(name for generation in found.values() for name in generation)
    for name in sorted(names, key=lambda name: list(SECRETS).index(account_of(name))):
        what = name.removesuffix(f" / {account_of(name)}")
        outcomes = [found[each].get(name) for each in ("1.0", "2.0")]
        yield (what, account_of(name), *map(outcome_cell, outcomes))


def account_of(name: str) -> str:
    """The account in the name of a row."""
    return name.rpartition(" / ")[2]


def outcome_cell(pair: tuple[str, str] | None) -> str:
    """The outcome at our broker, and at RocketMQ's if that is another."""
    if pair is None:
        return ""
    theirs, ours = (f"``{text.partition('; ')[2] or text}``" for text in pair)
    return ours if theirs == ours else f"{ours}; RocketMQ: {theirs}"


# Commands of mqadmin.


def working() -> set[str]:
    """The commands that show what they show of RocketMQ's servers."""
    names = [*COMMANDS, *MISSING]
    called = [
        line.split()[0]
        for text in (commands.MADE, commands.ASKED)
        for line in commands.lines(text, commands.VERSIONS[0], names)
    ]
    return set(called) - commands.NOT_HERE.keys()


def command_rows() -> Iterator[Row]:
    """Name, state of RocketMQ's tool, and what the command line has."""
    works = working()
    for name in sorted([*COMMANDS, *MISSING], key=str.lower):
        if name in commands.WITH_ACCESS:
            state = "works with access control"
        elif name in works:
            reasons = {
                why
                for line, why in commands.DIFFERENCES.items()
                if line.split()[0] == name
            }
            state = "; shown otherwise: ".join(["works", *sorted(reasons)])
        elif name in commands.NOT_HERE:
            state = f"refused: needs {commands.NOT_HERE[name]}"
        else:
            what = commands.ELSEWHERE[name]
            state = f"asks {what}, and neither a broker nor a name server"
        verb = "yes" if name in COMMANDS else MISSING[name]
        yield f"``{name}``", state, verb


# The page.


def compatibility_page() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    yield CODES.format(version=commands.VERSIONS[0])
    yield from _table(
        ("Code", "Name", "Broker", "Name server", "Client", "Compared"), code_rows()
    )
    yield SETTINGS
    for section in SECTIONS:
        yield from (section.title, "-" * len(section.title), "")
        yield from _table(("Key", "State"), setting_rows(section))
    yield from ("Refused and removed", "-" * 19, "")
    yield from _table(("Key", "Of", "State"), refused_rows())
    yield CLIENTS
    yield from _table(
        ("Client", "Tests", "Scenarios", "Runs"),
        [
            (
                run.client,
                f"``{run.where}``",
                ", ".join(run.scenarios),
                "heavy set" if run.is_heavy else "each commit",
            )
            for run in runs()
        ],
    )
    yield GRPC.format(version=PROXY_VERSION)
    table = recorded()
    yield from _table(("", *table), table_rows(table))
    yield from (f"* *{where}*: {why}" for where, why in NOTES.items())
    yield ""
    yield ACCESS.format(plain="4.9.7", version=commands.VERSIONS[0])
    yield from _table(("Request", "By", "ACL 1.0", "ACL 2.0"), access_rows())
    yield MQADMIN.format(
        version=commands.VERSIONS[0],
        works=commands.WORKING,
        all=commands.COMMANDS,
        verbs=len(COMMANDS),
    )
    yield from _table(("Command", "mqadmin", "rocketbroker mqadmin"), command_rows())


def _table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in (head, *rows):
        for number, cell in enumerate(row):
            yield f"   {'  -' if number else '* -'} {cell}".rstrip()
    yield ""


if __name__ == "__main__":
    print(compatibility_page(), end="")
