# -*- test-case-name: tests.records.test_recall_handle -*-
"""The recall handle: text by which the sender of a message that waits takes it back.

Base64, in the alphabet of URLs, of C{v1 TOPIC BROKER DELIVER_MS UNIQUE_KEY}.
C{docs/facts/client.md} 6.4.
"""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from rocketbroker.records.malformed import Malformed

_VERSION: Final = "v1"

#: What Java's parseLong takes, but for digits of other scripts.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}\Z")


class RecallHandle(NamedTuple):
    """What a recall handle says.

    @ivar topic: the real topic.
    @ivar broker_name: where the message waits.
    @ivar deliver_ms: a time in its slot.
    @ivar unique_key: its id.
    """

    topic: str
    broker_name: str
    deliver_ms: int
    unique_key: str

    @classmethod
    def parse(cls, text: str) -> RecallHandle:
        """What a client gives back.

        @raise Malformed: it is no such handle.
        """
        try:
            data = base64.b64decode(text.encode("ascii"), b"-_", validate=True)
            version, topic, broker_name, deliver, unique_key = data.decode().split(" ")
        except ValueError as error:
            raise Malformed(f"{text!r} is no recall handle") from error
        if version != _VERSION or not _WHOLE.match(deliver):
            raise Malformed(f"{text!r} is no recall handle")
        return cls(topic, broker_name, int(deliver), unique_key)

    def encode(self) -> str:
        """The handle as clients have it."""
        text = f"{_VERSION} {' '.join(map(str, self))}"
        return base64.urlsafe_b64encode(text.encode()).decode()
