"""The answer of 907."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.bodies.replicas import (
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
)
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.fields import object_of

#: From a pair of RocketMQ 5.3.3, each figure made another.
MASTER = (
    b'{"haClientRuntimeInfo":{"lastReadTimestamp":0,"lastWriteTimestamp":0,'
    b'"masterFlushOffset":0,"maxOffset":0,"transferredByteInSecond":0},'
    b'"haConnectionInfo":[{"addr":"127.0.0.1:60192","diff":6,"inSync":true,'
    b'"slaveAckOffset":205,"transferFromWhere":211,"transferredByteInSecond":12}],'
    b'"inSyncSlaveNums":1,"master":true,"masterCommitLogMaxOffset":212}'
)
SLAVE = (
    b'{"haClientRuntimeInfo":{"lastReadTimestamp":1795466710461,'
    b'"lastWriteTimestamp":1795466710462,"masterAddr":"127.0.0.1:27912",'
    b'"masterFlushOffset":77,"maxOffset":211,"transferredByteInSecond":12},'
    b'"haConnectionInfo":[],"inSyncSlaveNums":0,"master":false,'
    b'"masterCommitLogMaxOffset":0}'
)


class ReplicasTests(SynchronousTestCase):
    """In and out, as RocketMQ writes it."""

    def test_master(self) -> None:
        """A master's end, and each slave."""
        info = object_of(MASTER, HARuntimeInfo.from_json)
        self.assertEqual(
            info,
            HARuntimeInfo(
                master=True,
                master_commit_log_max_offset=212,
                in_sync_slave_nums=1,
                ha_connection_info=[
                    HAConnectionRuntimeInfo(
                        addr="127.0.0.1:60192",
                        slave_ack_offset=205,
                        diff=6,
                        in_sync=True,
                        transferred_byte_in_second=12,
                        transfer_from_where=211,
                    )
                ],
            ),
        )
        self.assertEqual(dumps(info), MASTER)

    def test_slave(self) -> None:
        """A slave's master, and when it was last heard of."""
        info = object_of(SLAVE, HARuntimeInfo.from_json)
        self.assertEqual(
            info,
            HARuntimeInfo(
                ha_client_runtime_info=HAClientRuntimeInfo(
                    master_addr="127.0.0.1:27912",
                    transferred_byte_in_second=12,
                    max_offset=211,
                    last_read_timestamp=1795466710461,
                    last_write_timestamp=1795466710462,
                    master_flush_offset=77,
                )
            ),
        )
        self.assertEqual(dumps(info), SLAVE)

    def test_ours(self) -> None:
        """What a rocketbroker says besides is read, too, and stays away elsewhere."""
        info = HARuntimeInfo(
            ha_connection_info=[HAConnectionRuntimeInfo(caught_up_timestamp=5)],
            ha_client_runtime_info=HAClientRuntimeInfo(state="READY", problem=""),
        )
        self.assertEqual(object_of(dumps(info), HARuntimeInfo.from_json), info)

    def test_empty(self) -> None:
        """Nothing at all is a slave that has seen nothing."""
        self.assertEqual(HARuntimeInfo.from_json({}), HARuntimeInfo())

    def test_wrong(self) -> None:
        """What is no such thing is refused."""
        wrong: list[object] = [
            [],
            {"haConnectionInfo": [5]},
            {"haClientRuntimeInfo": 5},
            {"inSyncSlaveNums": 1 << 31},
        ]
        for value in wrong:
            self.assertRaises(RemoteProtocolError, HARuntimeInfo.from_json, value)
