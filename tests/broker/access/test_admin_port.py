"""Which requests are administration."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.access.admin_port import ADMINISTRATION, MESSAGING, refuse
from rocketbroker.errors import NoPermission
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.command import Command
from tests.broker.rig import Rig

FACTS = Path(__file__).parents[3] / "docs" / "facts" / "security-metrics.md"

#: What the rules of ACL 2.0 call an update, and clients or brokers do by themselves.
BY_THEMSELVES = {905, 906}


def actions(*words: str) -> set[int]:
    """The codes in rows of the table of section 3.6 whose action has a word."""
    found: set[int] = set()
    text = FACTS.read_text()
    section = text[text.index("### 3.6") : text.index("### 3.7")]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and any(word in cells[0] for word in words):
            codes = cells[1].replace("/", " ").split()
            found |= {int(code) for code in codes if code.isdigit()}
            found |= {int(c.partition("(")[0]) for c in codes if c[:1].isdigit()}
    return found


class ListTests(SynchronousTestCase):
    """The two lists."""

    def served(self) -> set[int]:
        """The codes that a broker serves, with access control, too."""
        rig = Rig({"aclEnable": "true"})
        self.addCleanup(rig.close)
        return set(rig.broker.main.responders)

    def test_eachServedCodeIsInOneList(self) -> None:
        """A new request code has to be put into one."""
        self.assertEqual(ADMINISTRATION & MESSAGING, set())
        self.assertEqual(self.served() - ADMINISTRATION - MESSAGING, set())

    def test_changesOfTheRulesAreAdministration(self) -> None:
        """What ACL 2.0 counts as a change of a topic, a group or the cluster."""
        changes = actions("Create", "Delete", "Update")
        self.assertTrue({17, 215, 207, 222, 908, 3001} <= changes, changes)
        missing = (changes & self.served()) - ADMINISTRATION - BY_THEMSELVES
        self.assertEqual(missing, set())

    def test_looksOfTheRulesAreNot(self) -> None:
        """What it lets those do that may read."""
        looks = actions("topic Get", "group Get", "cluster Get")
        self.assertTrue({202, 203, 28, 208} & looks)
        self.assertEqual(looks & ADMINISTRATION, set())

    def test_refusalNamesTheSetting(self) -> None:
        """And not the number of the port."""
        error = self.assertRaises(
            NoPermission, refuse, RecordedConnection(), Command(17)
        )
        self.assertIn("at its admin port only (rocketbrokerAdminPort)", str(error))
