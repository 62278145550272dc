"""A whole broker as a slave, with a name server and a master, in memory."""

from __future__ import annotations

from rocketbroker.broker.broker import Broker
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.fastjson import loads
from tests.broker.week import WeekCase


class SlaveTests(WeekCase):
    """It follows the master of its name."""

    def slave(self, **settings: str) -> Broker:
        """A slave that runs."""
        self.disk, self.port = MemoryDisk(), 10931
        return self.running(brokerRole="SLAVE", brokerId="1", **settings)

    def addresses(self) -> dict[int, str]:
        """What clients are told of brokers of that name."""
        route = TopicRouteData.from_json(
            loads(self.ask(105, {"topic": "b"}, port=9876).body)
        )
        (data,) = route.broker_datas
        return data.broker_addrs

    def test_registration(self) -> None:
        """It registers with its own id beside the master, and gets the master's HA
        address in answer."""
        self.running()
        self.assertEqual(self.replicas.port, 10912)
        self.slave()
        self.assertEqual(self.replicas.port, 10932)
        both = {0: "127.0.0.1:10911", 1: "127.0.0.1:10931"}
        self.assertEqual(self.addresses(), both)
        self.assertEqual(self.link.state, "TRANSFER")
        self.assertEqual((self.link.master or "").rpartition(":")[2], "10912")

    def test_before(self) -> None:
        """One that is there before its master looks for it with each registration."""
        self.slave()
        slave = self.link
        self.assertEqual((slave.state, slave.master), ("READY", None))
        self.disk, self.port = MemoryDisk(), 10911
        self.running()
        self.assertIsNone(self.link.master)
        self.pass_by(31)
        self.assertEqual(slave.state, "TRANSFER")

    def test_gone(self) -> None:
        """A master that is gone keeps its address: it may come back."""
        master = self.running()
        self.slave()
        slave = self.link
        before = slave.master
        self.stop(master)
        self.pass_by(61)
        self.assertEqual((slave.state, slave.master), ("TRANSFER", before))

    def test_strangerMaster(self) -> None:
        """Whoever is not the master that name servers name is refused, and leads the
        slave nowhere (906); nor does anybody else say whose id is the least (905)."""
        self.running()
        self.slave()
        master = self.link.master
        ext = {
            "masterAddress": "127.0.0.1:10911",
            "masterHaAddress": "127.0.0.1:666",
            "masterFlushOffset": "0",
        }
        answer = self.ask(906, ext, port=10931)
        self.assertEqual(answer.code, 16)
        self.assertIn(f"{master}, and not 127.0.0.1:666", answer.remark or "")
        self.assertEqual(self.link.master, master)
        ext["masterHaAddress"] = master or ""
        self.assertEqual(self.ask(906, ext, port=10931).code, 0)

    def test_ledElsewhere(self) -> None:
        """A slave that follows somebody else goes back to its master with the next
        answer to a registration, though the master is the same as before."""
        self.running()
        self.slave()
        master = self.link.master
        self.link.follow("10.9.9.9:1")
        self.pass_by(31)
        self.assertEqual(self.link.master, master)

    def test_given(self) -> None:
        """haMasterAddress, if it is long enough for an address, wins against what name
        servers say."""
        self.running()
        slave = self.slave(haMasterAddress="10.9.9.9:1")
        self.assertEqual(self.link.master, "10.9.9.9:1")
        self.stop(slave)
        self.slave(haMasterAddress="none")
        self.assertEqual((self.link.master or "").rpartition(":")[2], "10912")

    def test_stop(self) -> None:
        """With the broker both sides of its replication stop, and name servers forget
        it."""
        self.running()
        self.stop(self.slave())
        self.assertEqual(self.link.state, "SHUTDOWN")
        self.assertEqual(self.addresses(), {0: "127.0.0.1:10911"})

    def test_arrivals(self) -> None:
        """What comes from the master is dispatched, and handed on to slaves of its
        own."""
        self.running()
        slave = self.slave()
        before = self.replicas.notices
        self.link.receive(100)
        self.assertGreater(self.replicas.notices, before)
        self.assertIsNotNone(slave.storage.scheduler._soon)

    def test_manyTopics(self) -> None:
        """More topics of its master than fit into a frame are registered in parts."""
        self.running()
        broker = self.slave()
        registration = broker.registration.registration
        before = registration.registered
        attributes = {"a": "x" * (1 << 19)}
        configs = [
            TopicConfig(topic_name=f"large-{number}", attributes=attributes)
            for number in range(40)
        ]
        broker.metadata.topics.become(configs, [], DataVersion(counter=9))
        self.pass_by(1, 0.1)
        self.assertEqual((registration.failures, registration.unreachable), (0, set()))
        self.assertGreater(registration.registered, before)
