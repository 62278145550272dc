"""Tests of the tables of codes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import LANGUAGES, RequestCode, ResponseCode


class CodeTests(SynchronousTestCase):
    """Names and numbers."""

    def test_requests(self) -> None:
        """Request codes have Java's names, and no number has two."""
        self.assertEqual(RequestCode(310).name, "SEND_MESSAGE_V2")
        self.assertEqual(RequestCode.HEART_BEAT, 34)
        self.assertEqual(len(RequestCode), len(set(map(int, RequestCode))))

    def test_responses(self) -> None:
        """Response codes have Java's names."""
        self.assertEqual(ResponseCode(17).name, "TOPIC_NOT_EXIST")
        self.assertEqual(ResponseCode.RPC_TIME_OUT, -1006)

    def test_languages(self) -> None:
        """A language's place is its code on the wire."""
        self.assertEqual(LANGUAGES.index("GO"), 9)
        self.assertEqual(len(LANGUAGES), 14)
