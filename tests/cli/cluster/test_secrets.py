"""Secrets that a user gives."""

from __future__ import annotations

import io

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.cluster.secrets import given_secret
from rocketbroker.cli.exit_status import USAGE, Failure


class GivenSecretTests(SynchronousTestCase):
    """Those of files; C{tests.integration.test_secured_commands} has a terminal."""

    def test_line(self) -> None:
        """The end of the line is none of it; blanks are."""
        for text in ("a b ", "a b \n", "a b \r\n"):
            self.assertEqual(given_secret(io.StringIO(text), "Secret"), "a b ")

    def test_noLine(self) -> None:
        """Nothing, or more than a line, is no secret, and is not repeated."""
        for text in ("", "\n", "hidden\nhidden\n"):
            failure = self.assertRaises(
                Failure, given_secret, io.StringIO(text), "Secret", "--password"
            )
            self.assertEqual(failure.exit_code, USAGE)
            self.assertIn("--password-file has to hold one line", failure.message)
            self.assertNotIn("hidden", failure.message)
