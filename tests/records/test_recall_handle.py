"""Recall handles."""

from __future__ import annotations

import base64

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.malformed import Malformed
from rocketbroker.records.recall_handle import RecallHandle


class RecallHandleTests(SynchronousTestCase):
    """Text by which a message is taken back."""

    def test_handleIsWhatRocketMQMakes(self) -> None:
        """And is read again."""
        handle = RecallHandle("T", "b-a", 1700000060000, "0A00000100002A9F00000000")
        self.assertEqual(
            handle.encode(),
            "djEgVCBiLWEgMTcwMDAwMDA2MDAwMCAwQTAwMDAwMTAwMDAyQTlGMDAwMDAwMDA=",
        )
        self.assertEqual(RecallHandle.parse(handle.encode()), handle)

    def test_nonsenseIsRefused(self) -> None:
        """Another version, another number of parts, no number, no text at all."""
        for text in ("v2 a b 1 c", "v1 a b x c", "v1 a b 1", "\ud800"):
            data = text.encode("utf-8", "surrogatepass")
            with self.assertRaises(Malformed):
                RecallHandle.parse(base64.urlsafe_b64encode(data).decode())
        for text in ("?", "\u00e9", ""):
            with self.assertRaises(Malformed):
                RecallHandle.parse(text)
