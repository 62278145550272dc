"""Requests 907 and 908."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.broker import NO_NAME_SERVER
from rocketbroker.broker.replicas.ha_status import HaStatus
from rocketbroker.broker.roles import Role
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.wire.bodies.replicas import (
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.fields import object_of
from tests.broker.rig import Rig, send_ext, services_of


class MasterTests(SynchronousTestCase):
    """A whole broker, which is a master."""

    def setUp(self) -> None:
        """It has a message."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.rig.ask(RequestCode.SEND_MESSAGE_V2, send_ext(), b"body")
        self.end = self.rig.store.published_position

    def info(self) -> HARuntimeInfo:
        """What 907 answers."""
        answer = self.rig.ask(RequestCode.GET_BROKER_HA_STATUS, {})
        return object_of(answer.body, HARuntimeInfo.from_json)

    def test_alone(self) -> None:
        """Without slaves there is only where its log ends."""
        self.assertGreater(self.end, 0)
        self.assertEqual(
            self.info(),
            HARuntimeInfo(master=True, master_commit_log_max_offset=self.end),
        )

    def test_slaves(self) -> None:
        """How far each slave is, and how many are not far behind."""
        self.rig.replicas.report(self.end, 10)
        first, second = self.rig.replicas.replicas
        first.bytes_per_second, first.caught_up_ms = 12, 5
        second.sent, second.problem = 20, "It is ahead."
        info = self.info()
        self.assertEqual(info.in_sync_slave_nums, 2)
        self.assertEqual(
            info.ha_connection_info,
            [
                HAConnectionRuntimeInfo(
                    addr=first.address,
                    slave_ack_offset=self.end,
                    diff=0,
                    in_sync=True,
                    transferred_byte_in_second=12,
                    transfer_from_where=self.end,
                    caught_up_timestamp=5,
                    problem="",
                ),
                HAConnectionRuntimeInfo(
                    addr=second.address,
                    slave_ack_offset=10,
                    diff=self.end - 10,
                    in_sync=True,
                    transfer_from_where=20,
                    caught_up_timestamp=0,
                    problem="It is ahead.",
                ),
            ],
        )

    def test_behind(self) -> None:
        """One that has not reported yet lacks everything and a byte, as in RocketMQ."""
        self.rig.replicas.report(-1)
        (slave,) = self.info().ha_connection_info
        self.assertEqual((slave.slave_ack_offset, slave.diff), (-1, self.end + 1))

    def test_reset(self) -> None:
        """A master answers 908 with success, and nothing comes of it."""
        code = RequestCode.RESET_MASTER_FLUSH_OFFSET
        self.rig.ask(code, {"masterFlushOffset": "5"})
        self.assertEqual(self.rig.broker.replicas.status.master_flush_offset, 0)


class SlaveTests(SynchronousTestCase):
    """A slave's answers."""

    def setUp(self) -> None:
        """It has a master."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        options = StoreOptions(broker_role="SLAVE")
        self.services = services_of(Clock(), options)
        self.link = ScriptedLink()
        self.link.start()
        self.status = HaStatus(
            self.rig.store, self.services, self.rig.replicas, self.link
        )
        self.status.register(self.rig.table)

    def info(self) -> HAClientRuntimeInfo:
        """What 907 answers, of a slave."""
        answer = self.rig.ask(RequestCode.GET_BROKER_HA_STATUS, {})
        info = object_of(answer.body, HARuntimeInfo.from_json)
        link = info.ha_client_runtime_info
        self.assertEqual(info, HARuntimeInfo(ha_client_runtime_info=link))
        return link

    def test_follows(self) -> None:
        """Whom it follows, what came of it, and when."""
        self.link.follow("10.0.0.9:10912")
        self.link.bytes_per_second = 100
        self.link.last_read_ms, self.link.last_write_ms = 5, 6
        self.assertEqual(
            self.info(),
            HAClientRuntimeInfo(
                master_addr="10.0.0.9:10912",
                transferred_byte_in_second=100,
                last_read_timestamp=5,
                last_write_timestamp=6,
                state="TRANSFER",
                problem="",
            ),
        )

    def test_problem(self) -> None:
        """What keeps it from following is told."""
        self.link.problem = "Nobody listens there."
        info = self.info()
        self.assertEqual(
            (info.master_addr, info.problem), (None, "Nobody listens there.")
        )

    def test_reset(self) -> None:
        """908 sets the number that 907 shows; without one it is refused."""
        code = RequestCode.RESET_MASTER_FLUSH_OFFSET
        self.rig.ask(code, {"masterFlushOffset": "77"})
        self.assertEqual(self.info().master_flush_offset, 77)
        self.assertEqual(self.rig.store.raw_log.master_flushed, 77)
        self.assertRaises(SystemFailure, self.rig.ask, code, {})

    def test_acting(self) -> None:
        """A slave that acts as master follows nobody new, and is no master."""
        self.services.act_as(Role.ACTING_MASTER)
        self.assertEqual(self.info().master_flush_offset, 0)


class HealthTests(SynchronousTestCase):
    """What a broker says of its replication under /healthz."""

    def broker(self, **settings: str) -> Rig:
        """A broker with these settings."""
        rig = Rig(settings)
        self.addCleanup(rig.close)
        return rig

    def test_async(self) -> None:
        """A master that waits for nobody has nothing to say about who is missing."""
        rig = self.broker(inSyncReplicas="2")
        self.assertEqual((rig.broker.problems(), rig.broker.standing()), ([], []))

    def test_missing(self) -> None:
        """A slave that is missing is a problem of who asks for copies."""
        rig = self.broker()
        options = StoreOptions(broker_role="SYNC_MASTER", in_sync_replicas=2)
        (problem,) = rig.broker.replicas.status.problems(options)
        self.assertIn("Sends wait for 2 copies (inSyncReplicas), and only 1", problem)
        self.assertEqual(rig.broker.not_ready(), NO_NAME_SERVER)
        rig.replicas.report(0)
        self.assertEqual(rig.broker.replicas.status.problems(options), [])

    def test_missingAndStrangers(self) -> None:
        """Where copies are missing, connections that do not count are told of."""
        rig = self.broker()
        rig.replicas.strangers = ["10.0.0.7:50000", "10.0.0.8:50000"]
        options = StoreOptions(broker_role="SYNC_MASTER", in_sync_replicas=2)
        (problem,) = rig.broker.replicas.status.problems(options)
        self.assertIn("do not count: 2, as of 10.0.0.7:50000", problem)
        self.assertIn("haTrustedAddresses", problem)

    def test_withoutMaster(self) -> None:
        """A slave that follows nobody is not healthy; one that acts for a master that
        is gone does what it is there for, and a master needs none."""
        self.assertIsNone(self.broker().broker.unhealthy())
        rig = self.broker(
            brokerRole="SLAVE", brokerId="1", enableSlaveActingMaster="true"
        )
        broker = rig.broker
        self.assertIn("has no master", broker.unhealthy() or "")
        self.assertIn(broker.unhealthy(), broker.problems())
        rig.link.master = "10.0.0.9:10912"
        self.assertIn("does not follow its master 10", broker.unhealthy() or "")
        rig.link.state = "TRANSFER"
        self.assertIsNone(broker.unhealthy())
        rig.link.problem = "The logs differ."
        self.assertEqual(broker.unhealthy(), "The logs differ.")
        broker.services.act_as(Role.ACTING_MASTER)
        self.assertIsNone(broker.unhealthy())
        self.assertEqual(broker.problems(), ["The logs differ."])

    def test_notSent(self) -> None:
        """A slave that cannot be sent the log is one in any case."""
        rig = self.broker()
        rig.replicas.report(0)
        rig.replicas.replicas[0].problem = "It is ahead."
        self.assertEqual(rig.broker.problems(), ["It is ahead."])

    def test_slave(self) -> None:
        """A slave says how far behind it is, and what is wrong with its link; it is
        not ready until it has had all once."""
        rig = self.broker(brokerRole="SLAVE", brokerId="1")
        broker = rig.broker
        rig.link.start()
        rig.link.follow("10.0.0.9:10912")
        self.assertEqual(broker.problems(), [])
        self.assertIn("has not heard yet", broker.standing()[0])
        self.assertEqual(broker.not_ready(), NO_NAME_SERVER)
        rig.link.problem = "Nobody listens there."
        broker.metadata_sync.tables[0].problem = "No topics came."
        self.assertEqual(
            broker.problems(), ["Nobody listens there.", "No topics came."]
        )
        broker.replicas.progress.master_end = 5
        self.assertIn("lacks 5 bytes", broker.standing()[0])
        self.assertIn("not caught up since its start", broker.not_ready() or "")
