"""Requests 907 and 908."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.replicas.ha_status import HaStatus
from rocketbroker.broker.services import Role
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
        second.sent = 20
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
                ),
                HAConnectionRuntimeInfo(
                    addr=second.address,
                    slave_ack_offset=10,
                    diff=self.end - 10,
                    in_sync=True,
                    transfer_from_where=20,
                    caught_up_timestamp=0,
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
        self.assertEqual(self.rig.broker.ha_status.master_flush_offset, 0)


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
        self.assertRaises(SystemFailure, self.rig.ask, code, {})

    def test_acting(self) -> None:
        """A slave that acts as master follows nobody new, and is no master."""
        self.services.act_as(Role.ACTING_MASTER)
        self.assertEqual(self.info().master_flush_offset, 0)
