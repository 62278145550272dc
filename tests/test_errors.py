"""Tests of the exceptions that stand for response codes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    BrokerError,
    TopicNotExist,
    all_broker_errors,
    error_of_response,
)


class ErrorTests(SynchronousTestCase):
    """Codes and exceptions find each other."""

    def test_codesAreDistinct(self) -> None:
        """No two classes stand for the same code, but for the general one."""
        codes = [cls.code for cls in BrokerError.__subclasses__()]
        self.assertEqual(len(codes), len(set(codes)))
        self.assertEqual(set(codes), set(all_broker_errors()))

    def test_knownCode(self) -> None:
        """A code with a class becomes that class, with the peer's words."""
        error = error_of_response(17, "no such topic")
        self.assertIsInstance(error, TopicNotExist)
        self.assertEqual((error.code, error.remark), (17, "no such topic"))

    def test_unknownCode(self) -> None:
        """A code without a class is kept by the instance alone."""
        error = error_of_response(4711, None)
        self.assertEqual((error.code, error.remark), (4711, ""))
        self.assertEqual(BrokerError.code, 1)
