"""Who belongs to a broker's name."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.registration.masters import Master, Masters
from rocketbroker.broker.registration.member_group import MemberGroup
from rocketbroker.broker.registration.membership import Membership
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.broker.services import Services
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import NoPermission
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from tests.broker.callers import Caller
from tests.broker.rig import Known

MASTER = Master("10.0.0.1:10912", "10.0.0.1:10911")


class MembershipCase(SynchronousTestCase):
    """A broker of name b, and a name server that a test plays."""

    number = 0
    name_server = "10.0.0.9:9876"

    def setUp(self) -> None:
        """It has just started for the first time."""
        self.disk = MemoryDisk()
        self.clock = Clock()
        self.lookup = Known()
        self.begin()

    def settings(self, **given: str) -> BrokerSettings:
        """The settings of the broker."""
        return BrokerSettings.from_properties(
            {
                "brokerName": "b",
                "brokerClusterName": "C",
                "brokerRole": "SLAVE" if self.number else "SYNC_MASTER",
                "brokerId": str(self.number),
                "compatibleWithOldNameSrv": "false",
                "namesrvAddr": self.name_server,
                **given,
            }
        )

    def begin(self, **given: str) -> None:
        """The broker starts."""
        settings = self.settings(**given)
        self.caller = Caller()
        services = Services(self.clock, settings, lambda: 0)
        servers = NameServers(settings, self.lookup, at_once, services)
        topics = JsonTable(MemoryDisk(), "/topics.json", at_once, self.clock)
        self.masters = Masters(servers)
        members = MemberGroup(
            NameServerApi(self.caller, settings.broker, "10.0.0.1:10911", "x"),
            servers,
            TopicTable(settings.broker, topics, lambda: 0, False, False),
            self.number,
            RefusalLog(self.clock.seconds),
        )
        file = JsonTable(self.disk, "/config/replicaGroup.json", at_once, self.clock)
        self.membership = Membership(
            self.clock, settings, members, self.masters, servers, file
        )
        self.membership.load()
        self.told: list[bool] = []
        self.membership.watch(self.told.append)

    def look(self, members: bytes | None) -> None:
        """The name server is asked, and says who is there, or nothing."""
        done = self.membership.look()
        self.answer(members)
        self.successResultOf(done)

    def answer(self, members: bytes | None) -> None:
        """The name server answers the one request that waits."""
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), (self.name_server, 901))
        if members is None:
            call.fail()
        else:
            body = b'{"brokerMemberGroup":{"brokerAddrs":{' + members + b"}}}"
            call.answer(body=body)


class SlaveHostTests(MembershipCase):
    """Whose connections to the port of replication are slaves'."""

    def are_slaves(self, *hosts: str) -> list[bool]:
        """Whether connections from these hosts are."""
        return [self.membership.is_slave(host) for host in hosts]

    def test_listedSlaves(self) -> None:
        """Those from the host of a slave that the name server lists: neither those from
        the master's own, nor any others."""
        self.look(b'0:"10.0.0.1:10911",1:"10.0.0.2:10911",2:"s:10911"')
        hosts = "10.0.0.2", "10.0.0.1", "10.0.0.3", "127.0.0.1", "::1"
        self.assertEqual(self.are_slaves(*hosts), [True] + [False] * 4)
        self.assertEqual(self.told, [False])

    def test_namedSlave(self) -> None:
        """A slave that is registered with a name is known by its addresses."""
        self.lookup.hosts["s"] = ["10.0.0.3", "fd00::3"]
        self.look(b'0:"10.0.0.1:10911",2:"s:10911"')
        self.assertEqual(self.are_slaves("10.0.0.3", "fd00::3"), [True, True])

    def test_sameMachine(self) -> None:
        """A slave on this machine, registered with its address in the network, may
        connect over loopback; without one loopback is a stranger's."""
        self.lookup.addresses = ["10.0.0.1"]
        self.look(b'0:"10.0.0.1:10911"')
        self.assertEqual(self.are_slaves("127.0.0.1", "10.0.0.1"), [False, False])
        self.look(b'0:"10.0.0.1:10911",1:"10.0.0.1:10931"')
        self.assertEqual(self.are_slaves("127.0.0.1", "10.0.0.1"), [True, True])

    def test_ownOldEntry(self) -> None:
        """What a name server still lists of this broker's time as a slave is none."""
        self.look(b'0:"10.0.0.1:10911",1:"10.0.0.1:10911"')
        self.assertEqual(self.are_slaves("10.0.0.1"), [False])

    def test_silentNameServer(self) -> None:
        """While the name server is silent the last answer holds, after a start, too;
        one that knows nobody yet says nothing either."""
        self.look(b'0:"10.0.0.1:10911",1:"10.0.0.2:10911"')
        for answer in (None, b""):
            self.look(answer)
            self.assertEqual(self.are_slaves("10.0.0.2"), [True])
        self.begin()
        self.look(None)
        self.assertEqual(self.are_slaves("10.0.0.2"), [True])
        self.look(b'0:"10.0.0.1:10911",1:"10.0.0.3:10911"')
        self.assertEqual(self.are_slaves("10.0.0.2", "10.0.0.3"), [False, True])

    def test_fileOfAnotherName(self) -> None:
        """What was known of the brokers of another name does not count."""
        self.look(b'0:"10.0.0.1:10911",1:"10.0.0.2:10911"')
        self.begin(brokerName="c")
        self.assertEqual(self.are_slaves("10.0.0.2"), [False])

    def test_unreadableFile(self) -> None:
        """A file that makes no sense is as good as none."""
        file = JsonFile(self.disk, "/config/replicaGroup.json")
        file.save(b'{"brokerMemberGroup":[1]}')
        self.begin()
        self.assertEqual(self.are_slaves("10.0.0.2"), [False])

    def test_trustedAddresses(self) -> None:
        """haTrustedAddresses counts at once when it changes, and says so."""
        self.begin(haTrustedAddresses="10.0.0.7; 10.1.0.0/16;fd00::/8")
        hosts = "10.0.0.7", "10.1.2.3", "fd12::1", "10.0.0.8", "::ffff:10.0.0.7"
        self.assertEqual(self.are_slaves(*hosts), [True, True, True, False, True])
        self.membership.configure(self.settings(haTrustedAddresses="10.0.0.8"))
        self.assertEqual(self.are_slaves(*hosts[:4]), [False, False, False, True])
        self.membership.configure(self.settings(haTrustedAddresses="10.0.0.8"))
        self.assertEqual(self.told, [True])

    def test_servesStrangers(self) -> None:
        """haServeStrangers counts at once, too."""
        self.assertTrue(self.membership.serves_strangers)
        self.membership.configure(self.settings(haServeStrangers="false"))
        self.assertFalse(self.membership.serves_strangers)
        self.assertEqual(self.told, [True])

    def test_rateOfLooks(self) -> None:
        """Strangers have the name server asked, the first at once, and at most once in
        two seconds."""
        self.look(b'0:"10.0.0.1:10911"')
        for _ in range(3):
            self.membership.look_soon()
        self.answer(b'0:"10.0.0.1:10911"')
        self.membership.look_soon()
        self.clock.advance(1.9)
        self.membership.look_soon()
        self.assertEqual(self.caller.take(), [])
        self.clock.advance(0.1)
        self.membership.look_soon()
        self.answer(b'0:"10.0.0.1:10911",1:"10.0.0.2:10911"')
        self.assertEqual(self.are_slaves("10.0.0.2"), [True])

    def test_stop(self) -> None:
        """After the stop nobody is asked, and no answer is looked at."""
        done = self.membership.look()
        self.membership.stop()
        self.answer(b'0:"10.0.0.1:10911"')
        self.successResultOf(done)
        self.successResultOf(self.membership.look())
        self.assertEqual((self.told, self.caller.calls), ([], []))
        self.assertEqual(self.disk.paths(), [])


class WithoutNameServersTests(MembershipCase):
    """A pair that is wired by haMasterAddress."""

    name_server = ""

    def test_ownMachine(self) -> None:
        """Connections from this machine are slaves', and from haTrustedAddresses."""
        self.lookup.addresses = ["10.0.0.1"]
        self.begin(haTrustedAddresses="10.0.0.2")
        self.successResultOf(self.membership.look())
        for host in ("127.0.0.1", "::1", "10.0.0.1", "10.0.0.2"):
            self.assertTrue(self.membership.is_slave(host), host)
        self.assertFalse(self.membership.is_slave("10.0.0.3"))
        self.assertEqual(self.disk.paths(), [])

    def test_master(self) -> None:
        """A master of this machine may say that it is there, and no other."""
        self.membership.check_master("127.0.0.1:10912")
        refuse = self.membership.check_master
        self.assertRaises(NoPermission, refuse, "10.0.0.1:10912")


class MasterTests(MembershipCase):
    """Whom a slave may be told to follow (906)."""

    number = 1

    def check(self, *allowed: str) -> None:
        """These are the only ones that it may follow."""
        for address in ("10.0.0.1:10912", "10.0.0.1:9", "10.0.0.3:10912", "h:1", ""):
            if address in allowed:
                self.membership.check_master(address)
            else:
                error = self.assertRaises(
                    NoPermission, self.membership.check_master, address
                )
                self.assertIn(f"and not {address}", str(error))

    def test_namedByNameServer(self) -> None:
        """It is the one that the name server names, or has named last: a master that
        comes back is not registered yet. That holds after a start, too."""
        self.masters.note(self.name_server, MASTER)
        self.check("10.0.0.1:10912")
        self.masters.note(self.name_server, Master())
        self.check("10.0.0.1:10912")
        self.begin()
        self.check("10.0.0.1:10912")
        self.masters.note(self.name_server, Master("10.0.0.3:10912", "10.0.0.3:10911"))
        self.check("10.0.0.3:10912")

    def test_neverNamed(self) -> None:
        """A slave that has never heard of a master follows the first that comes."""
        self.membership.check_master("10.0.0.3:10912")

    def test_trustedAddresses(self) -> None:
        """One that has moved is followed if its host is in haTrustedAddresses as the
        slave was started with it: whom a slave follows no request may change."""
        self.masters.note(self.name_server, MASTER)
        self.begin(haTrustedAddresses="10.0.0.3")
        self.check("10.0.0.1:10912", "10.0.0.3:10912")
        self.begin()
        self.membership.configure(self.settings(haTrustedAddresses="10.0.0.3"))
        self.check("10.0.0.1:10912")
