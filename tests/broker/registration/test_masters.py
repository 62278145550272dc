"""Where a slave's master is."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.masters import Master, Masters
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.testing.threads import at_once
from tests.broker.rig import NoLookup, services_of

FIRST = Master("10.0.0.1:10912", "10.0.0.1:10911")
OTHER = Master("10.0.0.2:10912", "10.0.0.2:10911")


class MastersTests(SynchronousTestCase):
    """Two name servers tell of masters."""

    def setUp(self) -> None:
        """Nothing is known."""
        settings = BrokerSettings.from_properties({"namesrvAddr": "a:1;b:1"})
        servers = NameServers(settings, NoLookup(), at_once, services_of(Clock()))
        self.masters = Masters(servers)
        self.found: list[Master] = []
        self.masters.watch(self.found.append)

    def test_first(self) -> None:
        """The first name server that knows a master is believed; each change is told
        once."""
        self.masters.note("b:1", FIRST)
        self.masters.note("a:1", Master())
        self.masters.note("b:1", FIRST)
        self.assertEqual((self.masters.current, self.found), (FIRST, [FIRST]))
        self.masters.note("a:1", OTHER)
        self.assertEqual((self.masters.current, self.found), (OTHER, [FIRST, OTHER]))

    def test_gone(self) -> None:
        """Once nobody knows it any more, there is none."""
        self.masters.note("a:1", FIRST)
        self.masters.note("a:1", Master())
        self.assertEqual(self.found, [FIRST, Master()])

    def test_last(self) -> None:
        """The last master that was known is remembered when there is none."""
        self.masters.note("a:1", FIRST)
        self.masters.say(Master())
        self.assertEqual((self.masters.current, self.masters.last), (Master(), FIRST))

    def test_answers(self) -> None:
        """Each answer is told, even if it says what was known."""
        named: list[Master] = []
        self.masters.watch_answers(named.append)
        self.masters.note("a:1", FIRST)
        self.masters.note("a:1", FIRST)
        self.masters.say(OTHER)
        self.assertEqual(named, [FIRST, FIRST])

    def test_otherServers(self) -> None:
        """What name servers have said that are none any more does not count."""
        self.masters.note("c:1", FIRST)
        self.assertEqual(self.masters.current, Master())
