"""Whether the extra C{grpc} is installed."""

from __future__ import annotations

import configparser
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.grpc_extra import NEEDED, extra_problem, import_extra
from rocketbroker.errors import ConfigurationError

ROOT = Path(__file__).resolve().parent.parent.parent


class ExtraTests(SynchronousTestCase):
    """L{extra_problem} and L{import_extra}."""

    def test_tableIsTheExtra(self) -> None:
        """As pip installs it."""
        settings = configparser.ConfigParser()
        settings.read(ROOT / "setup.cfg")
        lines = settings["options.extras_require"]["grpc"].split("\n")
        wanted = {tuple(line.split(" >= ")) for line in lines if line}
        self.assertEqual(set(NEEDED), wanted)

    def test_whatIsMissingOrTooOldIsNamed(self) -> None:
        """With the version that is there, and what to install."""
        oldest = dict(NEEDED)
        for changed, wanted in (
            ({}, None),
            ({"protobuf": "7.1.0rc2"}, None),
            ({"grpcio": "1.100"}, None),
            (
                {"grpcio": None, "protobuf": None},
                "needs grpcio, which is not installed: pip install "
                "'rocketbroker[grpc]'.",
            ),
            (
                {"grpcio": "1.51.3"},
                "needs grpcio 1.76 or newer, and 1.51.3 is here: pip install "
                "'rocketbroker[grpc]'.",
            ),
        ):
            found = {**oldest, **changed}
            self.assertEqual(extra_problem(found.get), wanted, changed)

    def test_partsThatDoNotFitAreOneSentence(self) -> None:
        """Whatever their generated code raises."""
        problem = self.assertRaises(
            ConfigurationError, import_extra, ["rocketbroker.no_such_module"]
        )
        self.assertEqual(
            str(problem),
            "The parts of the extra grpc cannot be used together (No module named "
            "'rocketbroker.no_such_module'): pip install --upgrade "
            "'rocketbroker[grpc]'.",
        )
