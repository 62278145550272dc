"""Signatures of remoting requests."""

from __future__ import annotations

import hmac
import pickle

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import (
    UNIQUE_KEY_QUERY,
    Credentials,
    content,
    mac,
    sign,
    signature,
    unsigned_fields,
    verify,
)
from rocketbroker.errors import ConfigurationError

BOB = Credentials("bob-the-1st", "12345678")


class CredentialTests(SynchronousTestCase):
    """An account with its secrets."""

    def test_secretsAreNeverShown(self) -> None:
        """They stand in no text of it, nor do those of a setting in its error."""
        shown = repr(Credentials("bob-the-1st", "hidden1", "hidden2"))
        self.assertIn("bob-the-1st", shown)
        self.assertNotIn("hidden", shown)
        with self.assertRaises(ConfigurationError) as caught:
            Credentials.from_json('["hidden"]', "innerClient")
        self.assertIn("innerClient must be", str(caught.exception))
        self.assertNotIn("hidden", str(caught.exception))

    def test_credentialsTravel(self) -> None:
        """They are equal after a journey to an executor."""
        self.assertEqual(pickle.loads(pickle.dumps(BOB)), BOB)

    def test_settingOfAServer(self) -> None:
        """JSON with both keys gives credentials; blanks give none."""
        read = Credentials.from_json
        self.assertEqual(
            read('{"accessKey":"bob-the-1st","secretKey":"12345678"}', "s"), BOB
        )
        for blank in (
            "",
            " ",
            '{"accessKey":"b"}',
            '{"accessKey":" ","secretKey":"x"}',
        ):
            self.assertIsNone(read(blank, "s"))
        token = read('{"accessKey":"b","secretKey":"x","securityToken":"t"}', "s")
        self.assertEqual(token, Credentials("b", "x", "t"))


class ContentTests(SynchronousTestCase):
    """The bytes that a signature covers."""

    def test_valuesInTheOrderOfNames(self) -> None:
        """Values stand in the order of their names, then the body; no separators."""
        fields = {"topic": "T", "AccessKey": "k", "a": "1", "Signature": "no"}
        self.assertEqual(content(fields, b"body"), b"k1Tbody")

    def test_bodyAlone(self) -> None:
        """Without fields the body is all; without both there is nothing."""
        self.assertEqual(content({}, b"body"), b"body")
        self.assertEqual(content({"Signature": "x"}), b"")

    def test_memoryViews(self) -> None:
        """A body need not be copied before."""
        self.assertEqual(content({"a": "1"}, memoryview(b"body")), b"1body")

    def test_javasOrderOfStrings(self) -> None:
        """Names are compared by their 16-bit units, not by their characters."""
        fields = {"\ufb01": "last", "\U0001f600": "first", "z": "0"}
        self.assertEqual(content(fields), b"0firstlast")

    def test_halfCharacters(self) -> None:
        """Half of a pair becomes a question mark, as in Java."""
        self.assertEqual(content({"a": "x\ud800y"}), b"x?y")

    def test_fieldsOfOldClients(self) -> None:
        """Clients up to 4.9.3 leave out the mark of a query by unique key."""
        fields = {"AccessKey": "k", UNIQUE_KEY_QUERY: "true", "topic": "T"}
        for version, expected in ((399, b"kT"), (400, b"ktrueT"), (479, b"ktrueT")):
            covered = content(fields, b"", unsigned_fields(version))
            self.assertEqual(covered, expected)


class SignatureTests(SynchronousTestCase):
    """HMAC-SHA1 in Base64."""

    def test_knownSignatures(self) -> None:
        """Those that RocketMQ's AclUtils.calSignature gives."""
        known = {
            ("", "12345678"): "beQgVA0KNM4WtCe68fj2DEn3WWU=",
            ("bob-the-1stT1body", "12345678"): "iwyeC0sDb4FvR8/Fp+BtyIFBKQQ=",
            ("\u00e4\u6d88", "ge\u00e4heim"): "7+ywMl30OsDBCzstG3QeJ+yigkg=",
        }
        for (text, secret), expected in known.items():
            self.assertEqual(signature(text.encode(), secret), expected)

    def test_keysOfAnyLength(self) -> None:
        """Short keys are filled up, long ones hashed, as the standard library does."""
        for length in (0, 1, 63, 64, 65, 200):
            secret = "k" * length
            expected = hmac.digest(secret.encode(), b"covered", "sha1")
            self.assertEqual(mac(b"covered", secret), expected)

    def test_signedRequestsAreVerified(self) -> None:
        """What was signed is verified, with the right secret only."""
        fields = sign({"topic": "T"}, b"body", BOB)
        self.assertEqual(
            {**fields, "Signature": ""},
            {"topic": "T", "AccessKey": "bob-the-1st", "Signature": ""},
        )
        self.assertTrue(verify(fields, b"body", "12345678"))
        self.assertFalse(verify(fields, b"body", "12345679"))

    def test_anyChangeBreaksTheSignature(self) -> None:
        """A field, the body, or one more field: all are covered."""
        fields = sign({"topic": "T"}, b"body", BOB)
        self.assertFalse(verify(fields, b"bodY", "12345678"))
        self.assertFalse(verify({**fields, "topic": "U"}, b"body", "12345678"))
        self.assertFalse(verify({**fields, "more": "x"}, b"body", "12345678"))

    def test_noSignatureIsAWrongOne(self) -> None:
        """A request without one, or with other characters, is not verified."""
        for given in ({}, {"Signature": ""}, {"Signature": "\u00e4\ud800"}):
            fields = {"AccessKey": "bob-the-1st", **given}
            self.assertFalse(verify(fields, b"", "12345678"))

    def test_tokensAreSigned(self) -> None:
        """The security token is a field, and part of the signature."""
        fields = sign(None, b"", Credentials("bob-the-1st", "12345678", "token"))
        self.assertEqual(fields["SecurityToken"], "token")
        self.assertTrue(verify(fields, b"", "12345678"))
        self.assertFalse(verify({**fields, "SecurityToken": "u"}, b"", "12345678"))

    def test_signedAgain(self) -> None:
        """A request that is sent again has the same signature."""
        fields = sign({"topic": "T"}, b"body", BOB)
        self.assertEqual(sign(fields, b"body", BOB), fields)
