"""A data path that delivers timers."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.services import DELIVERY_SECONDS
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.delays import Refusing
from tests.broker.rig import WALL_MS, Rig, send_ext

SEND = RequestCode.SEND_MESSAGE_V2


class TimerCase(SynchronousTestCase):
    """A data path that delivers what is due."""

    def setUp(self) -> None:
        """A topic T of four queues."""
        self.number = 0
        self.rig = self.begin()

    def begin(
        self,
        disk: MemoryDisk | None = None,
        start_ms: int = WALL_MS,
        threads: bool = False,
        **settings: str,
    ) -> Rig:
        """A data path with those settings, at work."""
        rig = Rig(settings, threads, disk, start_ms, wrap=Refusing)
        self.rig = rig
        self.addCleanup(rig.close)
        if disk is None:
            rig.topic("T", 4)
        rig.broker.timer.service.start()
        self.timers = rig.broker.timer.service
        return rig

    def send(
        self,
        seconds: float,
        body: bytes = b"body",
        name: str = "TIMER_DELIVER_MS",
        key: str | None = None,
        **more: str,
    ) -> Command:
        """Send a message that is due so many seconds from now."""
        ms = int(seconds * 1000)
        if name == "TIMER_DELIVER_MS":
            ms += self.rig.wall_ms()
        elif name == "TIMER_DELAY_SEC":
            ms //= 1000
        self.number += 1
        own = {"UNIQ_KEY": key or f"{self.number:032X}", name: str(ms), **more}
        text = "".join(f"{name}\x01{value}\x02" for name, value in own.items())
        answer = self.rig.ask(SEND, send_ext(properties=text), body)
        self.rig.scheduler.dispatch()
        return answer

    def pass_by(self, seconds: float, step: float = DELIVERY_SECONDS) -> None:
        """Let time pass as it does; the log is flushed meanwhile."""
        clock = self.rig.clock
        end = clock.seconds() + seconds
        while (left := end - clock.seconds()) > 1e-6:
            clock.advance(min(left, step))
            self.rig.scheduler.dispatch()
            self.rig.store.flush()

    def bodies(self, topic: str = "T") -> list[bytes]:
        """What queue 0 of a topic holds."""
        return [stored.body for stored in self.rig.records(0, topic)]

    def late_ms(self) -> list[int]:
        """Of each message that was delivered, how late it was."""
        return [
            stored.store_ms - int(stored.properties["TIMER_DELIVER_MS"])
            for stored in self.rig.records()
        ]

    def restart(self, kept: bool = True, seconds: float = 0.0, **settings: Any) -> None:
        """Kill the broker, and start it after a while.

        @param kept: whether what was written stays: only the process dies; otherwise
            the machine does.
        """
        now_ms = self.rig.wall_ms() + int(seconds * 1000)
        left = self.rig.disk.image(keep_all=kept)
        self.begin(left, now_ms, **settings)

    def stop(self) -> None:
        """Stop the broker as it should be."""
        self.successResultOf(self.rig.broker.stop())
