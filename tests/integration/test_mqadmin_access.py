"""RocketMQ's commands about accounts, at Java's brokers and at ours.

The tool of 5.3.3 at brokers with ACL 2.0, that of 4.9.8 at brokers with ACL 1.0; both
sign with what their file C{tools.yml} has. What they show is compared as in
L{test_mqadmin<tests.integration.test_mqadmin>}.
"""

from __future__ import annotations

from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.access_rows import with_plain_access, with_policies
from tests.integration.mqadmin import Tool
from tests.integration.mqadmin_lines import WITH_ACCESS
from tests.integration.sidebyside import Pair

ADMINISTRATOR: Final = ("administrator", "admin-secret")

#: Of 5.3.3, by who signs.
POLICY_LINES: Final = """
createUser -b {broker} -u reader -p secret
createUser -b {broker} -u reader -p secret
createUser -c DefaultCluster -u second -p secret -t Super
createUser -b {broker} -u third -p secret -t Normal
createUser -b {broker} -u fourth -p secret -t Nonsense
getUser -b {broker} -u reader
getUser -c DefaultCluster -u second
getUser -b {broker} -u nobody
updateUser -b {broker} -u third -p other
updateUser -b {broker} -u third -s disable
updateUser -b {broker} -u third -t Super
updateUser -c DefaultCluster -u third -s Nonsense
updateUser -b {broker} -u nobody -p other
listUser -b {broker}
listUser -b {broker} -f rea
listUser -c DefaultCluster -f nobody
createAcl -b {broker} -s User:reader -r Cluster:DefaultCluster -a Get -d Allow
createAcl -b {broker} -s User:reader -r Topic:T,Group:G* -a Pub,Sub -d Allow
createAcl -c DefaultCluster -s User:third -r * -a All -i 10.0.0.0/8,::1 -d Deny
createAcl -b {broker} -s User:nobody -r Topic:T -a Pub -d Allow
createAcl -b {broker} -s User:reader -r T -a Pub -d Allow
createAcl -b {broker} -s User:reader -r Topic:T -a Nonsense -d Allow
createAcl -b {broker} -s User:reader -r Topic:T -a Any -d Allow
createAcl -b {broker} -s User:reader -r Topic:T -a Pub -i 10.0.0 -d Allow
createAcl -b {broker} -s User:reader -r Topic:T -a Pub -d Nonsense
createAcl -b {broker} -s reader -r Topic:T -a Pub -d Allow
getAcl -b {broker} -s User:reader
updateAcl -b {broker} -s User:reader -r Topic:T -a Pub -d Deny -i 1.2.3.4
updateAcl -b {broker} -s User:nobody -r Topic:T -a Pub -d Deny
getAcl -b {broker} -s User:reader
getAcl -c DefaultCluster -s User:second
getAcl -b {broker} -s User:nobody
listAcl -b {broker}
listAcl -b {broker} -s reader
listAcl -b {broker} -r Topic:T
listAcl -c DefaultCluster -s nobody
copyUser -f {broker} -t {broker} -u reader
copyUser -f {broker} -t {broker}
copyAcl -f {broker} -t {broker} -s User:reader
copyAcl -f {broker} -t {broker}
as reader secret
getUser -b {broker} -u third
listUser -b {broker} -f third
getAcl -b {broker} -s User:third
createUser -b {broker} -u fifth -p secret
deleteUser -b {broker} -u third
deleteAcl -b {broker} -s User:third
as reader wrong
listUser -b {broker}
as nobody secret
listUser -b {broker}
as administrator admin-secret
deleteAcl -b {broker} -s User:reader -r Topic:T
getAcl -b {broker} -s User:reader
deleteAcl -b {broker} -s User:reader -r Topic:Unknown
deleteAcl -b {broker} -s User:reader
getAcl -b {broker} -s User:reader
deleteAcl -b {broker} -s User:reader
deleteAcl -c DefaultCluster -s User:nobody
deleteUser -b {broker} -u reader
deleteUser -b {broker} -u reader
deleteUser -c DefaultCluster -u third
listAcl -b {broker}
listUser -b {broker}
"""

_PASSWORDS: Final = "only super users see passwords"

#: What is shown otherwise, and why; the words of who signs before the line.
POLICY_DIFFERENCES: Final = {
    "reader getUser -b {broker} -u third": _PASSWORDS,
    "reader listUser -b {broker} -f third": _PASSWORDS,
}

#: Of 4.9.8, whose tool has no getAclConfig.
PLAIN_LINES: Final = """
updateAclConfig -b {broker} -a other-key -s other-secret
updateAclConfig -b {broker} -a other-key -s other-secret -w 10.0.0.1 -m true
updateAclConfig -b {broker} -a other-key -s other-secret -i DENY -u SUB
updateAclConfig -b {broker} -a other-key -s new-secret -t A=PUB,B=SUB -g G=SUB
updateAclConfig -c DefaultCluster -a third-key -s other-secret
updateAclConfig -b {broker} -a short -s secret
updateAclConfig -b {broker} -a other-key -s other-secret -t A=NONSENSE
updateAclConfig -b {broker} -a other-key -s other-secret -w 10.0.*
clusterAclConfigVersion -b {broker}
clusterAclConfigVersion -c DefaultCluster
updateGlobalWhiteAddr -b {broker} -g 10.0.0.1,10.0.0.2
updateGlobalWhiteAddr -c DefaultCluster -g 10.0.0.*
deleteAclConfig -b {broker} -a third-key
deleteAclConfig -b {broker} -a third-key
deleteAclConfig -c DefaultCluster -a nobody-knows
clusterAclConfigVersion -b {broker}
as application app-secret
updateAclConfig -b {broker} -a fourth-key -s other-secret
deleteAclConfig -b {broker} -a other-key
updateGlobalWhiteAddr -b {broker} -g 10.0.0.1
clusterAclConfigVersion -b {broker}
as application a-wrong-one
clusterAclConfigVersion -b {broker}
as somebody some-secret
updateAclConfig -b {broker} -a fourth-key -s other-secret
as administrator admin-secret
updateGlobalWhiteAddr -b {broker} -g 10.0.*
"""

_ADMINISTRATORS: Final = "only administrators change and read accounts"

PLAIN_DIFFERENCES: Final = {
    **{
        f"administrator updateAclConfig -b {{broker}} -a {words}": reason
        for words, reason in (
            ("short -s secret", "the secret is not repeated"),
            ("other-key -s other-secret -t A=NONSENSE", "words of ours"),
            ("other-key -s other-secret -w 10.0.*", "words of ours"),
        )
    },
    "administrator updateGlobalWhiteAddr -b {broker} -g 10.0.*": (
        "Java takes an address that it cannot read, and reads its file no more"
    ),
    **{
        f"application {line}": _ADMINISTRATORS
        for line in (
            "updateAclConfig -b {broker} -a fourth-key -s other-secret",
            "deleteAclConfig -b {broker} -a other-key",
            "updateGlobalWhiteAddr -b {broker} -g 10.0.0.1",
            "clusterAclConfigVersion -b {broker}",
        )
    },
}


class MqadminAccessTests(SynchronousTestCase):
    """Both tools, each at two brokers of its generation."""

    def test_policies(self) -> None:
        """ACL 2.0."""
        found, names = self.compared("5.3.3", with_policies(), POLICY_LINES)
        self.assertEqual(names, WITH_ACCESS)
        self.judge(found, POLICY_DIFFERENCES)

    def test_plain(self) -> None:
        """ACL 1.0."""
        found, _ = self.compared("4.9.8", with_plain_access(), PLAIN_LINES)
        self.judge(found, PLAIN_DIFFERENCES)

    def compared(
        self, version: str, pair: Pair, text: str
    ) -> tuple[dict[str, tuple[str, str]], set[str]]:
        """What is shown otherwise, and the names of the commands."""
        self.addCleanup(pair.stop)
        pair.start()
        tool = Tool(version, pair, ADMINISTRATOR)
        found, names = {}, set()
        who = ADMINISTRATOR[0]
        try:
            for line in text.strip().splitlines():
                first, *words = line.split()
                if first == "as":
                    who = words[0]
                    tool.sign(*words)
                    continue
                names.add(first)
                java, ours = tool.shown(line)
                if java != ours:
                    found[f"{who} {line}"] = (java, ours)
            self.assertLessEqual(names, set(tool.commands()))
        finally:
            tool.stop()
        self.assertNotIn("Traceback", pair.cluster.logs())
        return found, names

    def judge(self, found: dict[str, tuple[str, str]], wanted: dict[str, str]) -> None:
        """All is as at the Java broker but for what has a reason."""
        wrong = "\n\n".join(
            f"{line}\n--- Java\n{java}\n--- ours\n{ours}"
            for line, (java, ours) in found.items()
            if line not in wanted
        )
        self.assertEqual(found.keys(), wanted.keys(), wrong)
