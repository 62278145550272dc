"""Signatures of gRPC calls."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.grpc_signatures import SignedCall, parse, sign, verify
from rocketbroker.auth.signatures import Credentials
from rocketbroker.errors import NoPermission

DATE = "20210309T195445Z"
HEX = "D562E74C663B361C5EE9EF059E28469AC198ADCF"
HEADER = f"MQv2-HMAC-SHA1 Credential=bob, SignedHeaders=x-mq-date-time, Signature={HEX}"


class SignTests(SynchronousTestCase):
    """Headers of our own calls."""

    def test_headersAsJavasClientMakesThem(self) -> None:
        """The known signature of a known date."""
        self.assertEqual(
            sign(Credentials("bob", "12345678"), DATE),
            {"x-mq-date-time": DATE, "authorization": HEADER},
        )

    def test_tokenHasItsOwnHeader(self) -> None:
        """A token is sent beside the signature, which does not cover it."""
        headers = sign(Credentials("bob", "12345678", "token"), DATE)
        self.assertEqual(headers["x-mq-session-token"], "token")
        self.assertEqual(headers["authorization"], HEADER)


class ParseTests(SynchronousTestCase):
    """Headers of others' calls."""

    def test_signedCall(self) -> None:
        """Name and signature are read, and verified with the right secret only."""
        call = parse(HEADER, DATE)
        self.assertEqual(call.access_key, "bob")
        self.assertTrue(verify(call, "12345678"))
        self.assertFalse(verify(call, "12345679"))
        self.assertFalse(verify(parse(HEADER, "20210309T195446Z"), "12345678"))

    def test_goWritesMoreBehindTheName(self) -> None:
        """The part before the first slash is the name; any case of hex will do."""
        call = parse(f"x Signature={HEX.lower()},Credential=bob//Rocketmq", DATE)
        self.assertEqual(call.access_key, "bob")
        self.assertTrue(verify(call, "12345678"))

    def test_notSigned(self) -> None:
        """Without the header nobody is known, whatever the date."""
        for header in (None, ""):
            self.assertEqual(parse(header, None), SignedCall())

    def test_namelessAndUnsignedItems(self) -> None:
        """Items that are missing stay unknown; unknown ones are passed over."""
        self.assertEqual(parse("x a=b", DATE), SignedCall(None, None, DATE))
        self.assertEqual(parse("x ,", DATE), SignedCall(None, None, DATE))
        self.assertEqual(parse("x Credential=", DATE).access_key, "")
        self.assertFalse(verify(parse("x Credential=bob", DATE), "12345678"))

    def test_wordsForWhatCannotBeRead(self) -> None:
        """Each mistake has the Proxy's words, with code 16."""
        length = "authentication keyValues length is incorrect, actual length=1."
        for header, date, words in (
            (HEADER, None, "datetime is null."),
            (HEADER, "", "datetime is null."),
            ("MQv2-HMAC-SHA1", DATE, "authentication header is incorrect."),
            ("x ", DATE, length),
            ("x Credential", DATE, length),
            ("x a=b,,c=d", DATE, length),
            ("x Signature=ABC", DATE, "create authentication context error."),
            ("x Signature=A G0", DATE, "create authentication context error."),
            (
                "x Credential=//",
                DATE,
                "authentication credential length is incorrect, actual length=0.",
            ),
        ):
            with self.assertRaises(NoPermission) as caught:
                parse(header, date)
            self.assertEqual(caught.exception.remark, words)
