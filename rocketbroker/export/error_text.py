# -*- test-case-name: tests.export.test_error_text -*-
"""Errors as one sentence each: for people, on one line."""

from __future__ import annotations

import re
from typing import Final

from rocketbroker.files.os_errors import reason

#: RocketMQ ends many of its sentences with a link to a page of questions and answers.
FAQ: Final = re.compile(r"\s*,?\s*See https?://\S+ for further details\.?")


def sentence(error: BaseException) -> str:
    """What an error says, on one line, without RocketMQ's link."""
    said = reason(error) if isinstance(error, OSError) else str(error)
    lines = [line.strip() for line in FAQ.sub("", said).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
