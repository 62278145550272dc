# -*- test-case-name: tests.blocking -*-
"""Messages to send, and the results of sends: names for users of the package."""

from __future__ import annotations

from rocketbroker.records.outgoing import MAX_BODY_BYTES, Message, check_topic
from rocketbroker.routing.send_requests import SendResult

__all__ = ["MAX_BODY_BYTES", "Message", "SendResult", "check_topic"]
