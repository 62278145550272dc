"""Whole brokers of one name, in memory: a slave acts for its master."""

from __future__ import annotations

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.roles import Role
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.records.record import decode_all
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from tests.broker.pop.pops import bodies, handles
from tests.broker.rig import pull_ext, send_ext
from tests.broker.week import WeekCase

ACTING = {
    "enableSlaveActingMaster": "true",
    "enableRemoteEscape": "true",
    "totalReplicas": "2",
    "messageDelayLevel": "20s",
}

MASTER, SLAVE, OTHER = 10911, 10931, 10951


class GroupRolesTests(WeekCase):
    """Master and slave of group b, and group o, which has the topic, too."""

    def name_server(self) -> RemotingServer:
        """A name server that shows acting masters, and says who is the least."""
        settings = NamesrvSettings.from_properties(
            {
                "kvConfigPath": "/kv.json",
                "supportActingMaster": "true",
                "notifyMinBrokerIdChanged": "true",
            }
        )
        client = RemotingClient(self.network, RemotingClientOptions())
        server = NameServer(
            self.network,
            settings,
            MemoryDisk(),
            lambda: int(self.network.seconds() * 1000),
            at_once,
            client.oneway,
        )
        server.load()
        server.start()
        port = RemotingServer(self.network, settings.server, server.responders)
        port.listen(9876)
        return port

    def pair(self, **settings: str) -> tuple[Broker, Broker]:
        """A master and its slave, beside another group."""
        self.disk, self.port = MemoryDisk(), OTHER
        self.running(brokerName="o", messageDelayLevel="20s")
        self.ask(310, send_ext("T", d="1"), b"to make the topic", port=OTHER)
        self.master_disk, self.slave_disk = MemoryDisk(), MemoryDisk()
        master = self.master(**settings)
        slave = self.slave(**settings)
        return master, slave

    def master(self, **settings: str) -> Broker:
        """The master, which has got online if nothing is in the way."""
        self.disk, self.port = self.master_disk, MASTER
        master = self.running(**{**ACTING, **settings})
        self.slaves: ScriptedReplicas = self.replicas
        return master

    def slave(self, **settings: str) -> Broker:
        """The slave."""
        self.disk, self.port = self.slave_disk, SLAVE
        more = {"brokerRole": "SLAVE", "brokerId": "1"}
        slave = self.running(**{**ACTING, **more, **settings})
        self.slave_link: ScriptedLink = self.link
        return slave

    def copy(self, master: Broker, slave: Broker) -> None:
        """The slave gets what it lacks of the log."""
        position = slave.store.published_position
        data = master.store.raw_log.read(position, 1 << 20)
        self.assertEqual(slave.store.raw_log.append(position, data), len(data))
        slave.storage.scheduler.dispatch()
        slave.metadata.topics.put(
            [master.metadata.topics.config("T") or self.fail("no topic")]
        )

    def route(self) -> TopicRouteData:
        """What clients are told of the topic."""
        return TopicRouteData.from_json(
            loads(self.ask(105, {"topic": "T"}, port=9876).body)
        )

    def addresses(self) -> dict[int, str]:
        """Those of group b, as clients are told them."""
        (found,) = [
            each for each in self.route().broker_datas if each.broker_name == "b"
        ]
        return found.broker_addrs

    def delayed(self, body: bytes) -> None:
        """A message that the master is to deliver in 20 seconds."""
        properties = "DELAY\x011\x02UNIQ_KEY\x01" + body.decode() + "\x02"
        answer = self.ask(310, send_ext("T", d="1", properties=properties), body)
        self.assertEqual(answer.code, 0)

    def elsewhere(self) -> list[bytes]:
        """What group o has got."""
        answer = self.ask(11, pull_ext(1, 0, topic="T"), port=OTHER)
        return (
            [each.body for each in decode_all(answer.body)] if not answer.code else []
        )

    def test_both(self) -> None:
        """A pair is registered as master and slave, and neither acts for the other."""
        master, slave = self.pair()
        self.pass_by(3)
        self.assertIs(master.services.role, Role.MASTER)
        self.assertIs(slave.services.role, Role.SLAVE)
        self.assertEqual(slave.registration.registration.members.alive, 2)
        self.assertEqual(self.slave_link.master, master.registration.calls.ha_address)

    def test_acts(self) -> None:
        """When the master is gone the slave is shown in its place, without write
        permission, and gives due messages to another group."""
        master, slave = self.pair()
        self.delayed(b"one")
        self.copy(master, slave)
        self.stop(master)
        self.assertIs(slave.services.role, Role.ACTING_MASTER)
        self.assertIsNone(self.slave_link.master)
        self.assertEqual(self.addresses(), {0: f"127.0.0.1:{SLAVE}"})
        (queues,) = [d for d in self.route().queue_datas if d.broker_name == "b"]
        self.assertEqual(queues.perm & 2, 0)
        end = slave.store.published_position
        self.pass_by(20)
        self.assertEqual(self.elsewhere(), [b"one"])
        self.assertEqual(slave.store.published_position, end)
        self.assertNotEqual(self.ask(310, send_ext("T"), b"no", port=SLAVE).code, 0)

    def test_returns(self) -> None:
        """A master that comes back is not registered before the slave follows it; it
        takes over what the slave has delivered, and the slave acts no more."""
        master, slave = self.pair()
        self.delayed(b"zero")
        self.pass_by(25)
        master.metadata.offsets.commit("G", "T", 0, 1)
        self.delayed(b"one")
        self.delayed(b"two")
        self.copy(master, slave)
        self.stop(master)
        self.pass_by(20)
        slave.metadata.offsets.commit("G", "T", 0, 5)
        master = self.master()
        self.pass_by(10)
        self.assertEqual(self.addresses(), {0: f"127.0.0.1:{SLAVE}"})
        self.assertIs(master.services.role, Role.ISOLATED)
        self.assertEqual(slave.metadata.offsets.query("G", "T", 0), 5)
        self.assertIn("does not follow", master.not_ready() or "")
        self.assertEqual(self.slave_link.master, master.registration.calls.ha_address)
        self.assertIs(slave.services.role, Role.SLAVE)
        self.slaves.report(0)
        self.slaves.replicas[0].address = "127.0.0.1:9"
        self.pass_by(2)
        self.assertEqual(
            self.addresses(), {0: f"127.0.0.1:{MASTER}", 1: f"127.0.0.1:{SLAVE}"}
        )
        self.assertIs(master.services.role, Role.MASTER)
        self.assertEqual(master.metadata.offsets.query("G", "T", 0), 5)
        self.delayed(b"three")
        self.pass_by(30)
        self.assertEqual(self.elsewhere(), [b"one", b"two"])
        bodies = [each.body for each in self.messages()]
        self.assertEqual(bodies, [b"zero", b"three"])

    def test_slaveStartedMeanwhile(self) -> None:
        """A slave that was started again while its master was away believes its master
        that it comes back, as it is in its file, and nobody else."""
        master, slave = self.pair()
        address = master.registration.calls.ha_address
        self.stop(master)
        self.stop(slave)
        slave = self.slave()
        self.pass_by(2)
        self.assertIs(slave.services.role, Role.ACTING_MASTER)
        ext = {"masterHaAddress": "127.0.0.1:666", "masterAddress": "127.0.0.1:667"}
        self.assertEqual(self.ask(906, ext, port=SLAVE).code, 16)
        self.assertIs(slave.services.role, Role.ACTING_MASTER)
        self.assertIsNone(self.slave_link.master)
        self.master()
        self.pass_by(2)
        self.assertEqual(self.slave_link.master, address)
        self.assertIs(slave.services.role, Role.SLAVE)

    def pop(self, port: int, **more: str) -> Command:
        """Group G pops from queue 0 for 20 seconds."""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "maxMsgNums": "32",
            "invisibleTime": "20000",
            "pollTime": "0",
            "bornTime": "0",
            "initMode": "0",
            "order": "false",
            **more,
        }
        return self.ask(200050, ext, port=port)

    def popped(self, port: int) -> list[bytes]:
        """The bodies of what it gets of all queues, sorted."""
        return sorted(bodies(self.pop(port, queueId="-1")))

    def acked(self, handle: ReceiptHandle, port: int) -> None:
        """It acknowledges a message."""
        self.about(handle, port, 200051)

    def later(self, handle: ReceiptHandle, port: int) -> None:
        """It wants a message 40 seconds from now."""
        self.about(handle, port, 200053, invisibleTime="40000")

    def about(self, handle: ReceiptHandle, port: int, code: int, **more: str) -> None:
        """A request about a message that it has is taken."""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
            **more,
        }
        self.assertEqual(self.ask(code, ext, port=port).code, 0)

    def both_popped(self, *sent: bytes) -> tuple[Broker, Broker]:
        """A pair whose master has messages, beside a group from which G has popped."""
        pair = self.pair(slaveReadEnable="true")
        self.pop(OTHER, invisibleTime="1000000")
        for body in sent:
            self.assertEqual(self.ask(310, send_ext("T"), body).code, 0)
        return pair

    def test_inFlight(self) -> None:
        """What is in flight when the master goes comes again from another group, but
        for what was acknowledged."""
        master, slave = self.both_popped(b"a", b"b", b"c")
        (first, *_) = handles(self.pop(MASTER), "b")
        self.acked(first, MASTER)
        self.pass_by(1)
        self.copy(master, slave)
        self.stop(master)
        end = slave.store.published_position
        self.pass_by(35)
        self.assertEqual(self.popped(OTHER), [b"b", b"c"])
        self.assertEqual(slave.store.published_position, end)

    def test_ripe(self) -> None:
        """Check points that the master has read, but not worked off, are handed over,
        too."""
        master, slave = self.both_popped(b"a")
        self.pop(MASTER)
        self.pass_by(19.5)
        self.copy(master, slave)
        self.stop(master)
        self.pass_by(15)
        self.assertEqual(self.popped(OTHER), [b"a"])

    def test_pops(self) -> None:
        """An acting master answers pops: another group keeps its check points, and has
        what is not acknowledged given out again, when the time is over."""
        master, slave = self.both_popped(b"a", b"b", b"c")
        self.copy(master, slave)
        self.stop(master)
        end = slave.store.published_position
        answer = self.pop(SLAVE)
        self.assertEqual(bodies(answer), [b"a", b"b", b"c"])
        first, second, _ = handles(answer, "b")
        self.acked(first, SLAVE)
        self.later(second, SLAVE)
        self.assertEqual(self.popped(SLAVE), [])
        self.pass_by(30)
        self.assertEqual(self.popped(OTHER), [b"c"])
        self.pass_by(18)
        self.assertEqual(self.popped(OTHER), [b"b"])
        self.assertEqual(slave.store.published_position, end)

    def test_noPops(self) -> None:
        """A slave whose master is there answers none."""
        self.both_popped(b"a")
        self.pass_by(2)
        self.assertEqual(self.pop(SLAVE).code, 14)

    def test_noEscape(self) -> None:
        """Without enableRemoteEscape the messages wait for the master."""
        master, slave = self.pair(enableRemoteEscape="false")
        self.delayed(b"one")
        self.copy(master, slave)
        self.stop(master)
        self.pass_by(30)
        self.assertIs(slave.services.role, Role.ACTING_MASTER)
        self.assertEqual(self.elsewhere(), [])
        self.assertEqual(slave.schedule.offsets.get(1), None)

    def test_skip(self) -> None:
        """With skipPreOnline a master is registered at once."""
        master, _ = self.pair(skipPreOnline="true")
        self.delayed(b"one")
        self.assertIs(master.services.role, Role.MASTER)
        self.stop(master)
        self.pass_by(3)
        master = self.master(skipPreOnline="true")
        self.assertEqual(self.addresses().keys(), {0, 1})

    def test_flushOffset(self) -> None:
        """With syncMasterFlushOffsetWhenStartup a slave notes where the master's log
        ended when it started; without it does not."""
        for wanted in ("true", "false"):
            self.network = MemoryNetwork()
            self.names = self.name_server()
            self.client = RemotingClient(self.network, RemotingClientOptions())
            master, slave = self.pair()
            self.delayed(b"one")
            end = master.store.published_position
            self.copy(master, slave)
            self.stop(slave)
            self.stop(master)
            self.master()
            slave = self.slave(syncMasterFlushOffsetWhenStartup=wanted)
            self.pass_by(2)
            noted = slave.replicas.status.master_flush_offset
            self.assertEqual(noted, end if wanted == "true" else 0)

    def test_stop(self) -> None:
        """An acting master that stops is gone from the name servers."""
        master, slave = self.pair()
        self.stop(master)
        self.stop(slave)
        names = [each.broker_name for each in self.route().broker_datas]
        self.assertEqual(names, ["o"])
