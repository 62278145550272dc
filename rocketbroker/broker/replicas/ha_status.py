# -*- test-case-name: tests.broker.replicas.test_ha_status -*-
"""Requests 907 and 908: how replication is, for administrators.

RocketMQ's figures (C{docs/facts/ha.md} 6), and some of ours besides, which its tools
pass over: of each slave when it last had all, and why it is sent nothing; of a slave
the state of its link to the master, and what is wrong with it.

A slave has one more number, of which nothing depends: where its master's log ended when
the master started. Request 908 sets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.roles import SLAVES, Role
from rocketbroker.broker.services import Services
from rocketbroker.config.store import StoreOptions
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.replication.interfaces import IMasterLink, IReplica, IReplicaServer
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.namesrv import ResetMasterFlushOffsetHeader

if TYPE_CHECKING:
    from rocketbroker.wire.bodies.replicas import HAConnectionRuntimeInfo, HARuntimeInfo

#: The role whose sends wait for slaves.
SYNC_MASTER: Final = "SYNC_MASTER"

#: The state of a slave's link when it follows its master.
TRANSFER: Final = "TRANSFER"


@final
class HaStatus:
    """Answers requests 907 and 908."""

    def __init__(
        self,
        store: IStore,
        services: Services,
        server: IReplicaServer,
        link: IMasterLink,
    ) -> None:
        """
        @param services: know the broker's role.
        @param server: the master's side.
        @param link: the slave's side.
        """
        self._store = store
        self._services = services
        self._server = server
        self._link = link

    @property
    def master_flush_offset(self) -> int:
        """Of a slave: where its master's log ended when the master started, as far as
        it was told; the store keeps it."""
        return self._store.raw_log.master_flushed

    @master_flush_offset.setter
    def master_flush_offset(self, position: int) -> None:
        self._store.raw_log.master_flushed = position

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_BROKER_HA_STATUS, self.respond)
        table.register(RequestCode.RESET_MASTER_FLUSH_OFFSET, self.reset)

    def respond(self, connection: IConnection, request: Command) -> Command:
        """Request 907."""
        return with_body(request, self.info())

    def reset(self, connection: IConnection, request: Command) -> Command:
        """Request 908; a master has no such number, and answers all the same."""
        header = ResetMasterFlushOffsetHeader.complete(request.ext)
        if self._services.role in SLAVES:
            self.master_flush_offset = header.master_flush_offset
        return response_to(request)

    def info(self) -> HARuntimeInfo:
        """How replication is."""
        from rocketbroker.wire.bodies.replicas import HAClientRuntimeInfo, HARuntimeInfo

        end = self._store.published_position
        if self._services.role not in SLAVES:
            slaves = [connection_info(each, end) for each in self._server.replicas]
            return HARuntimeInfo(
                master=True,
                master_commit_log_max_offset=end,
                in_sync_slave_nums=sum(slave.in_sync for slave in slaves),
                ha_connection_info=slaves,
            )
        link = self._link
        return HARuntimeInfo(
            ha_client_runtime_info=HAClientRuntimeInfo(
                master_addr=link.master,
                transferred_byte_in_second=link.bytes_per_second,
                max_offset=end,
                last_read_timestamp=link.last_read_ms,
                last_write_timestamp=link.last_write_ms,
                master_flush_offset=self.master_flush_offset,
                state=link.state,
                problem=link.problem,
            )
        )

    def without_master(self) -> str | None:
        """Why this slave gets no log; None: it does, or it is no slave, or it acts for
        a master that is gone."""
        return self._not_followed() if self._services.role is Role.SLAVE else None

    def _not_followed(self) -> str | None:
        link = self._link
        if link.master is None:
            return "This slave has no master: no name server names one."
        if link.problem or link.state == TRANSFER:
            return link.problem or None
        return f"This slave does not follow its master {link.master} yet."

    def problems(self, options: StoreOptions) -> list[str]:
        """Sentences about what an operator has to mend.

        A slave that is missing is one of them only where sends wait for it.
        """
        if self._services.role in SLAVES:
            problem = self._not_followed()
            return [] if problem is None else [problem]
        found = [each.problem for each in self._server.replicas if each.problem]
        wanted = options.in_sync_replicas
        if options.broker_role == SYNC_MASTER and wanted > 1:
            there = self._server.in_sync(self._store.published_position)
            if there < wanted:
                found.append(
                    f"Sends wait for {wanted} copies (inSyncReplicas), and only "
                    f"{there} of them, this broker's included, can be made now."
                    f"{uncounted(self._server.strangers)}"
                )
        return found


def uncounted(strangers: Sequence[str]) -> str:
    """What to add where copies are missing, and there are connections that count for
    none."""
    if not strangers:
        return ""
    return (
        f" Connections that do not count: {len(strangers)}, as of {strangers[0]}; they "
        "are of no slave that name servers know. If one is a slave's, name its host in "
        "haTrustedAddresses."
    )


def connection_info(replica: IReplica, end: int) -> HAConnectionRuntimeInfo:
    """One slave.

    @param end: where the master's log ends.
    """
    from rocketbroker.wire.bodies.replicas import HAConnectionRuntimeInfo

    return HAConnectionRuntimeInfo(
        addr=replica.address,
        slave_ack_offset=replica.acked,
        diff=end - replica.acked,
        in_sync=replica.is_in_sync(end),
        transferred_byte_in_second=replica.bytes_per_second,
        transfer_from_where=replica.sent,
        caught_up_timestamp=replica.caught_up_ms,
        problem=replica.problem,
    )
