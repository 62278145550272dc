"""What the broker says of itself."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.rates import Rates
from rocketbroker.broker.settings_requests import SettingsRequests, lasted, sized
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.properties import parse
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import Rig, send_ext


class SettingsRequestTests(SynchronousTestCase):
    """Requests 26 and 28."""

    def setUp(self) -> None:
        """A broker whose file has a key that nobody knows."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        said = {"brokerName": "b", "fileReservedTime": "9", "myKey": "my value"}
        requests = SettingsRequests(
            BrokerSettings.from_properties(said),
            self.rig.store,
            self.rig.topics,
            self.rig.sending,
            (
                Rates(self.rig.clock.seconds, lambda: 0),
                Rates(self.rig.clock.seconds, lambda: 0),
            ),
            self.rig.wall_ms,
        )
        requests.register(self.rig.table)

    def table(self) -> dict[str, str]:
        """The figures of request 28."""
        value = loads(self.rig.ask(28, {}).body)
        assert isinstance(value, dict)
        found: dict[str, str] = value["table"]
        return found

    def test_settings(self) -> None:
        """All keys of all parts, and those that nobody knows, as properties."""
        answer = self.rig.ask(26, {})
        known = parse(answer.body.decode())
        self.assertEqual(known["brokerName"], "b")
        self.assertEqual(known["fileReservedTime"], "9")
        self.assertEqual(known["listenPort"], "10911")
        self.assertEqual(known["connectTimeoutMillis"], "3000")
        self.assertEqual(known["myKey"], "my value")
        assert answer.ext is not None
        self.assertIn('"counter":0', answer.ext["version"])

    def test_runtime(self) -> None:
        """Figures follow what happens; all of them are text."""
        self.rig.topic("T")
        before = self.table()
        self.assertEqual(before["msgPutTotalTodayNow"], "0")
        self.assertEqual(before["putMessageTimesTotal"], "1")
        self.rig.ask(310, send_ext(), b"body")
        self.rig.ask(310, send_ext(), b"body")
        self.rig.clock.advance(61)
        after = self.table()
        self.assertEqual(after["msgPutTotalTodayNow"], "2")
        self.assertEqual(after["runtime"], "[ 0 days, 0 hours, 1 minutes, 1 seconds ]")
        self.assertEqual(
            after["commitLogMaxOffset"], str(self.rig.store.published_position)
        )
        self.assertEqual(after["brokerVersion"], "479")
        self.assertTrue(all(isinstance(value, str) for value in after.values()))

    def test_clusterList(self) -> None:
        """What C{clusterList} of a tool of 4.9 cuts or prints is there and is text."""
        table = self.table()
        for key in ("putTps", "getTransferedTps", "getTransferredTps"):
            self.assertEqual(table[key], "  ")
        for key in (
            "sendThreadPoolQueueSize",
            "sendThreadPoolQueueHeadWaitTimeMills",
            "pullThreadPoolQueueSize",
            "pullThreadPoolQueueHeadWaitTimeMills",
            "pageCacheLockTimeMills",
        ):
            self.assertEqual(table[key], "0")

    def test_sizes(self) -> None:
        """Sizes have units of 1024, with one decimal above the first."""
        for count, text in (
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 << 10, "1.5 MiB"),
            (3 << 30, "3.0 GiB"),
            (5 << 40, "5.0 TiB"),
        ):
            self.assertEqual(sized(count), text)

    def test_times(self) -> None:
        """A time is days, hours, minutes and seconds."""
        text = "[ 1 days, 1 hours, 1 minutes, 1 seconds ]"
        self.assertEqual(lasted(90_061_999), text)
