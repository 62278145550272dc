"""Edits of ACL 1.0 documents."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.plain_documents import Document, written
from rocketbroker.auth.plain_edits import (
    AccountChange,
    listed,
    replaced,
    versions,
    with_account,
    with_white_addresses,
    without_account,
)
from tests.auth.plain_samples import SAMPLE, sample

DEFAULT = "conf/plain_acl.yml"
NOW = 1800000000000


class EditTests(SynchronousTestCase):
    """Documents before and after."""

    def setUp(self) -> None:
        more = "accounts: [{accessKey: another, secretKey: 87654321}]"
        self.documents = [sample(more, "conf/acl/more.yml"), sample()]

    def changed(self, **fields: str) -> Document:
        """The document that request 50 with these fields gives."""
        change = AccountChange.from_ext(fields)
        return with_account(self.documents, change, DEFAULT, NOW)

    def test_knownAccount(self) -> None:
        """Given members change, others stay, C{admin} is always written; the account
        moves to the end, and the version is the next one."""
        found = self.changed(
            accessKey="RocketMQ",
            secretKey="87654321",
            topicPerms="T=PUB,U=SUB",
            defaultTopicPerm="",
        )
        self.assertEqual(found.path, DEFAULT)
        self.assertEqual((found.counter, found.timestamp), (8, NOW))
        self.assertEqual(
            [a.access_key for a in found.accounts], ["rocketmq2", "RocketMQ"]
        )
        account = found.accounts[1]
        self.assertEqual(account.secret_key, "87654321")
        self.assertEqual(account.topic_perms, ("T=PUB", "U=SUB"))
        self.assertEqual(account.group_perms, ("groupA=DENY", "groupB=PUB|SUB"))
        self.assertEqual(account.default_topic_perm, "DENY")
        self.assertEqual(list(found.white_addresses), ["10.10.103.*"])

    def test_accountOfAnotherFile(self) -> None:
        """An account is changed where it stands."""
        found = self.changed(accessKey="another", secretKey="87654321", admin="true")
        self.assertEqual(found.path, "conf/acl/more.yml")
        self.assertEqual(found.counter, 1)
        self.assertTrue(found.accounts[0].admin)

    def test_newAccount(self) -> None:
        """It goes to the default document, which may not be there yet."""
        found = self.changed(accessKey="newcomer", secretKey="12345678")
        self.assertEqual(found.path, DEFAULT)
        self.assertEqual(found.accounts[-1].access_key, "newcomer")
        change = AccountChange(access_key="newcomer", secret_key="12345678")
        alone = with_account([], change, DEFAULT, NOW)
        self.assertEqual(
            written(alone),
            "accounts:\n- accessKey: newcomer\n  secretKey: '12345678'\n"
            f"  admin: false\ndataVersion:\n- counter: 1\n  timestamp: {NOW}\n",
        )

    def test_wrongChanges(self) -> None:
        """Short keys, unknown permissions and wrong patterns change nothing."""
        good = {"accessKey": "RocketMQ", "secretKey": "12345678"}
        for wrong in (
            {"accessKey": "short"},
            {"secretKey": "short"},
            {"topicPerms": "T=ALL"},
            {"groupPerms": ""},
            {"whiteRemoteAddress": "10.0.*"},
        ):
            with self.assertRaises(ValueError):
                self.changed(**{**good, **wrong})

    def test_removedAccount(self) -> None:
        """It is gone, others stay; an unknown one is refused in RocketMQ's words."""
        found = without_account(self.documents, "RocketMQ", NOW)
        self.assertEqual([a.access_key for a in found.accounts], ["rocketmq2"])
        self.assertEqual(found.counter, 8)
        with self.assertRaises(ValueError) as caught:
            without_account(self.documents, "stranger", NOW)
        self.assertEqual(
            str(caught.exception),
            "The accesskey[stranger] corresponding to accessConfig has been deleted "
            "failed.",
        )

    def test_whiteAddresses(self) -> None:
        """The list is replaced in the document that is named, which must be there."""
        addresses = ["10.0.0.1", "::1"]
        found = with_white_addresses(self.documents, addresses, DEFAULT, NOW)
        self.assertEqual(list(found.white_addresses), addresses)
        self.assertEqual(len(found.accounts), 2)
        with self.assertRaises(ValueError):
            with_white_addresses(self.documents, addresses, "/etc/passwd", NOW)

    def test_documentsAreNotTouched(self) -> None:
        """What was given is as it was."""
        self.changed(accessKey="RocketMQ", secretKey="87654321")
        without_account(self.documents, "RocketMQ", NOW)
        self.assertEqual(self.documents[1], sample(SAMPLE))

    def test_replaced(self) -> None:
        """An edited document takes its place; a new one comes last."""
        edited = without_account(self.documents, "another", NOW)
        self.assertEqual(replaced(self.documents, edited), [edited, self.documents[1]])
        new = Document(path="new.yml")
        self.assertEqual(replaced(self.documents, new), [*self.documents, new])


class ListTests(SynchronousTestCase):
    """What operators are shown."""

    def test_versions(self) -> None:
        """One of each document; none yet is zero."""
        documents = [sample(), sample("", "b.yml")]
        self.assertEqual(
            versions(documents),
            {
                DEFAULT: {"counter": 7, "timestamp": 1700000000000},
                "b.yml": {"counter": 0, "timestamp": 0},
            },
        )

    def test_accounts(self) -> None:
        """All addresses, and of accounts with one name the first."""
        more = "accounts: [{accessKey: RocketMQ, secretKey: 87654321}]"
        found = listed([sample(), sample(more, "b.yml")])
        self.assertEqual(found["globalWhiteAddrs"], ["10.10.103.*"])
        accounts = found["plainAccessConfigs"]
        assert isinstance(accounts, list)
        self.assertEqual([each["secretKey"] for each in accounts], ["12345678"] * 2)
        self.assertEqual(
            accounts[0]["topicPerms"], ["topicA=DENY", "topicB=PUB|SUB", "topicC=SUB"]
        )
