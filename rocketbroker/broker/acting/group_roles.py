# -*- test-case-name: tests.broker.acting.test_group_roles -*-
"""The brokers of one name: how this one gets into their group, and acts in it.

Every broker answers requests 60, 905 and 906. With enableSlaveActingMaster it sends
heartbeats, looks at its group, and starts isolated if it is to have replicas
(L{rocketbroker.broker.acting.pre_online}); a slave does an absent master's work
(L{rocketbroker.broker.acting.acting_master}).

C{docs/facts/ha.md} 13.
"""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred, gatherResults, succeed

from rocketbroker.broker.acting.acting_master import ActingMaster
from rocketbroker.broker.acting.escape_delays import EscapeDelays
from rocketbroker.broker.acting.escape_halves import EscapeHalves
from rocketbroker.broker.acting.ha_exchange import HAExchange, HAInfo
from rocketbroker.broker.acting.pre_online import MasterWay, PreOnline, SlaveWay
from rocketbroker.broker.acting.reverse_sync import ReverseSync
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.parts import Parts
from rocketbroker.broker.registration.masters import Master
from rocketbroker.broker.registration.member_group import MASTER_ID
from rocketbroker.broker.replicas.ha_status import HaStatus
from rocketbroker.broker.replicas.timer_checkpoint import TimerCheckpoint
from rocketbroker.broker.roles import Role, role_of, starts_isolated
from rocketbroker.broker.services import HEARTBEATS, MEMBERS, PRE_ONLINE
from rocketbroker.broker.timer.outlet import EscapeOutlet
from rocketbroker.remoting.interfaces import IResponderTable

#: A shorter haMasterAddress is none, as in RocketMQ.
MIN_MASTER_ADDRESS: Final = 6


@final
class GroupRoles:
    """What concerns the group.

    @ivar pre_online: the way to the name servers; None if nothing stands before it.
    @ivar acting: of a slave that may act as master; else None.
    @ivar bridge: takes what an acting master may not store itself.
    """

    def __init__(self, parts: Parts, env: BrokerContext, ha_status: HaStatus) -> None:
        """
        @param ha_status: shows where the master's log ended when it started.
        """
        settings = parts.settings
        self._parts = parts
        self._ha_status = ha_status
        self._tried: Deferred[None] | None = None
        self._is_slave = role_of(settings) is Role.SLAVE
        self._enabled = settings.broker.enable_slave_acting_master
        self._flush_offset = 0
        refusals = parts.registration.refusals
        self.exchange = HAExchange(env.client, self._own, self._told, refusals)
        timers = parts.timers
        self._timers = TimerCheckpoint(timers.checkpoint, timers.counts.to_json)
        self.bridge = parts.replicas.bridge
        self.acting: ActingMaster | None = None
        if self._enabled and self._is_slave:
            self._make_acting(parts, env)
        self.pre_online: PreOnline | None = None
        if starts_isolated(settings):
            way: MasterWay | SlaveWay
            if self._is_slave:
                link = parts.master_link
                way = SlaveWay(self.exchange, self, link, self._note_flush_offset)
            else:
                take_delays = parts.delay_offsets.take_back
                take_timers = parts.timers.take_back
                reverse = ReverseSync(
                    env.client, parts.offsets, take_delays, take_timers
                )
                hosts = parts.name_servers.hosts
                way = MasterWay(self.exchange, parts.replica_server, reverse, hosts)
            self.pre_online = PreOnline(
                parts.registration.members,
                settings.broker.broker_id,
                parts.address,
                way,
                self._online,
            )

    def _make_acting(self, parts: Parts, env: BrokerContext) -> None:
        """The work in a master's place."""
        self.delays = EscapeDelays(
            env.clock,
            parts.store,
            parts.delay_offsets,
            parts.schedule.levels,
            self.bridge.put,
            env.wall_ms,
            env.in_thread,
            parts.services,
        )
        self.halves = EscapeHalves(
            parts.store,
            parts.transactions.checks,
            parts.transactions.state,
            parts.transactions.marks,
            parts.offsets,
            parts.scheduler.dispatch,
            self.bridge.put,
            env.in_thread,
            parts.services,
        )
        self.acting = ActingMaster(
            env.clock,
            parts.settings.broker.broker_id,
            self,
            self,
            self.exchange.ask,
            parts.long_polling.wake_all,
        )
        parts.registration.members.watch(self.acting.heard)

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        self.exchange.register(table)
        self._timers.register(table)
        self._parts.registration.members.register(table)

    # Start and stop.

    def start(self) -> Deferred[None]:
        """Tell the name servers of this broker, as soon as it may.

        @return: fires when they know it or could not be reached, or when it has begun
            to wait for the others of its group.
        """
        parts = self._parts
        begin, members = parts.services.begin, parts.registration.members
        self._flush_offset = parts.store.published_position
        if self.acting is not None:
            self.delays.start()
            self.halves.start()
            precision_ms = parts.timers.timers.precision_ms
            parts.timers.escape_by(EscapeOutlet(self.bridge.put, precision_ms))
        if self._enabled:
            begin(HEARTBEATS, self._heartbeat)
            begin(MEMBERS, members.look)
        if self.pre_online is None:
            return self._online(MASTER_ID)
        tried = self._tried = Deferred()
        begin(PRE_ONLINE, self._look)
        return tried

    def _heartbeat(self) -> None:
        if self.pre_online is None or self.pre_online.is_online:
            self._parts.registration.members.heartbeat()

    def _look(self) -> Deferred[None]:
        assert self.pre_online is not None
        return self.pre_online.look().addBoth(self._looked)

    def _looked(self, result: None) -> None:
        """The first look is over, if not more."""
        tried, self._tried = self._tried, None
        if tried is not None:
            tried.callback(None)
        return result

    def _online(self, least: int) -> Deferred[None]:
        """Nothing stands between this broker and the name servers any more.

        @param least: the least id of its group.
        """
        parts = self._parts
        if self.pre_online is not None:
            parts.services.calls[PRE_ONLINE].stop()
        if not self._is_slave:
            parts.services.act_as(Role.MASTER)
        registered = parts.registration.start()
        if self.acting is not None:
            self.acting.online(least)
        return registered

    def stop(self) -> Deferred[None]:
        """Act for no master any more; fires when what is under way has ended."""
        return succeed(None) if self.acting is None else self.acting.stop()

    # The work of an acting master.

    def begin(self) -> None:
        """This slave acts for the master."""
        self._parts.services.act_as(Role.ACTING_MASTER)

    def end(self) -> Deferred[None]:
        """It does not any more."""
        self._parts.services.act_as(Role.SLAVE)
        timers = self._parts.timers.ended()
        ended = gatherResults([self.delays.ended(), self.halves.ended(), timers])
        return ended.addCallback(lambda _: None)

    # Who is followed.

    def follow(self, master: str | None, ha_address: str | None) -> None:
        """There is a master, or there is none."""
        self._parts.registration.masters.say(Master(ha_address, master))
        self._follow_log(ha_address)

    def _follow_log(self, ha_address: str | None) -> None:
        given = self._parts.settings.store.ha_master_address or ""
        if len(given) < MIN_MASTER_ADDRESS:
            self._parts.master_link.follow(ha_address)

    def _own(self) -> HAInfo:
        """What this broker says of itself."""
        if self._is_slave:
            return HAInfo()
        ha_address = self._parts.name_server_api.ha_address
        return HAInfo(self._parts.address, ha_address, self._flush_offset)

    def _told(self, info: HAInfo) -> Deferred[None] | None:
        """A master says that it comes back.

        Only its log is followed: its tables are old, and it has not taken over this
        slave's yet. They are copied when name servers know it.

        @raise NoPermission: it is not the master of this slave.
        """
        if not self._is_slave:
            return None
        self._parts.membership.check_master(info.ha_address or "")
        self._note_flush_offset(info)
        self._follow_log(info.ha_address)
        return None if self.acting is None else self.acting.pause()

    def _note_flush_offset(self, info: HAInfo) -> None:
        """Keep where the master's log ended when it started, if nothing is known."""
        status, options = self._ha_status, self._parts.settings.store
        wanted = options.sync_master_flush_offset_when_startup
        if wanted and not status.master_flush_offset:
            status.master_flush_offset = info.flush_offset or 0
