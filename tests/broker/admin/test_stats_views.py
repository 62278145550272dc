"""Request 315."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.figures import LOOK_SECONDS
from rocketbroker.errors import SystemFailure
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import Rig, send_ext


class StatsViewsTests(SynchronousTestCase):
    """One statistic as tools ask for it."""

    def setUp(self) -> None:
        """A broker that runs and has taken two messages."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.rig.broker.start()
        for _ in range(2):
            self.rig.ask(310, send_ext(), b"body")

    def live(self, looks: int = 1) -> None:
        """Let time pass."""
        for _ in range(looks):
            self.rig.clock.advance(LOOK_SECONDS)

    def view(self, name: str, key: str) -> object:
        """The answer for a name and a key."""
        return loads(self.rig.ask(315, {"statsName": name, "statsKey": key}).body)

    def test_views(self) -> None:
        """All windows, as RocketMQ writes them."""
        self.live()
        nothing = {"avgpt": 0.0, "sum": 0, "tps": 0.0}
        self.assertEqual(
            self.view("TOPIC_PUT_NUMS", "T"),
            {
                "statsDay": nothing,
                "statsHour": nothing,
                "statsMinute": {"avgpt": 1.0, "sum": 2, "tps": 0.2},
            },
        )
        self.assertEqual(
            self.view("BROKER_PUT_NUMS", "cluster-a"),
            {
                "statsDay": nothing,
                "statsHour": nothing,
                "statsMinute": {"avgpt": 0.0, "sum": 2, "tps": 0.2},
            },
        )

    def test_hour(self) -> None:
        """A running broker takes the samples of an hour and of a day, too."""
        self.live(360)
        counted = {"avgpt": 1.0, "sum": 2, "tps": 2 / 3600}
        self.assertEqual(
            self.view("TOPIC_PUT_NUMS", "T"),
            {
                "statsDay": counted,
                "statsHour": counted,
                "statsMinute": {"avgpt": 0.0, "sum": 0, "tps": 0.0},
            },
        )

    def test_missing(self) -> None:
        """What was never counted does not exist, by the words that tools look for."""
        self.live()
        for name, key in (("TOPIC_PUT_NUMS", "U"), ("NO_SUCH_NAME", "T")):
            error = self.assertRaises(SystemFailure, self.view, name, key)
            self.assertEqual(str(error), f"The stats <{name}> <{key}> not exist")

    def test_fields(self) -> None:
        """A request needs both fields."""
        for ext in ({"statsName": "TOPIC_PUT_NUMS"}, {"statsKey": "T"}):
            self.assertRaises(SystemFailure, self.rig.ask, 315, ext)
