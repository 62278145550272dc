"""A data path to which tests send."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.codes import RequestCode
from tests.broker.rig import Rig, send_ext

SEND = RequestCode.SEND_MESSAGE_V2
SEND_V1 = RequestCode.SEND_MESSAGE
BATCH = RequestCode.SEND_BATCH_MESSAGE


class SendingCase(SynchronousTestCase):
    """A data path with a topic T of four queues."""

    def setUp(self) -> None:
        """Nothing was sent yet."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 4)

    def approve(self, **more: str) -> None:
        """Send the first message, so that the hot way takes the next."""
        self.rig.ask(SEND, send_ext(**more), b"first")

    def last(self) -> StoredMessage:
        """The message that was stored last in queue 0."""
        return self.rig.records()[-1]
