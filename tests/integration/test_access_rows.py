"""Official Java clients that sign, at Java's brokers with access control and at ours.

Client 4.9.8 asks brokers with ACL 1.0, RocketMQ's of 4.9.7; client 5.3.3 asks brokers
with ACL 2.0, RocketMQ's of 5.3.3. The rows are those of
L{access_rows<tests.integration.access_rows>}, and C{docs/compatibility.rst} shows them.
After a change, the heavy set with C{ROCKETBROKER_WRITE_ROWS=1} in the environment
writes what has come of them.
"""

from __future__ import annotations

import json
import os

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.javaclient import JavaClient
from tests.heavy import HEAVY
from tests.integration.access_rows import (
    DIFFERENCES,
    POLICIES,
    ROWS,
    SECRETS,
    SHORT,
    TOPICS,
    Asker,
    Row,
    rows,
    told,
    with_plain_access,
    with_policies,
)
from tests.integration.sidebyside import Pair, Side


class AccessRowsTests(SynchronousTestCase):
    """Rows at both brokers."""

    def test_plain(self) -> None:
        """ACL 1.0."""
        self.compare("1.0", "4.9.8", with_plain_access())

    def test_policies(self) -> None:
        """ACL 2.0."""
        self.compare("2.0", "5.3.3", with_policies())

    def compare(self, generation: str, version: str, pair: Pair) -> None:
        """Ask both brokers all rows, and compare with what is written."""
        self.addCleanup(pair.stop)
        pair.start()
        chosen = [
            row
            for row in rows()
            if row.only in ("", generation) and (HEAVY or row.what in SHORT)
        ]
        java = JavaClient(version, pair.cluster.names, pair.cluster.folder)
        self.addCleanup(java.stop)
        outcomes = [
            self.outcomes(Asker(java, *addresses), generation, chosen)
            for addresses in pair.addresses
        ]
        found = {
            f"{row.what} / {row.account}": list(pair)
            for row, *pair in zip(chosen, *outcomes, strict=True)
        }
        written = json.loads(ROWS.read_text("utf-8"))
        if HEAVY and os.environ.get("ROCKETBROKER_WRITE_ROWS"):
            written[generation] = found
            ROWS.write_text(told(written))
        wanted = {
            name: outcome
            for name, outcome in written.get(generation, {}).items()
            if HEAVY or name in found
        }
        different = {name for name, (theirs, ours) in found.items() if theirs != ours}
        known = {name for name in DIFFERENCES[generation] if name in found}
        self.assertEqual(different, known, found)
        self.assertEqual(found, wanted)
        self.assertNotIn("Traceback", pair.cluster.logs())

    def outcomes(self, asker: Asker, generation: str, chosen: list[Row]) -> list[str]:
        """What one broker lets the client do."""
        words = asker.words("administrator")
        asker.java("announce", address=asker.address, **words)
        for topic in TOPICS:
            place = {"address": asker.address, "topic": topic, "queues": 1}
            asker.java("createTopic", **place, **words)
        side = Side(asker.address, words["names"])
        try:
            for topic in TOPICS:
                side.routed(topic)
        finally:
            side.close()
        if generation == "2.0":
            self.make_users(asker)
        asker.seed()
        return [asker.outcome(row) for row in chosen]

    def make_users(self, asker: Asker) -> None:
        """Users and policies of ACL 2.0, as an operator makes them."""
        words = asker.words("administrator")

        def call(method: str, *values: object) -> None:
            given = [asker.address, *values]
            asker.java("call", method=method, words=given, **words)

        for account in ("application", "trader", "disabled"):
            name, password = SECRETS[account] or ("", "")
            call("createUser", name, password, "Normal")
        call("updateUser", "retired", None, None, "disable")
        for user, resource, actions, decision, source in POLICIES:
            sources = None if source is None else [source]
            call(
                "createAcl",
                f"User:{user}",
                [resource],
                actions.split(","),
                sources,
                decision,
            )
