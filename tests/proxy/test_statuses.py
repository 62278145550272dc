"""Statuses of calls."""

from __future__ import annotations

import pickle

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    ConnectionLost,
    NoPermission,
    RocketbrokerError,
    SystemBusy,
    TopicNotExist,
)
from rocketbroker.proxy.messages_pb2 import Code
from rocketbroker.proxy.statuses import Refusal, ok, status_of


class StatusTests(SynchronousTestCase):
    """L{status_of}."""

    def test_brokersCodesHaveTheirOwn(self) -> None:
        """As RocketMQ's Proxy maps them; what has none is an internal error."""
        for problem, code in (
            (TopicNotExist("no T"), Code.TOPIC_NOT_FOUND),
            (SystemBusy("slow down"), Code.TOO_MANY_REQUESTS),
            (NoPermission("no"), Code.INTERNAL_SERVER_ERROR),
            (ConnectionLost("gone"), Code.PROXY_TIMEOUT),
            (Refusal(Code.FORBIDDEN, "no queue"), Code.FORBIDDEN),
        ):
            status = status_of(problem)
            self.assertEqual((status.code, status.message), (code, str(problem)))

    def test_problemWithoutWordsIsNamed(self) -> None:
        """By its code: clients show the text."""
        self.assertEqual(
            status_of(RocketbrokerError()).message, "INTERNAL_SERVER_ERROR"
        )
        self.assertEqual((ok().code, ok().message), (Code.OK, "OK"))

    def test_refusalSurvivesPickling(self) -> None:
        """With its code."""
        found = pickle.loads(pickle.dumps(Refusal(Code.FORBIDDEN, "no")))
        self.assertEqual((found.code, str(found)), (Code.FORBIDDEN, "no"))
