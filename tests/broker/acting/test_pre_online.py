"""What a broker does before name servers hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.acting.ha_exchange import HAExchange, HAInfo
from rocketbroker.broker.acting.pre_online import (
    MasterWay,
    PreOnline,
    SlaveWay,
)
from rocketbroker.broker.acting.reverse_sync import ReverseSync
from rocketbroker.broker.registration.known_hosts import KnownHosts
from rocketbroker.broker.roles import starts_isolated
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.store import StoreOptions
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.fastjson import dumps
from tests.broker.callers import Call, Caller
from tests.broker.rig import NoLookup, Rig, logged, settings_of

OWN = HAInfo("10.0.0.1:10911", "10.0.0.1:10912", 77)
TABLE = b'{"offsetTable":{}}'


class PreOnlineCase(SynchronousTestCase):
    """A broker that is not online, with others that a test plays."""

    own_id = 0

    def setUp(self) -> None:
        """Nobody was asked yet."""
        self.begin()

    def begin(self) -> None:
        """A broker that has asked nobody yet."""
        self.caller = Caller()
        self.own = OWN
        refusals = RefusalLog(lambda: 0.0)
        self.exchange = HAExchange(
            self.caller, lambda: self.own, lambda info: None, refusals
        )
        self.online: list[int] = []
        self.replicas = ScriptedReplicas()
        rig = Rig(
            {
                "namesrvAddr": "n:1",
                "compatibleWithOldNameSrv": "false",
                "brokerId": str(self.own_id),
                "brokerRole": "SLAVE" if self.own_id else "ASYNC_MASTER",
            },
            client=self.caller,
        )
        self.addCleanup(rig.close)
        group = rig.broker.registration.registration.members
        self.pre_online = PreOnline(
            group, self.own_id, "10.0.0.1:10911", self.way(), self.get_online
        )

    def way(self) -> MasterWay | SlaveWay:
        """What it does."""
        rig = Rig({})
        self.addCleanup(rig.close)
        self.delays: list[Mapping[str, object]] = []
        self.timers: list[Checkpoint] = []
        reverse = ReverseSync(
            self.caller, rig.offsets, self.delays.append, self.timers.append
        )
        hosts = KnownHosts(NoLookup(), at_once)
        return MasterWay(self.exchange, self.replicas, reverse, hosts)

    def get_online(self, least: int) -> Deferred[None]:
        """It is online."""
        self.online.append(least)
        return succeed(None)

    def look(self, members: dict[int, str] | None) -> Deferred[None]:
        """It begins to look; name servers answer with these members, or do not."""
        done = self.pre_online.look()
        call = self.call(901)
        if members is None:
            call.fail()
        else:
            group: Any = {"brokerAddrs": members, "brokerName": "b", "cluster": "C"}
            call.answer(body=dumps({"brokerMemberGroup": group}))
        return done

    def call(self, code: int, address: str | None = None) -> Call:
        """The one request that waits."""
        (call,) = self.caller.take()
        self.assertEqual(call.command.code, code)
        if address is not None:
            self.assertEqual(call.address, address)
        return call


class MasterTests(PreOnlineCase):
    """A master."""

    def test_alone(self) -> None:
        """One that is alone gets online at once; what is left of it at name servers
        from before does not count."""
        for members in ({}, {0: "10.0.0.1:10911"}, {0: "10.0.0.9:10911"}):
            self.begin()
            self.successResultOf(self.look(members))
            self.assertEqual((self.online, self.caller.calls), ([0], []))

    def test_noNameServer(self) -> None:
        """As long as no name server answers it is not online, and says why, once."""
        for count in (1, 0):
            lines = logged(lambda: self.successResultOf(self.look(None)))
            self.assertEqual(len(lines), count, lines)
            self.assertIn("gone", self.pre_online.problem)
        self.assertEqual(self.online, [])
        self.successResultOf(self.look({}))
        self.assertEqual((self.online, self.pre_online.problem), ([0], ""))

    def test_slaves(self) -> None:
        """It tells each slave where it is, waits until that one follows it, and takes
        its tables over; those that were done are not asked again."""
        slaves = {2: "10.0.1.2:5", 1: "10.0.1.1:5"}
        done = self.look(slaves)
        self.call(906, "10.0.1.1:5").answer()
        self.successResultOf(done)
        self.assertIn("does not follow", self.pre_online.problem)
        self.replicas.report(-1)
        done = self.look(slaves)
        self.call(906, "10.0.1.1:5").answer()
        self.call(45, "10.0.1.1:5").answer(body=TABLE)
        self.call(43, "10.0.1.1:5").answer(body=TABLE)
        self.call(60, "10.0.1.1:5").answer(body=bytes(56))
        self.call(906, "10.0.1.2:5").fail()
        self.successResultOf(done)
        self.assertEqual((len(self.delays), self.online), (1, []))
        self.replicas.report(-1, -1)
        done = self.look(slaves)
        self.call(906, "10.0.1.2:5").answer()
        self.call(45, "10.0.1.2:5").answer(body=TABLE)
        self.assertEqual(self.online, [])
        self.call(43, "10.0.1.2:5").answer(body=TABLE)
        self.assertEqual(self.online, [])
        self.call(60, "10.0.1.2:5").answer(body=bytes(56))
        self.successResultOf(done)
        self.assertEqual(self.online, [1])
        self.successResultOf(self.pre_online.look())
        self.assertEqual((self.online, self.caller.calls), ([1], []))

    def test_named(self) -> None:
        """A slave whose host has a name may be any that is connected."""
        done = self.look({1: "slave.example:5"})
        self.call(906).answer()
        self.successResultOf(done)
        self.replicas.report(-1)
        done = self.look({1: "slave.example:5"})
        self.call(906).answer()
        self.call(45)

    def test_nonsense(self) -> None:
        """A slave that answers nonsense is asked again, and nothing is taken over."""
        self.replicas.report(-1)
        for body in (b"{", b"[]"):
            done = self.look({1: "10.0.1.1:5"})
            self.call(906).answer()
            self.call(45).answer(body=TABLE)
            self.call(43).answer(body=body)
            self.successResultOf(done)
            self.assertEqual((self.online, self.delays), ([], []))


class SlaveTests(PreOnlineCase):
    """A slave."""

    own_id = 1

    def way(self) -> SlaveWay:
        """What it does."""
        self.own = HAInfo()
        self.state = "READY"
        self.followed: list[tuple[str | None, str | None]] = []
        self.infos: list[HAInfo] = []
        return SlaveWay(self.exchange, self, self, self.infos.append)

    def follow(self, master: str | None, ha_address: str | None) -> None:
        """The master to follow."""
        self.followed.append((master, ha_address))

    def test_master(self) -> None:
        """It asks the master where it is followed, and waits until it follows it."""
        for state, online in (("READY", []), ("TRANSFER", [0])):
            self.state = state
            done = self.look({0: "m:1", 1: "10.0.0.1:10911", 2: "t:1"})
            self.call(906, "m:1").answer(
                ext={"masterHaAddress": "m:2", "masterFlushOffset": "9"}
            )
            self.successResultOf(done)
            self.assertEqual(
                (self.online, self.followed.pop()), (online, ("m:1", "m:2"))
            )
            self.assertEqual(self.infos.pop(), HAInfo(None, "m:2", 9))

    def test_noMaster(self) -> None:
        """Without a master it has nothing to wait for; the least id is another's, or
        its own."""
        for members, least in (({2: "t:1"}, 2), ({}, 1), ({1: "10.0.0.1:10911"}, 1)):
            self.begin()
            self.successResultOf(self.look(members))
            self.assertEqual(self.online, [least])

    def test_silent(self) -> None:
        """A master that does not say where it is followed is not followed."""
        done = self.look({0: "m:1"})
        self.call(906).answer()
        self.successResultOf(done)
        self.assertEqual((self.online, self.followed), ([0], []))


class IsolationTests(SynchronousTestCase):
    """L{starts_isolated}."""

    def test_settings(self) -> None:
        """It takes enableSlaveActingMaster and more than one replica; skipPreOnline
        leaves it out."""
        for acting, replicas, skip, isolated in (
            (True, 2, False, True),
            (False, 2, False, False),
            (True, 1, False, False),
            (True, 2, True, False),
        ):
            settings = settings_of(
                StoreOptions(total_replicas=replicas),
                BrokerOptions(enable_slave_acting_master=acting, skip_pre_online=skip),
            )
            self.assertEqual(starts_isolated(settings), isolated)
