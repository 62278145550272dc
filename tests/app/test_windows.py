"""Windows, as far as it can be seen elsewhere."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.windows import SENTENCE, Options


class WindowsTests(SynchronousTestCase):
    """What twistd is told of there."""

    def test_serversRefuse(self) -> None:
        """Every command line of a server ends with one sentence and status 1."""
        for args in ((), ("-c", "a"), ("--help",)):
            output = io.StringIO()
            with redirect_stderr(output), self.assertRaises(SystemExit) as caught:
                Options().parseOptions(args)
            self.assertEqual(caught.exception.code, 1)
            self.assertEqual(output.getvalue(), SENTENCE + "\n")
