"""Tests of requests and responses as values."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.command import ONEWAY, RESPONSE, Command, response_to


class CommandTests(SynchronousTestCase):
    """Flags, and what a response takes over."""

    def test_flags(self) -> None:
        """Bit 0 means response, bit 1 oneway."""
        self.assertEqual(
            [
                (c.is_response, c.is_oneway)
                for c in (
                    Command(10),
                    Command(10, flag=ONEWAY),
                    Command(0, flag=RESPONSE),
                )
            ],
            [(False, False), (False, True), (True, False)],
        )

    def test_response(self) -> None:
        """A response has its request's opaque and nothing else of it."""
        request = Command(105, {"topic": "T"}, b"xx", opaque=7, flag=ONEWAY, version=3)
        response = response_to(request, 17, "none")
        self.assertEqual(
            (response.code, response.opaque, response.flag, response.remark),
            (17, 7, RESPONSE, "none"),
        )
        self.assertEqual((response.ext, response.body), (None, b""))
        self.assertIn("code=17", repr(response))
