"""A data path with a topic to pull from, and pulls by both ways."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.record import decode_all
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from tests.broker.rig import Rig, answered, pull_ext, send_ext

PULL = RequestCode.PULL_MESSAGE
SEND = RequestCode.SEND_MESSAGE_V2

NOT_FOUND = ResponseCode.PULL_NOT_FOUND
MOVED = ResponseCode.PULL_OFFSET_MOVED
AGAIN = ResponseCode.PULL_RETRY_IMMEDIATELY


def bodies(answer: Command) -> list[bytes]:
    """The bodies of the messages in an answer."""
    return [stored.body for stored in decode_all(answer.body)]


class PullCase(SynchronousTestCase):
    """Topic T, whose queue 0 gets messages."""

    def setUp(self) -> None:
        """No messages yet."""
        self.rig = self.make()

    def make(self, threads: bool = False, **settings: str) -> Rig:
        """A data path with those settings."""
        return self.prepared(Rig(settings, threads))

    def prepared(self, rig: Rig) -> Rig:
        """A data path that gets its topic, and ends with the test."""
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        return rig

    def send(self, *messages: str | bytes, tag: str = "") -> None:
        """Send messages, each in a turn of its own."""
        properties = f"UNIQ_KEY\x01U\x02TAGS\x01{tag}\x02" if tag else "UNIQ_KEY\x01U"
        for message in messages:
            body = message.encode() if isinstance(message, str) else message
            self.rig.ask(SEND, send_ext(properties=properties), body)

    def pull(self, offset: int = 0, **more: str) -> Command:
        """Pull by both ways, which have to answer the same."""
        ext = pull_ext(offset, **more)
        general = answered(self.rig.begin(PULL, ext))
        self.assertTrue(self.rig.hot(PULL, ext, opaque=77))
        (hot,) = self.rig.answers()
        self.assertEqual(hot.opaque, 77)
        self.assertEqual(
            (general.code, general.ext, general.body, general.remark),
            (hot.code, hot.ext, hot.body, hot.remark),
        )
        return hot

    def hold(self, offset: int = 0, opaque: int = 1, **more: str) -> None:
        """A pull by the hot way that waits."""
        ext = pull_ext(offset, **{"sysFlag": "6", **more})
        self.assertTrue(self.rig.hot(PULL, ext, opaque=opaque))
