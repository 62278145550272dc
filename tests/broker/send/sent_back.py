"""A data path for messages that consumers send back."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.rig import UNIQUE, Rig, answered, send_ext

SEND = RequestCode.SEND_MESSAGE_V2

BACK = RequestCode.CONSUMER_SEND_MSG_BACK

WAITING = "SCHEDULE_TOPIC_XXXX"

DEAD = "%DLQ%G"


class SendBackCase(SynchronousTestCase):
    """A data path with a topic T."""

    def setUp(self) -> None:
        """One with the usual settings."""
        self.begin()

    def begin(self, threads: bool = False, **settings: str) -> Rig:
        """One with those settings."""
        self.rig = Rig(settings, threads)
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 4)
        return self.rig

    def group(self, **changes: object) -> None:
        """Set up group G."""
        values: dict[str, Any] = changes
        config = SubscriptionGroupConfig(group_name="G", **values)
        self.rig.groups.put([config])

    def send(self, times: int = 0, properties: str = "TAGS\x01red\x02") -> int:
        """Store a message that failed so often already; where it stands."""
        ext = send_ext(
            properties=f"UNIQ_KEY\x01{UNIQUE}\x02{properties}", j=str(times), h="7"
        )
        answer = self.rig.ask(SEND, ext, b"body")
        assert answer.code == 0 and answer.ext is not None, answer
        return int(answer.ext["msgId"][16:], 16)

    def header(self, position: int, level: int = 0, **more: str) -> dict[str, str]:
        """The fields of a request, as a client of 5.x writes them."""
        return {
            "offset": str(position),
            "group": "G",
            "delayLevel": str(level),
            "originMsgId": UNIQUE,
            "originTopic": "T",
            "unitMode": "false",
            "maxReconsumeTimes": "16",
            "bname": "broker-a",
            **more,
        }

    def back(
        self, position: int, level: int = 0, version: int = 479, **more: str
    ) -> Command:
        """Give a message back; the answer."""
        header = self.header(position, level, **more)
        request = Command(BACK, header, opaque=1, version=version)
        return answered(self.rig.table.responders[BACK](self.rig.connection, request))

    def waiting(self, level: int) -> list[StoredMessage]:
        """What waits in a level."""
        return self.rig.records(level - 1, WAITING)
