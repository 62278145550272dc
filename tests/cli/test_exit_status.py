"""Errors with exit statuses, and with what to do next."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.routes import NoBroker
from rocketbroker.cli.exit_status import (
    ACL_ADVICE,
    FAILED,
    NO_TLS_ADVICE,
    NOT_THERE,
    TLS_ADVICE,
    TRUST_ADVICE,
    NotThere,
    explained,
)
from rocketbroker.errors import (
    ConnectionLost,
    RequestTimeout,
    RocketbrokerError,
    error_of_response,
)

SERVERS = ("ns:9876",)


class ExplainedTests(SynchronousTestCase):
    """L{explained}."""

    def message(self, error: RocketbrokerError) -> str:
        """What the user reads."""
        return explained(error, SERVERS).message

    def test_notThere(self) -> None:
        """What is not there ends with 3, whoever says so; the rest with 1."""
        for code in (17, 22, 26, 206, 208, 211):
            error = error_of_response(code, "gone")
            self.assertEqual(explained(error).exit_code, NOT_THERE, code)
        self.assertEqual(explained(NotThere("x")).exit_code, NOT_THERE)
        for code in (1, 2, 3, 14, 16, 29, 207):
            error = error_of_response(code, "no")
            self.assertEqual(explained(error).exit_code, FAILED, code)
        self.assertEqual(explained(ConnectionLost("x")).exit_code, FAILED)

    def test_absentBrokerIsNotAbsentTopic(self) -> None:
        """A topic whose master is away is there."""
        failure = explained(NoBroker("no master"))
        self.assertEqual(failure.exit_code, FAILED)
        self.assertIn("cluster ls", failure.message)

    def test_brokerIsNamed(self) -> None:
        """The broker that does not answer is named, by the address in the text."""
        names = {"10.0.0.1:1091": "a", "10.0.0.1:10911": "b", "[::1]:10911": "six"}
        for text, name in (
            ("cannot connect to 10.0.0.1:10911: refused", "b"),
            ("10.0.0.1:1091 did not answer in time", "a"),
            ("cannot connect to ::1:10911: refused", "six"),
            ("[::1]:10911 did not answer in time", "six"),
        ):
            message = explained(ConnectionLost(text), SERVERS, names).message
            told = f"{name} does not answer: {text}. "
            self.assertTrue(message.startswith(told), message)
        text = explained(ConnectionLost("ns:9876 is gone"), SERVERS, names).message
        self.assertTrue(text.startswith("ns:9876 is gone. "), text)

    def test_accessControl(self) -> None:
        """A cluster that wants signatures, of both kinds, has its advice."""
        for code, remark in (
            (1, "org.apache.rocketmq.acl.common.AclException: No accessKey is confi"),
            (1, "No acl config for rocketmq2"),
            (16, "User:x has no permission to access Topic:T from 1.2.3.4"),
            (16, "check signature failed."),
            (16, "username cannot be null."),
        ):
            error = error_of_response(code, remark)
            self.assertEqual(self.message(error), f"{remark.rstrip('.')}. {ACL_ADVICE}")
        denied = error_of_response(
            16, "the broker[10.0.0.1] sending message is forbidden"
        )
        self.assertNotIn(ACL_ADVICE, self.message(denied))

    def test_connections(self) -> None:
        """A name server, a broker, and one that hangs up, are told apart."""
        lost = ConnectionLost("cannot connect to ns:9876: refused")
        self.assertIn("Is the name server running", self.message(lost))
        lost = ConnectionLost("cannot connect to 10.0.0.1:10911: refused")
        self.assertIn("brokerIP1", self.message(lost))
        lost = ConnectionLost("the connection to ns:9876 is gone: the server closed it")
        self.assertIn(TLS_ADVICE, self.message(lost))
        lost = ConnectionLost("no TLS with ns:9876: the server closed it")
        self.assertIn(NO_TLS_ADVICE, self.message(lost))
        lost = ConnectionLost(
            "no TLS with ns:9876: TLS: its certificate is not trusted: self-signed"
        )
        self.assertIn(TRUST_ADVICE, self.message(lost))

    def test_others(self) -> None:
        """Each has its advice; a refusal without words has a text."""
        self.assertIn("--timeout", self.message(RequestTimeout("x")))
        self.assertIn("topic ls", self.message(error_of_response(17, "x")))
        self.assertIn("group ls", self.message(error_of_response(26, "x")))
        self.assertIn("version", self.message(error_of_response(3, "x")))
        self.assertIn("later", self.message(error_of_response(2, "x")))
        remark = "No topic route info in name server for the topic: T\nSee more."
        message = self.message(error_of_response(17, remark))
        self.assertTrue(message.startswith("There is no topic T. rocket"), message)
        text = "the server answers with code 29 and no reason."
        self.assertEqual(self.message(error_of_response(29, None)), text)
