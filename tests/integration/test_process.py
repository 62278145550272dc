"""What the process of every server is set up with."""

from __future__ import annotations

import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import ROOT

#: A server that opens nothing; it says how the process is, before and while it runs.
SERVER = """
import faulthandler, gc, resource
from twisted.internet import reactor
from twisted.internet.defer import succeed
from rocketbroker.app.process import ServerProcess

process = ServerProcess(reactor, None)
print(faulthandler.is_enabled(), gc.isenabled(), gc.get_freeze_count() > 0)
process.opened(succeed(None))
reactor.callLater(0.1, reactor.stop)
reactor.run()
print(gc.isenabled(), gc.get_freeze_count() > 0)

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

before = pages()
for turn in range(100):
    several = [bytes(100_000) for _ in range(10)]
    del several
print("few" if pages() - before < 1000 else pages() - before)
"""


class ServerProcessTests(SynchronousTestCase):
    """C{rocketbroker.app.process}."""

    def test_setUp(self) -> None:
        """A crash leaves a traceback; no garbage is looked for during the start, and
        what is there then is never looked at again; memory that is freed is kept."""
        done = subprocess.run(
            [sys.executable, "-c", SERVER], cwd=ROOT, capture_output=True, text=True
        )
        self.assertEqual(done.stdout, "True False False\nTrue True\nfew\n", done.stderr)
