"""Documents of ACL 1.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.plain_documents import check_entries, read, written
from rocketbroker.errors import ConfigurationError
from tests.auth.plain_samples import SAMPLE, sample


class ReadTests(SynchronousTestCase):
    """Text to values."""

    def test_allMembers(self) -> None:
        """The sample of the facts sheet."""
        document = sample()
        first, second = document.accounts
        self.assertEqual(document.white_addresses, ["10.10.103.*"])
        self.assertEqual((document.counter, document.timestamp), (7, 1700000000000))
        self.assertEqual((first.access_key, first.secret_key), ("RocketMQ", "12345678"))
        self.assertEqual(first.white_address, "192.168.7.7")
        self.assertEqual(first.default_group_perm, "SUB")
        self.assertEqual((first.admin, second.admin), (False, True))
        self.assertEqual(second.topic_perms, ())
        self.assertEqual(
            first.permissions(),
            {
                "%RETRY%groupA": 1,
                "%RETRY%groupB": 12,
                "topicA": 1,
                "topicB": 12,
                "topicC": 8,
            },
        )

    def test_secretsAreNotShown(self) -> None:
        """Neither an account's text nor a document's has them."""
        document = sample()
        self.assertNotIn("12345678", repr(document))
        self.assertIn("RocketMQ", repr(document))

    def test_nothing(self) -> None:
        """An empty file, and one of comments, have no accounts."""
        for text in ("", "# later\n", "accounts:\n"):
            self.assertEqual(list(sample(text).accounts), [])

    def test_numbersAndTexts(self) -> None:
        """A number in the place of a text is its digits, and a text may be a truth."""
        text = 'accounts: [{accessKey: 1234567, secretKey: a, admin: "true"}]'
        (account,) = sample(text).accounts
        self.assertEqual(account.access_key, "1234567")
        self.assertTrue(account.admin)
        self.assertTrue(account.has_short_keys)

    def test_noDocument(self) -> None:
        """Other texts are refused with the path; tags of Java's classes too."""
        for text in (
            "accounts: 5",
            "accounts: [5]",
            "- a\n",
            "a: [",
            "a: !!javax.script.ScriptEngineManager []",
        ):
            with self.assertRaises(ConfigurationError) as caught:
                read("conf/x.yml", text)
            self.assertTrue(str(caught.exception).startswith("conf/x.yml cannot be"))
            self.assertNotIn("\n", str(caught.exception))

    def test_writtenAndReadAgain(self) -> None:
        """A written document is the same, with members that nobody knows."""
        text = SAMPLE + "more:\n  kept: \u00e4\n"
        document = sample(text)
        self.assertEqual(sample(written(document)), document)
        self.assertIn("kept: \u00e4", written(document))
        self.assertTrue(written(document).startswith("globalWhiteRemoteAddresses"))


class EntryTests(SynchronousTestCase):
    """C{name=permission}."""

    def test_operatorsEntriesAreCheckedMoreStrictly(self) -> None:
        """An unknown permission is DENY in a file, and refused in a request."""
        check_entries(["T=PUB", " T = SUB|PUB ", "T=DENY", "T==SUB"])
        for wrong in ("", "T", "=PUB", "T=", "T=PUB=SUB", "T=pub", "T=ANY"):
            with self.assertRaises(ValueError):
                check_entries([wrong])
