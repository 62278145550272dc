# -*- test-case-name: tests.records.test_record -*-
"""The one error that decoding bytes of this package raises.

It is neither a peer's fault nor the disk's: who read the bytes knows where they came
from, and turns it into an answer, a closed connection or a torn tail.
"""

from __future__ import annotations

from rocketbroker.errors import RocketbrokerError


class Malformed(RocketbrokerError):
    """Bytes or text without the form they claim; its text says what is wrong."""
