"""Name server and broker in one process."""

from __future__ import annotations

import io
import socket
from contextlib import redirect_stderr
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.standalone import LOOPBACK, free_port, run_standalone
from rocketbroker.broker.broker import VIP_DISTANCE


class PortTests(SynchronousTestCase):
    """Any free port."""

    def test_free(self) -> None:
        """The port and its VIP port can both be bound."""
        port = free_port(LOOPBACK)
        for each in (port, port - VIP_DISTANCE):
            with socket.socket() as sock:
                sock.bind((LOOPBACK, each))


class RefusalTests(SynchronousTestCase):
    """What is wrong is found before the reactor runs."""

    def refused(self, config: str, directory: str | None) -> str:
        """What is said on standard error before exit status 1."""
        said = io.StringIO()
        with redirect_stderr(said), self.assertRaises(SystemExit) as caught:
            run_standalone(directory, 0, 0, 0, config)
        self.assertEqual(caught.exception.code, 1)
        self.assertEqual(said.getvalue().count("\n"), 1, said.getvalue())
        return said.getvalue()

    def test_noFile(self) -> None:
        """A settings file that is not there is one sentence."""
        path = self.mktemp()
        self.assertIn(path, self.refused(path, self.mktemp()))

    def test_badValue(self) -> None:
        """So is a value that does not fit, for either of them, or a temporary one."""
        path = Path(self.mktemp())
        for text in ("flushDiskType=NEVER", "scanNotActiveBrokerInterval=soon"):
            path.write_text(text)
            key = text.partition("=")[0]
            self.assertIn(key, self.refused(str(path), self.mktemp()))
            self.assertIn(key, self.refused(str(path), None))
