"""The memory runtime: what a test sees of it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConnectionLost
from rocketbroker.testing.runtime import MemoryRuntime


class Events:
    """Notes what happens to a link."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def received(self, data: bytes) -> None:
        """See L{LinkEvents}."""
        self.told.append(data)

    def congested(self, is_congested: bool) -> None:
        """See L{LinkEvents}."""
        self.told.append(is_congested)

    def lost(self, why: str) -> None:
        """See L{LinkEvents}."""
        self.told.append(why)


class MemoryRuntimeTests(SynchronousTestCase):
    """What a test can do that no other runtime lets it do."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.events = Events()

    def test_timePassesOnlyWhenTheTestSaysSo(self) -> None:
        """A sleep ends when so much time has been let pass, and not before."""
        sleeping = self.runtime.start(self.runtime.sleep(2.0))
        self.runtime.settle()
        self.runtime.advance(1.9)
        self.assertFalse(sleeping.ended)
        self.runtime.advance(0.1)
        sleeping.value()

    def test_unknownServerRefusesAndSilentOneTimesOut(self) -> None:
        """Two ways not to be there."""
        connecting = self.runtime.connect("a", 1, 3.0, self.events)
        with self.assertRaises(ConnectionLost):
            self.runtime.finish(connecting)
        self.runtime.silent.add("a:1")
        waiting = self.runtime.start(self.runtime.connect("a", 1, 3.0, self.events))
        self.runtime.settle()
        self.assertFalse(waiting.ended)
        self.runtime.advance(3.0)
        with self.assertRaises(ConnectionLost):
            waiting.value()

    def test_bytesArriveInPieces(self) -> None:
        """With a limit a frame comes byte by byte."""
        self.runtime.servers["a:1"] = lambda link, command: None
        self.runtime.finish(self.runtime.connect("a", 1, 3.0, self.events))
        self.runtime.max_bytes = 1
        (link,) = self.runtime.links_to("a:1")
        link.send_bytes(b"abc")
        self.runtime.settle()
        self.assertEqual(self.events.told, [b"a", b"b", b"c"])

    def test_cutLinkIsToldOnce(self) -> None:
        """Both ends may close it; it is lost once."""
        self.runtime.servers["a:1"] = lambda link, command: None
        link = self.runtime.finish(self.runtime.connect("a", 1, 3.0, self.events))
        self.runtime.cut("a:1")
        link.close()
        self.runtime.settle()
        self.assertEqual(self.events.told, ["it was cut"])
        self.assertEqual(self.runtime.links, [])
