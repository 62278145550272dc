# -*- test-case-name: tests.wire.bodies.test_replicas -*-
"""The state of replication: the answer of 907.

Shapes: C{docs/facts/admin.md} 3; what the figures mean: C{docs/facts/ha.md} 6.
"""

from __future__ import annotations

from typing import Self

import attrs

from rocketbroker.wire.fields import Fields, read_long


@attrs.frozen(kw_only=True)
class HAConnectionRuntimeInfo:
    """A slave, as its master sees it.

    @ivar addr: its side of the connection, C{ip:port}.
    @ivar slave_ack_offset: the position that it has reported; -1 before the first.
    @ivar diff: how many bytes it is behind.
    @ivar transferred_byte_in_second: of the last whole second.
    @ivar transfer_from_where: the position up to which it was sent the log.
    @ivar caught_up_timestamp: when it last had all, in ms; RocketMQ does not say.
    @ivar problem: why it is sent nothing now, or empty; likewise.
    """

    addr: str | None = None
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0
    caught_up_timestamp: int | None = None
    problem: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a slave of a master")
        caught_up = fields.value("caughtUpTimestamp")
        return cls(
            addr=fields.text("addr"),
            slave_ack_offset=fields.integer("slaveAckOffset", bits=64),
            diff=fields.integer("diff", bits=64),
            in_sync=fields.boolean("inSync"),
            transferred_byte_in_second=fields.integer(
                "transferredByteInSecond", bits=64
            ),
            transfer_from_where=fields.integer("transferFromWhere", bits=64),
            caught_up_timestamp=read_long(caught_up) if caught_up is not None else None,
            problem=fields.text("problem"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "addr": self.addr,
            "caughtUpTimestamp": self.caught_up_timestamp,
            "diff": self.diff,
            "inSync": self.in_sync,
            "problem": self.problem,
            "slaveAckOffset": self.slave_ack_offset,
            "transferFromWhere": self.transfer_from_where,
            "transferredByteInSecond": self.transferred_byte_in_second,
        }


@attrs.frozen(kw_only=True)
class HAClientRuntimeInfo:
    """A slave's side of replication; times in ms, 0 for never.

    @ivar master_addr: the master's HA address.
    @ivar max_offset: the end of the slave's log.
    @ivar master_flush_offset: where its master's log ended at the master's start.
    @ivar state: of its link to the master; RocketMQ does not say.
    @ivar problem: what is wrong with that link, or empty; likewise.
    """

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    state: str | None = None
    problem: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a slave")
        return cls(
            master_addr=fields.text("masterAddr"),
            transferred_byte_in_second=fields.integer(
                "transferredByteInSecond", bits=64
            ),
            max_offset=fields.integer("maxOffset", bits=64),
            last_read_timestamp=fields.integer("lastReadTimestamp", bits=64),
            last_write_timestamp=fields.integer("lastWriteTimestamp", bits=64),
            master_flush_offset=fields.integer("masterFlushOffset", bits=64),
            state=fields.text("state"),
            problem=fields.text("problem"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "lastReadTimestamp": self.last_read_timestamp,
            "lastWriteTimestamp": self.last_write_timestamp,
            "masterAddr": self.master_addr,
            "masterFlushOffset": self.master_flush_offset,
            "maxOffset": self.max_offset,
            "problem": self.problem,
            "state": self.state,
            "transferredByteInSecond": self.transferred_byte_in_second,
        }


@attrs.frozen(kw_only=True)
class HARuntimeInfo:
    """Replication of one broker.

    @ivar master: whether it is a master; what belongs to the other role stays empty.
    @ivar master_commit_log_max_offset: the end of its log.
    @ivar in_sync_slave_nums: how many of its slaves are not far behind.
    """

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = attrs.field(factory=list)
    ha_client_runtime_info: HAClientRuntimeInfo = HAClientRuntimeInfo()

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "the state of replication")
        client = fields.value("haClientRuntimeInfo")
        return cls(
            master=fields.boolean("master"),
            master_commit_log_max_offset=fields.integer(
                "masterCommitLogMaxOffset", bits=64
            ),
            in_sync_slave_nums=fields.integer("inSyncSlaveNums"),
            ha_connection_info=fields.beans(
                "haConnectionInfo", HAConnectionRuntimeInfo.from_json
            ),
            ha_client_runtime_info=HAClientRuntimeInfo.from_json(
                {} if client is None else client
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "haClientRuntimeInfo": self.ha_client_runtime_info,
            "haConnectionInfo": self.ha_connection_info,
            "inSyncSlaveNums": self.in_sync_slave_nums,
            "master": self.master,
            "masterCommitLogMaxOffset": self.master_commit_log_max_offset,
        }
