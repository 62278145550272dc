"""The page of what is compatible."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.verbs.mqadmin_names import COMMANDS, MISSING
from rocketbroker.config.settings_page import SECTIONS
from rocketbroker.wire.codes import RequestCode
from tests.compatibility import (
    ROOT,
    WAITING,
    compatibility_page,
    directions,
    receivers,
    runs,
    served_by_broker,
    served_by_client,
    served_by_name_server,
    working,
)
from tests.integration import mqadmin_lines as commands
from tests.integration.grpc_scenes import FAILED, SCENES
from tests.integration.grpc_table import NOTES, recorded


class PageTests(SynchronousTestCase):
    """C{docs/compatibility.rst}."""

    def test_pageIsMadeOfTheTables(self) -> None:
        """C{python3 -m tests.compatibility > docs/compatibility.rst}."""
        written = (ROOT / "docs" / "compatibility.rst").read_text("utf-8")
        self.assertEqual(written, compatibility_page())

    def test_eachReasonStandsForWhatIsNotServed(self) -> None:
        """And each code that RocketMQ answers and nobody here has one."""
        broker, others = served_by_broker()
        served = {
            "B": broker | others.keys(),
            "N": served_by_name_server(),
            "C": served_by_client(),
        }
        known = directions()
        missing = {
            code
            for code in RequestCode
            if not any(code in codes for codes in served.values())
            and not known.get(code, "").startswith("-")
        }
        for role, codes in served.items():
            wanted = {code for code in RequestCode if role in receivers(code, known)}
            missing |= wanted - codes - {c for c in wanted if known.get(c) == "-"}
        told = [code for codes in WAITING.values() for code in codes]
        self.assertEqual(sorted(told), sorted(missing))

    def test_eachKeyAndCodeIsThere(self) -> None:
        """Once in the table of its class, or as one that is refused."""
        page = compatibility_page()
        for section in SECTIONS:
            for key in section.options.keys():  # noqa: SIM118
                self.assertIn(f"* - ``{key}``\n", page)
        for code in RequestCode:
            self.assertIn(f"* - {int(code)}\n     - ``{code.name}``\n", page)

    def test_commandsAreThoseOfTheTool(self) -> None:
        """The command line knows as many as tests with RocketMQ's tool have counted."""
        names = {*COMMANDS, *MISSING}
        self.assertEqual(len(names), commands.COMMANDS)
        self.assertEqual(len(working()), commands.WORKING)
        told = working() | commands.NOT_HERE.keys() | commands.ELSEWHERE.keys()
        self.assertEqual(names, told)

    def test_runsAreFoundInTheTests(self) -> None:
        """Those of a class, what it inherits, its version, and the heavy ones."""
        found = {(run.client, run.where): run for run in runs()}
        newest = found["Java 5.3.3", "test_java_client.SendAndReceive"]
        oldest = found["Java 4.9.8", "test_java_client.SendAndReceive49"]
        self.assertEqual(newest.scenarios, oldest.scenarios)
        self.assertIn("every way of sending", newest.scenarios)
        self.assertNotIn("timer", found["Java 4.9.8", ".ci/run"].scenarios)
        self.assertIn("timer", found["Java 5.3.3", ".ci/run"].scenarios)
        (go,) = (run for run in runs() if run.client == "Go 2.1.2")
        self.assertTrue(go.is_heavy)

    def test_whatClientsFailWithIsTold(self) -> None:
        """And it fails with RocketMQ's proxy, too."""
        for client, row in recorded().items():
            for scenario, scenes in row.items():
                self.assertEqual(set(scenes), set(SCENES))
                if FAILED in scenes.values():
                    self.assertEqual(set(scenes.values()), {FAILED})
                    self.assertIn(f"{client}, {scenario}", NOTES)
