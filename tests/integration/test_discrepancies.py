"""Real clients that disagree, and what the broker says about it."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.machine import ThisMachine
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.command import Command
from scripts.lab.javaclient import JavaClient, why_not
from scripts.lab.servers import Cluster

#: How long it may take until the broker has heard of it and looked; generous.
SECONDS = 120.0


class DiscrepanciesTests(SynchronousTestCase):
    """Two consumers of one group, and what a consumer may not have."""

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
        self.connection = ServerConnection(ThisMachine(), self.cluster.address)
        self.addCleanup(self.connection.close)

    def problems(self, count: int) -> list[dict[str, Any]]:
        """The problems, once there are so many."""
        url = f"http://127.0.0.1:{self.cluster.broker_metrics}/problems?format=json"
        end = time.monotonic() + SECONDS
        while True:
            with urllib.request.urlopen(url, timeout=30) as answer:
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

    def logged(self, what: str) -> int:
        """How many lines of the log have it."""
        return sum(what in line for line in self.cluster.logs().splitlines())

    def test_sameClientId(self) -> None:
        """Two processes with one client id, of two releases that name the same tags in
        other orders: nothing is wrong but the id, until one of them has gone."""
        older = JavaClient("4.9.8", self.cluster.names, self.cluster.folder)
        self.addCleanup(older.stop)
        same = {"group": "G", "topic": "T", "instance": "i", "heartbeatMs": 2000}
        self.java("consumer", name="one", tags="a || b", **same)
        older("consumer", name="two", tags="b||a", **same)
        (problem,) = self.problems(1)
        self.assertEqual((problem["kind"], problem["group"]), ("client-id", "G"))
        self.assertTrue(problem["subject"].endswith("@i"), problem)
        (side,) = problem["sides"]
        self.assertEqual(side["count"], 2)
        self.assertEqual(
            {who["clientId"] for who in side["members"]}, {problem["subject"]}
        )
        self.assertEqual(len({who["version"] for who in side["members"]}), 2)
        time.sleep(6)
        self.assertEqual(self.logged("problem client-id"), 1)
        older("stop", name="two")
        self.assertEqual(self.problems(0), [])
        self.java("stop", name="one")

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        """One request that succeeds."""
        answer = self.connection.invoke(Command(code, ext, body), 30)
        self.assertEqual(answer.code, 0, answer.remark)
        return answer

    def permit(self, perm: int, consume: bool) -> None:
        """Change what is allowed with topic T, and to group G."""
        ext = {"topic": "T", "defaultTopic": "TBW102", "order": "false"}
        queues = {"readQueueNums": "4", "writeQueueNums": "4", "topicSysFlag": "0"}
        kind = {"perm": str(perm), "topicFilterType": "SINGLE_TAG"}
        self.ask(17, {**ext, **queues, **kind})
        config = SubscriptionGroupConfig(group_name="G", consume_enable=consume)
        self.ask(200, {}, json.dumps(config.to_json()).encode())

    def test_permissions(self) -> None:
        """A topic that may not be read and a group that may not consume are there as
        soon as they are changed, and over as soon as they are changed back."""
        self.java("consumer", name="one", group="G", topic="T")
        self.permit(2, True)
        (problem,) = self.problems(1)
        self.assertEqual(
            (problem["kind"], problem["subject"], problem["group"]),
            ("topic-unreadable", "T", "G"),
        )
        self.permit(2, False)
        kinds = {problem["kind"] for problem in self.problems(2)}
        self.assertEqual(kinds, {"topic-unreadable", "group-disabled"})
        listed = json.loads(self.ask(31001, {"group": "G"}).body)
        self.assertEqual({found["kind"] for found in listed["problems"]}, kinds)
        self.permit(6, True)
        self.assertEqual(self.problems(0), [])
        for kind in kinds:
            self.assertEqual(
                self.logged(f"problem {kind} with"), 2, self.cluster.logs()
            )
        self.java("stop", name="one")
