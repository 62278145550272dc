"""Name servers that are looked up."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NAME_SERVERS, NameServers
from rocketbroker.broker.registration.registration import Registration
from rocketbroker.broker.services import Services
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from tests.broker.callers import Caller
from tests.broker.rig import Known, NoLookup

PAGE = "http://here:8080/rocketmq/nsaddr"


class NameServersTests(SynchronousTestCase):
    """A broker that asks DNS or an address server, and registers."""

    def setUp(self) -> None:
        """Nothing is known."""
        self.clock = Clock()
        self.known = Known()
        self.caller = Caller()

    def begin(self, **given: str) -> None:
        """A broker with these settings that has started to register."""
        settings = BrokerSettings.from_properties(given)
        self.services = Services(self.clock, settings, lambda: 0)
        self.names = NameServers(settings, self.known, at_once, self.services)
        file = JsonTable(MemoryDisk(), "/config/topics.json", at_once, self.clock)
        calls = NameServerApi(self.caller, settings.broker, "1.2.3.4:5", "1.2.3.4:6")
        self.registration = Registration(
            self.clock,
            calls,
            self.names,
            settings.broker,
            TopicTable(settings.broker, file, lambda: 1000),
            QueueMappings("b", file, lambda: 1000),
            self.services,
        )
        self.ready = self.registration.start()

    def asked(self) -> list[str]:
        """The name servers that were asked something, which they answer."""
        calls = self.caller.take()
        for call in calls:
            call.answer()
        return [call.address for call in calls]

    def test_fixed(self) -> None:
        """Those of the settings are not looked up; nor are those of nobody."""
        for given, expected in (("a:1;b:2", ("a:1", "b:2")), ("", ())):
            self.begin(namesrvAddr=given)
            self.assertEqual(self.names.current, expected)
            self.assertEqual(self.asked(), list(expected))
            self.assertNotIn(NAME_SERVERS, self.services.calls)
            self.assertEqual(self.names.is_needed(), bool(given))
            self.successResultOf(self.ready)

    def test_dns(self) -> None:
        """Each address of each name is one; new ones hear of the broker at once, two
        minutes later at the latest."""
        self.known.hosts = {"ns": ["10.0.0.2", "10.0.0.1"], "six": ["fd00::1"]}
        self.begin(namesrvAddr="ns:9876;six:1", fetchNameSrvAddrByDnsLookup="true")
        expected = ["10.0.0.1:9876", "10.0.0.2:9876", "[fd00::1]:1"]
        self.assertEqual(self.asked(), expected)
        self.successResultOf(self.ready)
        self.known.hosts["ns"] = ["10.0.0.2", "10.0.0.3"]
        self.services.calls[NAME_SERVERS].stop()
        self.successResultOf(self.names._look())
        self.assertEqual(self.asked(), ["10.0.0.3:9876"])
        self.assertEqual(
            self.names.current, ("10.0.0.2:9876", "10.0.0.3:9876", "[fd00::1]:1")
        )
        self.assertEqual(self.services.calls[NAME_SERVERS].period, 120)

    def test_page(self) -> None:
        """An address server is asked each ten seconds, also before it has answered."""
        self.begin(
            namesrvAddr="",
            fetchNamesrvAddrByAddressServer="true",
            rmqAddressServerDomain="here",
        )
        self.successResultOf(self.ready)
        self.assertTrue(self.names.is_needed())
        self.assertFalse(self.registration.is_known)
        self.assertEqual(self.asked(), [])
        self.known.pages[PAGE] = "a:1;b:2\n"
        self.clock.advance(9.9)
        self.assertEqual(self.names.current, ())
        self.clock.advance(0.1)
        self.assertEqual(self.names.current, ("a:1", "b:2"))
        self.assertEqual(sorted(set(self.asked())), ["a:1", "b:2"])
        self.assertTrue(self.registration.is_known)

    def test_troubles(self) -> None:
        """What cannot be looked up, is empty or makes no sense changes nothing; each
        trouble is logged once."""
        self.known.pages[PAGE] = "a:1"
        self.begin(
            namesrvAddr="",
            fetchNamesrvAddrByAddressServer="true",
            rmqAddressServerDomain="here",
        )
        with capturedLogs() as events:
            for page in (None, None, "", "<html>", "a:1"):
                self.known.pages = {} if page is None else {PAGE: page}
                self.successResultOf(self.names._look())
                self.assertEqual(self.names.current, ("a:1",))
        logged = [formatEvent(event) for event in events]
        self.assertEqual(len(logged), 2, logged)
        self.assertIn(f"a:1 stay: {PAGE} does not answer", logged[0])
        self.assertIn("each entry must be host:port", logged[1])

    def test_gone(self) -> None:
        """One that is no name server any more is not asked, and not missed."""
        self.known.hosts = {"ns": ["10.0.0.1", "10.0.0.2"]}
        self.begin(namesrvAddr="ns:1", fetchNameSrvAddrByDnsLookup="true")
        first, second = self.caller.take()
        first.answer()
        second.fail()
        self.assertEqual(self.registration.unreachable, {"10.0.0.2:1"})
        self.known.hosts["ns"] = ["10.0.0.1"]
        self.successResultOf(self.names._look())
        self.assertEqual(self.registration.unreachable, set())
        self.assertEqual(self.asked(), [])
        self.assertTrue(self.registration.is_known)

    def test_doubles(self) -> None:
        """The double that knows nobody fails as the real one does."""
        self.assertRaises(OSError, NoLookup().resolve, "a")
        self.assertRaises(OSError, NoLookup().fetch, "http://a", 1)
