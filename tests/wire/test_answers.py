"""Fields of answers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.answers import field, number
from rocketbroker.wire.command import Command


class AnswerTests(SynchronousTestCase):
    """What is missing is an error, not a zero."""

    def test_presentFieldsAreRead(self) -> None:
        """A text, and a number of 64 bits."""
        answer = Command(0, {"a": "x", "n": "-5"})
        self.assertEqual((field(answer, "a"), number(answer, "n")), ("x", -5))

    def test_missingFieldIsAnError(self) -> None:
        """Java would read a zero, and begin at offset 0."""
        for ext in (None, {}, {"n": ""}, {"n": "1x"}, {"n": "9" * 20}):
            with self.assertRaises(RemoteProtocolError):
                number(Command(0, ext), "n")
