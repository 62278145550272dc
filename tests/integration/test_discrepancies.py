"""Real clients that disagree, and what the broker says about it."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.integration.javaclient import JavaClient, why_not
from tests.integration.servers import Cluster

#: How long it may take until the broker has heard of it and looked; generous.
SECONDS = 60.0


class DiscrepanciesTests(SynchronousTestCase):
    """Two consumers of one group."""

    def setUp(self) -> None:
        """A cluster and the official client."""
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        self.cluster = Cluster().start()
        self.addCleanup(self.cluster.stop)
        self.java = JavaClient("5.3.3", self.cluster.names, self.cluster.folder)
        self.addCleanup(self.java.stop)
        self.java("createTopic", topic="T", queues=4, address=self.cluster.address)

    def problems(self, count: int) -> list[dict[str, Any]]:
        """The problems, once there are so many."""
        url = f"http://127.0.0.1:{self.cluster.broker_metrics}/problems?format=json"
        end = time.monotonic() + SECONDS
        while True:
            with urllib.request.urlopen(url, timeout=10) as answer:
                found: list[dict[str, Any]] = json.load(answer)["problems"]
            if len(found) == count:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{found}\n{self.cluster.logs()}")
            time.sleep(0.2)

    def test_differentTags(self) -> None:
        """Both are named with what they want, until one of them has gone."""
        for name, tags in (("one", "a"), ("two", "b || a")):
            self.java("consumer", name=name, group="G", topic="T", tags=tags)
        (problem,) = self.problems(1)
        self.assertEqual(
            (problem["kind"], problem["group"], problem["subject"], problem["new"]),
            ("subscriptions", "G", "T", True),
        )
        self.assertEqual(
            sorted((side["what"], side["count"]) for side in problem["sides"]),
            [("a", 1), ("a || b", 1)],
        )
        for side in problem["sides"]:
            (member,) = side["members"]
            self.assertEqual(member["language"], "JAVA")
            self.assertTrue(member["clientAddr"].startswith("127.0.0.1:"))
        self.java("stop", name="two")
        self.assertEqual(self.problems(0), [])
        self.assertIn("problem subscriptions with 'T' is over", self.cluster.logs())
        self.java("stop", name="one")
