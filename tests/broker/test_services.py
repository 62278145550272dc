"""What a broker does again and again."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.pop.revive import REVIVE
from rocketbroker.broker.pop.room import POP_PROGRESS
from rocketbroker.broker.registration.registration import REGISTRATION
from rocketbroker.broker.replicas.metadata_sync import METADATA_SYNC
from rocketbroker.broker.replicas.room import MASTERS_END
from rocketbroker.broker.roles import ACTING, MASTERS, Role
from rocketbroker.broker.schedule.schedule_service import DELIVERY
from rocketbroker.broker.services import Service, Services
from rocketbroker.broker.statictopics.room import CLEAN_MAPPINGS
from rocketbroker.broker.storage.cleanup import CLEANING
from rocketbroker.broker.storage.store_scheduler import FINDINGS
from rocketbroker.broker.timer.timer_service import COUNT_TIMERS
from rocketbroker.broker.timer.timer_sync import TIMER_SYNC
from rocketbroker.broker.timer.wheel_enqueue import DELIVER_TIMERS
from rocketbroker.broker.transaction.check_back import CHECKS, MARKS
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import SMALL, services_of
from tests.broker.week import WeekCase

ROOT = Path(__file__).resolve().parents[2]


def all_services() -> set[Service]:
    """The services of all rooms."""
    paths = (ROOT / "rocketbroker" / "broker").rglob("*.py")
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in paths
        if ": Final = Service(" in path.read_text("utf-8")
    ]
    return {
        each
        for name in names
        for each in vars(import_module(name)).values()
        if type(each) is Service
    }


class RoleTests(SynchronousTestCase):
    """Services of a broker whose role changes."""

    def setUp(self) -> None:
        """A master that does its special work every second."""
        self.clock = Clock()
        self.services = services_of(self.clock)
        self.done: list[float] = []
        self.ready: Deferred[None] = Deferred()
        self.service = Service("s", "r", lambda s: 1.0, roles=MASTERS | ACTING)
        self.call = self.services.begin(
            self.service, lambda: self.done.append(self.clock.seconds()), self.resume
        )
        self.addCleanup(self.services.stop)

    def resume(self) -> Deferred[None]:
        """What is done before it runs in another role."""
        return self.ready

    def test_end(self) -> None:
        """What the new role does not have ends at once."""
        self.clock.pump([1, 1])
        self.services.act_as(Role.SLAVE)
        self.services.act_as(Role.SLAVE)
        self.clock.pump([1, 1])
        self.assertEqual(self.done, [1, 2])
        self.assertFalse(self.services.is_on(self.service))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_begin(self) -> None:
        """What the new role has runs as soon as it has got ready."""
        self.services.act_as(Role.SLAVE)
        self.services.act_as(Role.ACTING_MASTER)
        self.clock.pump([1, 1])
        self.assertEqual(self.done, [])
        self.ready.callback(None)
        self.clock.pump([1, 1])
        self.assertEqual(self.done, [3, 4])

    def test_late(self) -> None:
        """What gets ready when the role is another one again, or after a stop, does not
        run."""
        self.services.act_as(Role.SLAVE)
        self.services.act_as(Role.ACTING_MASTER)
        self.services.act_as(Role.SLAVE)
        self.ready.callback(None)
        self.assertFalse(self.call.running)
        self.ready = Deferred()
        self.services.act_as(Role.MASTER)
        self.services.stop()
        self.ready.callback(None)
        self.assertFalse(self.call.running)

    def test_failure(self) -> None:
        """What does not get ready is logged, and runs all the same."""
        self.services.act_as(Role.SLAVE)
        self.services.act_as(Role.MASTER)
        self.ready.errback(OSError("disk"))
        self.assertTrue(self.call.running)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)

    def test_runNow(self) -> None:
        """What is on runs at once, and a period later again; what is off does not."""
        self.clock.advance(0.5)
        self.services.run_now()
        self.clock.pump([0.75, 0.25])
        self.assertEqual(self.done, [0.5, 1.5])
        self.services.act_as(Role.SLAVE)
        self.services.run_now()
        self.clock.pump([1, 1])
        self.assertEqual(self.done, [0.5, 1.5])

    def test_slave(self) -> None:
        """The settings say which role a broker begins with."""
        settings = BrokerSettings.from_properties(
            {**SMALL, "brokerRole": "SLAVE", "brokerId": "1"}
        )
        services = Services(self.clock, settings, lambda: 0)
        self.assertIs(services.role, Role.SLAVE)
        self.assertFalse(services.begin(self.service, self.done.clear).running)


class ServicesTests(WeekCase):
    """The services of a whole broker."""

    def rows(self) -> dict[str, dict[str, Any]]:
        """What request 31002 says of each service, by its name."""
        found: Any = loads(self.ask(RequestCode.GET_SERVICES, {}).body)
        return {row["name"]: row for row in found["services"]}

    def looking(self) -> Broker:
        """A broker that looks its name servers up, too, from which clients pop, and
        that controls access."""
        broker = self.running(fetchNameSrvAddrByDnsLookup="true", aclEnable="true")
        self.assertIsNotNone(broker.pop)
        return broker

    def test_all(self) -> None:
        """A master and a slave with ASYNC_FLUSH have the whole table between them."""
        table = all_services()
        self.assertGreater(len(table), 15)
        found = set(self.looking().services.calls)
        self.disk, self.port = MemoryDisk(), 10931
        slave = self.running(
            brokerRole="SLAVE",
            brokerId="1",
            enableSlaveActingMaster="true",
            totalReplicas="2",
        )
        self.assertEqual(found | set(slave.services.calls), table)

    def on(self, broker: Broker) -> set[str]:
        """The services that run."""
        return {
            each.name for each, call in broker.services.calls.items() if call.running
        }

    def test_roles(self) -> None:
        """A slave stores nothing of its own: it delivers no delayed messages, ends
        no transactions, revives no messages, and does all else. An acting master
        stores nothing either, and has others keep what belongs to pops."""
        broker = self.looking()
        everything = {
            each.name for each in broker.services.calls if Role.MASTER in each.roles
        }
        self.assertEqual(self.on(broker), everything)
        broker.services.act_as(Role.SLAVE)
        kept = self.on(broker)
        special = {DELIVERY.name, CHECKS.name, MARKS.name, DELIVER_TIMERS.name}
        special |= {CLEAN_MAPPINGS.name, COUNT_TIMERS.name}
        pops = {POP_PROGRESS.name, REVIVE.name}
        self.assertEqual(everything - kept, special | pops)
        copied = {METADATA_SYNC.name, TIMER_SYNC.name}
        followers = copied | {MASTERS_END.name}
        self.assertEqual(kept - everything, followers)
        self.assertFalse(self.rows()[DELIVERY.name]["isOn"])
        broker.services.act_as(Role.ACTING_MASTER)
        self.network.settle()
        self.assertEqual(self.on(broker), (kept - copied) | pops)
        broker.services.act_as(Role.MASTER)
        self.network.settle()
        self.assertEqual(self.on(broker), everything)
        self.assertTrue(self.rows()[DELIVERY.name]["isOn"])

    def test_errors(self) -> None:
        """An error in any of them is counted, and it runs again at its next time."""
        for service in all_services():
            clock = Clock()
            begun = services_of(clock)
            begun.act_as(min(service.roles, key=list(Role).index))
            mistakes = [ValueError(service.name)]

            def work(mistakes: list[ValueError] = mistakes) -> None:
                if mistakes:
                    raise mistakes.pop()

            call = begun.begin(service, work)
            while call.runs < 2:
                clock.advance(min(call.period, 1.0))
            self.assertEqual((call.failures, mistakes), (1, []), service.name)
            self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
            begun.stop()

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
