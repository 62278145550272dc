"""A synchronous master whose slave stops, goes and comes back."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from scripts.lab.pair import (
    OURS,
    Group,
    log_differences,
    queue_differences,
    until,
)
from scripts.lab.servers import ask
from tests.broker.rig import pull_ext, send_ext

#: slaveTimeout, and how much later an answer may come on a machine that is busy: the
#: slave does not come back in that time.
SECONDS = 3.0
LATE = 27.0

#: slaveTimeout where a slave comes back in time, in ms.
LONG_MS = 60_000

TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT


class SyncMasterTests(SynchronousTestCase):
    """What senders hear from a master that waits for one slave."""

    def begin(self, flush: str) -> None:
        """A pair of ours, where one send has had both copies."""
        self.group = Group(
            OURS,
            OURS,
            brokerRole="SYNC_MASTER",
            inSyncReplicas=2,
            flushDiskType=flush,
            autoCreateTopicEnable="true",
        )
        self.addCleanup(self.group.stop)
        self.port = int(self.group.master.address.rpartition(":")[2])
        self.group.namesrv.start()
        self.group.master.start()
        self.slave = self.group.slaves[0]
        self.slave.start()
        self.assertTrue(until(lambda: self.send() == 0), "the slave does not follow")
        self.pool = ThreadPoolExecutor(8)
        self.addCleanup(self.pool.shutdown)

    def send(self, wait: str = "true") -> int:
        """Send a message; the code of the answer."""
        properties = f"UNIQ_KEY\x01{time.monotonic_ns()}\x02WAIT\x01{wait}\x02"
        ext = send_ext(properties=properties)
        request = Command(RequestCode.SEND_MESSAGE_V2, ext, b"body", opaque=1)
        return ask(self.port, request).code

    def timed(self, wait: str = "true") -> tuple[int, float]:
        """The same, and how long it took."""
        begin = time.monotonic()
        code = self.send(wait)
        return code, time.monotonic() - begin

    def sent(self) -> Future[tuple[int, float]]:
        """The same, while the test goes on."""
        return self.pool.submit(self.timed)

    def set_timeout(self, timeout_ms: int) -> None:
        """Change slaveTimeout while the master runs."""
        body = b"slaveTimeout=%d\n" % timeout_ms
        request = Command(RequestCode.UPDATE_BROKER_CONFIG, {}, body, opaque=1)
        self.assertEqual(ask(self.port, request).code, 0)

    def check_timeout(self, found: tuple[int, float]) -> None:
        """It waited for the slave, and no longer."""
        code, took = found
        self.assertEqual(code, TIMEOUT)
        self.assertGreaterEqual(took, SECONDS)
        self.assertLess(took, SECONDS + LATE)

    def check_same(self) -> None:
        """The slave has all that the master has."""
        end = self.group.wait_for(self.slave)
        for member in (self.slave, self.group.master):
            member.stop()
        both = self.group.master.store, self.slave.store
        self.assertEqual(list(log_differences(*both, end)), [])
        self.assertEqual(list(queue_differences(*both, end)), [])

    def test_stoppedSlave(self) -> None:
        """While the slave stands still each send ends with FLUSH_SLAVE_TIMEOUT, three
        seconds after it came; nothing else waits. When it goes on so do they."""
        self.begin("SYNC_FLUSH")
        os.kill(self.slave.pid, signal.SIGSTOP)
        first = self.sent()
        time.sleep(1)
        second = self.sent()
        code, took = self.timed("false")
        self.assertEqual(code, 0)
        self.assertLess(took, SECONDS)
        pull = Command(RequestCode.PULL_MESSAGE, pull_ext(), opaque=1)
        self.assertLess(ask(self.port, pull).code, 100)
        self.check_timeout(first.result())
        self.check_timeout(second.result())
        self.set_timeout(LONG_MS)
        third = self.sent()
        time.sleep(0.5)
        self.assertFalse(third.done())
        os.kill(self.slave.pid, signal.SIGCONT)
        code, took = third.result()
        self.assertEqual(code, 0)
        self.assertLess(took, LONG_MS / 1000)
        self.assertEqual([self.send() for _ in range(5)], [0] * 5)
        self.check_same()

    def test_killedSlave(self) -> None:
        """So it is when the slave is killed; when it is back it gets what it missed,
        and sends are answered with success again."""
        self.begin("ASYNC_FLUSH")
        self.slave.stop(signal.SIGKILL)
        self.check_timeout(self.timed())
        self.slave.start()
        self.assertTrue(until(lambda: self.send() == 0), "the slave does not follow")
        self.assertEqual([self.send() for _ in range(5)], [0] * 5)
        self.check_same()
