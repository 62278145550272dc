"""What the process of every server is set up with."""

from __future__ import annotations

import faulthandler
import gc
import resource
import sys

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.process import ServerProcess
from rocketbroker.app.reactor import SWITCH_SECONDS


class ProcessTests(SynchronousTestCase):
    """L{ServerProcess}."""

    def test_setUp(self) -> None:
        """Threads, descriptors and garbage are set before all."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        self.addCleanup(gc.enable)
        if not faulthandler.is_enabled():
            self.addCleanup(faulthandler.disable)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
        ServerProcess(Clock(), None)
        self.assertAlmostEqual(sys.getswitchinterval(), SWITCH_SECONDS)
        self.assertGreater(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 512)
        self.assertTrue(faulthandler.is_enabled())
        self.assertFalse(gc.isenabled())
