"""mqadmin, unchanged, at a broker and a name server of ours, and at Java's.

The tools are 5.3.3's and 4.9.7's, the Java servers 5.3.3's for both: whoever upgrades
has tools of 4.9 at a broker of 5.3. Of the 89 commands of 5.3.3

  - 78 work here: L{mqadmin_lines<tests.integration.mqadmin_lines>} has them, and they
    show what they show of Java's servers, but for C{DIFFERENCES} and the counts of
    statsAll, which change every ten seconds (sidebyside compares what they rest on);
    12 of them need access control (C{WITH_ACCESS}) and are refused here, which
    L{test_mqadmin_access<tests.integration.test_mqadmin_access>} has;
  - one does not (C{NOT_HERE}), for want of a capability that is named there;
  - 10 ask neither a broker nor a name server (C{ELSEWHERE}).

The library under the commands is also that of rocketmq-dashboard and rocketmq-exporter.
L{CALLS} are their requests.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.mqadmin import FAILED, Tool
from tests.integration.mqadmin_lines import (
    ASKED,
    COMMANDS,
    DIFFERENCES,
    DIFFERENCES_OLDER,
    ELSEWHERE,
    MADE,
    NOT_HERE,
    VERSIONS,
    WITH_ACCESS,
    WORKING,
    lines,
)
from tests.integration.sidebyside import Pair

#: Neither broker refuses a send because the machine has no time for it.
PATIENT: Final = {
    "brokerFastFailureEnable": "false",
    "osPageCacheBusyTimeOutMills": 60_000,
    "waitTimeMillsInSendQueue": 20_000,
}

#: What rocketmq-exporter and rocketmq-dashboard ask, as methods of the library.
CALLS: Final[list[tuple[object, ...]]] = [
    ("examineBrokerClusterInfo",),
    ("fetchAllTopicList",),
    ("fetchTopicsByCLuster", "DefaultCluster"),
    ("examineTopicRouteInfo", "R5"),
    ("examineTopicStats", "R5"),
    ("examineTopicConfig", "{broker}", "R5"),
    ("getTopicClusterList", "R5"),
    ("getUserTopicConfig", "{broker}", False, 5000),
    ("getAllSubscriptionGroup", "{broker}", 5000),
    ("getUserSubscriptionGroup", "{broker}", 5000),
    ("examineSubscriptionGroupConfig", "{broker}", "C5"),
    ("examineConsumeStats", "C5"),
    ("examineConsumeStats", "C5", "R5"),
    ("examineConsumerConnectionInfo", "C5"),
    ("examineProducerConnectionInfo", "P5", "R5"),
    ("queryConsumeTimeSpan", "R5", "C5"),
    ("queryTopicsByConsumer", "C5"),
    ("querySubscription", "C5", "R5"),
    ("fetchConsumeStatsInBroker", "{broker}", False, 5000),
    ("updateAndGetGroupReadForbidden", "{broker}", "C5", "R5", None),
    ("queryConsumeQueue", "{broker}", "R5", 0, 0, 3, "C5"),
    ("getConsumeStatus", "R5", "C5", "{client}"),
    ("viewBrokerStatsData", "{broker}", "BROKER_PUT_NUMS", "DefaultCluster"),
    ("viewBrokerStatsData", "{broker}", "BROKER_GET_NUMS", "DefaultCluster"),
    ("viewBrokerStatsData", "{broker}", "TOPIC_PUT_NUMS", "R5"),
    ("viewBrokerStatsData", "{broker}", "TOPIC_PUT_SIZE", "R5"),
    ("viewBrokerStatsData", "{broker}", "GROUP_GET_NUMS", "R5@C5"),
    ("viewBrokerStatsData", "{broker}", "GROUP_GET_SIZE", "R5@C5"),
    ("viewMessage", "T5", "{key}"),
    ("consumeMessageDirectly", "C5", "{client}", "T5", "{id}"),
    ("resetOffsetByTimestamp", "T5", "G5", 0, True),
    ("wipeWritePermOfBroker", "{names}", "broker-a"),
    ("addWritePermOfBroker", "{names}", "broker-a"),
    ("cleanExpiredConsumerQueueByAddr", "{broker}"),
    ("cleanUnusedTopicByAddr", "{broker}"),
]

#: Of those, what is answered otherwise, and why.
CALLED_DIFFERENCES: Final = {
    "fetchConsumeStatsInBroker": "RocketMQ leaves out where groups pull (317)",
}


class MqadminTests(SynchronousTestCase):
    """Both tools, and both brokers."""

    def setUp(self) -> None:
        """Java's broker and name server, and ours."""
        self.pair = Pair("5.3.3", java_names=True, **PATIENT)
        self.addCleanup(self.pair.stop)
        self.pair.start()

    def test_same(self) -> None:
        """All commands show the same, but where there is a reason."""
        found: list[str] = []
        for version in VERSIONS:
            tool = Tool(version, self.pair)
            try:
                found += self.compared(tool)
            finally:
                tool.stop()
        self.assertEqual(found, [], "\n\n".join(found))
        self.assertNotIn("Traceback", self.pair.cluster.logs())

    def compared(self, tool: Tool) -> list[str]:
        """What is not as the tables say."""
        commands = tool.commands()
        made = lines(MADE, tool.version, commands)
        asked = lines(ASKED, tool.version, commands)
        reasons = dict(DIFFERENCES)
        if tool.version == VERSIONS[0]:
            self.assertEqual(self.counts(commands, made + asked), (COMMANDS, WORKING))
        else:
            reasons |= DIFFERENCES_OLDER
        found: list[str] = []
        for line in made:
            self.look(tool, line, reasons, found)
        tool.fill()
        for line in asked:
            self.look(tool, line, reasons, found)
            if line.startswith("exportMetrics") and tool.version == VERSIONS[0]:
                self.call(tool, found)
        return found

    def counts(self, commands: list[str], run: list[str]) -> tuple[int, int]:
        """How many commands there are, and how many work; each has its table."""
        names = {line.split()[0] for line in run}
        self.assertEqual(Counter(commands), Counter(set(commands)))
        self.assertEqual(names & ELSEWHERE.keys(), set())
        self.assertEqual(names | ELSEWHERE.keys(), set(commands))
        return len(commands), len(names - NOT_HERE.keys())

    def look(
        self, tool: Tool, line: str, reasons: dict[str, str], found: list[str]
    ) -> None:
        """Run a command, and note what comes of it that is in no table."""
        java, ours = tool.shown(line)
        if line.split()[0] in NOT_HERE.keys() | WITH_ACCESS:
            good = "CODE: 3 " in ours
        else:
            good = (java != ours) == (line in reasons)
        if not good:
            found.append(f"{tool.version} {line}\n--- Java\n{java}\n--- ours\n{ours}")

    def call(self, tool: Tool, found: list[str]) -> None:
        """The requests of exporter and dashboard; all of them succeed."""
        for method, *words in CALLS:
            java, ours = tool.call(str(method), *words)
            good = (java != ours) == (method in CALLED_DIFFERENCES)
            if not good or ours.startswith(FAILED):
                found.append(f"{method} {words}\n--- Java\n{java}\n--- ours\n{ours}")
