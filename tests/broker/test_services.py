"""What a broker does again and again."""

from __future__ import annotations

from typing import Any

from rocketbroker.broker import services
from rocketbroker.broker.broker import Broker
from rocketbroker.broker.services import CLEANING, FINDINGS, REGISTRATION, Service
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import SMALL
from tests.broker.week import WeekCase


class ServicesTests(WeekCase):
    """The services of a whole broker."""

    def rows(self) -> dict[str, dict[str, Any]]:
        """What request 31002 says of each service, by its name."""
        found: Any = loads(self.ask(RequestCode.GET_SERVICES, {}).body)
        return {row["name"]: row for row in found["services"]}

    def looking(self) -> Broker:
        """A broker that looks its name servers up, too."""
        return self.running(fetchNameSrvAddrByDnsLookup="true")

    def test_all(self) -> None:
        """A broker with ASYNC_FLUSH runs the whole table."""
        table = [each for each in vars(services).values() if type(each) is Service]
        self.assertGreater(len(table), 15)
        self.assertEqual(set(self.looking().services.calls), set(table))

    def test_errors(self) -> None:
        """An error in any of them is counted, and it runs again at its next time."""
        broker = self.looking()
        for service, call in broker.services.calls.items():
            self.assertEqual(call.failures, 0, service.name)
            work = call._work

            def fails(name: str = service.name) -> None:
                raise ValueError(name)

            call._work = fails
            while not call.failures:
                self.network.advance(min(call.period, 1.0))
            call._work = work
            runs = call.runs
            while call.runs == runs:
                self.network.advance(min(call.period, 1.0))
            self.network.settle()
            self.assertEqual(call.failures, len(self.flushLoggedErrors(ValueError)))

    def test_rows(self) -> None:
        """An operator sees when each ran, how long, and how often it failed."""
        broker = self.running()
        before = self.rows()
        self.assertNotIn("lastRunTimestamp", before[CLEANING.name])
        self.assertEqual(before[CLEANING.name]["periodMillis"], 10_000)
        call = broker.services.calls[FINDINGS]
        call.failures = 3
        self.network.advance(FINDINGS.period(broker.settings))
        row = self.rows()[FINDINGS.name]
        self.assertEqual((row["runs"], row["failures"]), (1, 3))
        self.assertEqual((row["isRunning"], row["lastRunMillis"]), (False, 0))
        self.assertEqual(row["lastRunTimestamp"], self.wall_ms())
        self.assertEqual(row["reason"], FINDINGS.reason)

    def test_registrationPeriod(self) -> None:
        """Registrations are 10 to 60 seconds apart, whatever the setting."""
        for given, seconds in (("1", 10), ("20000", 20), ("3600000", 60)):
            settings = BrokerSettings.from_properties(
                {**SMALL, "registerNameServerPeriod": given}
            )
            self.assertEqual(REGISTRATION.period(settings), seconds)
