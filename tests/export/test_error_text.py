"""Errors on one line."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import TopicNotExist
from rocketbroker.export.error_text import sentence


class SentenceTests(SynchronousTestCase):
    """L{sentence}."""

    def test_system(self) -> None:
        """The system's errors have a reason, and the file if it is known."""
        full = os.strerror(errno.ENOSPC)
        self.assertEqual(sentence(OSError(errno.ENOSPC, full)), full)
        self.assertEqual(sentence(OSError(errno.ENOSPC, full, "/x")), f"{full} (/x)")
        self.assertEqual(sentence(OSError("AWS Error\nmore")), "AWS Error")

    def test_link(self) -> None:
        """RocketMQ's link is left out."""
        link = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further"
        for before in ("\n", ", \n", " "):
            error = TopicNotExist(f"topic[T] not exist{before}{link} details.")
            self.assertEqual(sentence(error), "topic[T] not exist")

    def test_nothing(self) -> None:
        """An error without words has a name."""
        self.assertEqual(sentence(ValueError()), "ValueError")
