"""Request 60."""

from __future__ import annotations

import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import RequestCode
from tests.broker.rig import WALL_MS, Rig


class TimerCheckpointTests(SynchronousTestCase):
    """L{rocketbroker.broker.replicas.timer_checkpoint.TimerCheckpoint}."""

    def test_answer(self) -> None:
        """All timers up to this second are over, by a version older than any."""
        rig = Rig({}, start_ms=WALL_MS + 700)
        self.addCleanup(rig.close)
        answer = rig.ask(RequestCode.GET_TIMER_CHECK_POINT, {})
        self.assertEqual(struct.unpack(">7q", answer.body), (WALL_MS, 0, 0, 0, 0, 0, 0))
