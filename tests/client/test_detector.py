"""Brokers out of reach are asked whether they are back."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.settings import ProducerSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.records.outgoing import Message
from rocketbroker.testing.puppet_cluster import silent
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

SEND = RequestCode.SEND_MESSAGE_V2
ASK = RequestCode.GET_MAX_OFFSET


class DetectorTests(SynchronousTestCase):
    """Two brokers; b1 is stopped."""

    def begin(self, detector: bool) -> None:
        """A producer that avoids what is slow, and has failed at b1."""
        self.here = ClientCluster()
        self.runtime = self.here.runtime
        self.producer = self.here.producer(avoid_slow=True, detector=detector)
        self.send(4)
        self.here.cluster.stop("b1")
        self.send(4)
        # Both are slow now, so that only reach counts.
        for _ in range(4):
            self.here.broker("b2").faults[SEND] = [silent]
            self.send(1)

    def send(self, count: int) -> list[str]:
        """Send messages; the brokers that took them."""
        found = []
        for _ in range(count):
            sending = self.runtime.start(self.producer.send(Message("T", "x")))
            found.append(self.here.until(sending).queue.broker)
        return found

    def asked(self, broker: str) -> list[int]:
        """What a broker has been asked, but sends."""
        codes = self.runtime.codes(f"{broker}:10911")
        return [code for code in codes if code != SEND]

    def test_brokerThatIsBackIsAskedUntilItAnswers(self) -> None:
        """Every three seconds, for the last offset of a queue, and not again."""
        self.begin(True)
        self.runtime.advance(10.0)
        before = self.runtime.connects.count("b1:10911")
        self.runtime.advance(9.0)
        self.assertEqual(self.runtime.connects.count("b1:10911") - before, 3)
        self.here.cluster.start("b1")
        self.runtime.advance(9.0)
        self.assertEqual(self.asked("b1"), [ASK])
        self.assertEqual({*self.send(4)}, {"b1", "b2"})

    def test_nobodyIsAskedUnlessWanted(self) -> None:
        """The broker is tried again when its time is over."""
        self.begin(False)
        self.here.cluster.start("b1")
        self.runtime.advance(40.0)
        self.assertEqual(self.asked("b1"), [])
        self.assertEqual({*self.send(4)}, {"b1", "b2"})

    def test_brokerThatIsGoneIsForgotten(self) -> None:
        """The route names it no more."""
        self.begin(True)
        self.here.cluster.topics["T"] = {"b2": 2}
        self.runtime.advance(70.0)
        before = len(self.runtime.connects)
        self.runtime.advance(20.0)
        self.assertEqual(self.runtime.connects[before:].count("b1:10911"), 0)

    def test_itGoesWithFaultTolerance(self) -> None:
        """Without it, nothing would change."""
        with self.assertRaises(ConfigurationError):
            ProducerSettings(detector=True)
