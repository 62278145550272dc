# -*- test-case-name: tests.broker.acting.test_group_roles -*-
"""The brokers of one name: how this one gets into their group, and acts in it.

Every broker answers requests 905 and 906. With enableSlaveActingMaster it sends
heartbeats, looks at its group, and starts isolated if it is to have replicas
(L{rocketbroker.broker.acting.pre_online}); a slave does an absent master's work
(L{rocketbroker.broker.acting.acting_master}).

C{docs/facts/ha.md} 13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.acting.ha_exchange import HAExchange, HAInfo
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.registration.ha_proofs import caller_of
from rocketbroker.broker.registration.masters import Master
from rocketbroker.broker.registration.member_group import MASTER_ID
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.replicas.room import ReplicasRoom
from rocketbroker.broker.roles import Role, role_of, starts_isolated
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable

if TYPE_CHECKING:
    # Only groups with enableSlaveActingMaster import these.
    from rocketbroker.broker.acting.acting_master import ActingMaster
    from rocketbroker.broker.acting.masters_work import MastersWork
    from rocketbroker.broker.acting.pre_online import MasterWay, PreOnline, SlaveWay

HEARTBEATS: Final = Service(
    "heartbeats to name servers",
    "a name server notices within seconds that a broker is gone",
    lambda s: max(1, s.broker.broker_heartbeat_interval) / 1000,
    always(1),
)
MEMBERS: Final = Service(
    "look at the group",
    "the slave with the least id acts for a master that is gone",
    lambda s: max(1, s.broker.sync_broker_member_group_period) / 1000,
    always(1),
)
PRE_ONLINE: Final = Service(
    "way to the name servers",
    "what was done without a broker is taken over before clients find it",
    always(1),
    always(0),
)

#: A shorter haMasterAddress is none, as in RocketMQ.
MIN_MASTER_ADDRESS: Final = 6


@final
class GroupRoles(Room):
    """The parts of a broker that depend on its group's members.

    @ivar known: fires when the name servers know this broker or could not be reached,
        or when it has begun to wait for the others of its group.
    @ivar pre_online: the way to the name servers; None if nothing stands before it.
    @ivar acting: of a slave that may act as master; else None.
    """

    def __init__(
        self,
        context: BrokerContext,
        names: RegistrationRoom,
        replicas: ReplicasRoom,
        pull: PullRoom,
        work: MastersWork | None,
    ) -> None:
        """
        @param names: the name servers.
        @param work: what a slave does that acts for a master; None without
            enableSlaveActingMaster.
        """
        self.known: Deferred[None] = Deferred()
        settings = context.settings
        self._address = context.address
        self._services: Services = context.services
        self._store = context.store
        self._names = names
        self._replicas = replicas
        self._work = work
        self._tried: Deferred[None] | None = None
        self._is_slave = role_of(settings) is Role.SLAVE
        self._enabled = settings.broker.enable_slave_acting_master
        self._flush_offset = 0
        self._options = settings.store
        registration = names.registration
        members, broker_id = registration.members, settings.broker.broker_id
        self.exchange = HAExchange(
            caller_of(context), self._own, self._told, registration.refusals
        )
        self.acting: ActingMaster | None = None
        if self._enabled and self._is_slave:
            from rocketbroker.broker.acting.acting_master import ActingMaster

            wake_all = pull.long_polling.wake_all
            self.acting = ActingMaster(
                context.clock, broker_id, self, self, self.exchange.ask, wake_all
            )
            members.watch(self.acting.heard)
        self.pre_online: PreOnline | None = None
        if starts_isolated(settings):
            from rocketbroker.broker.acting.pre_online import (
                MasterWay,
                PreOnline,
                SlaveWay,
            )

            way: MasterWay | SlaveWay
            if self._is_slave:
                link = replicas.link
                way = SlaveWay(self.exchange, self, link, self._note_flush_offset)
            else:
                assert work is not None
                hosts = names.name_servers.hosts
                way = MasterWay(
                    self.exchange, replicas.server, work.reverse_sync, hosts
                )
            self.pre_online = PreOnline(
                members, broker_id, context.address, way, self._online
            )

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.store

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.exchange.register(table)
        self._names.registration.members.register(table)

    # Start and stop.

    def start(self) -> None:
        """Tell the name servers of this broker, as soon as it may."""
        self._begin().chainDeferred(self.known)

    def _begin(self) -> Deferred[None]:
        begin, members = self._services.begin, self._names.registration.members
        self._follow_master()
        self._flush_offset = self._store.published_position
        if self.acting is not None:
            assert self._work is not None
            self._work.start()
        if self._enabled:
            begin(HEARTBEATS, self._heartbeat)
            begin(MEMBERS, members.look)
        if self.pre_online is None:
            return self._online(MASTER_ID)
        tried = self._tried = Deferred()
        begin(PRE_ONLINE, self._look)
        return tried

    def _follow_master(self) -> None:
        """Get the log from the master, if this is a slave."""
        if self._services.role is not Role.SLAVE:
            return
        link, given = self._replicas.link, self._options.ha_master_address or ""
        if len(given) >= MIN_MASTER_ADDRESS:
            link.follow(given)
        else:
            self._names.registration.masters.watch_answers(self._master_named)
        link.start()

    def _master_named(self, master: Master) -> None:
        # A master that is gone may come back: its address stays.
        if master.ha_address is not None:
            self._replicas.link.follow(master.ha_address)

    def _heartbeat(self) -> None:
        if self.pre_online is None or self.pre_online.is_online:
            self._names.registration.members.heartbeat()

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
        if self.pre_online is not None:
            self._services.calls[PRE_ONLINE].stop()
        if not self._is_slave:
            self._services.act_as(Role.MASTER)
        registered = self._names.registration.start()
        if self.acting is not None:
            self.acting.online(least)
        return registered

    def stop(self) -> Deferred[None]:
        """Act for no master any more; fires when what is under way has ended."""
        return succeed(None) if self.acting is None else self.acting.stop()

    # The work of an acting master.

    def begin(self) -> None:
        """This slave acts for the master."""
        self._services.act_as(Role.ACTING_MASTER)

    def end(self) -> Deferred[None]:
        """It does not any more."""
        self._services.act_as(Role.SLAVE)
        assert self._work is not None
        return self._work.ended()

    # Who is followed.

    def follow(self, master: str | None, ha_address: str | None) -> None:
        """There is a master, or there is none."""
        self._names.registration.masters.say(Master(ha_address, master))
        self._follow_log(ha_address)

    def _follow_log(self, ha_address: str | None) -> None:
        given = self._options.ha_master_address or ""
        if len(given) < MIN_MASTER_ADDRESS:
            self._replicas.link.follow(ha_address)

    def _own(self) -> HAInfo:
        """What this broker says of itself."""
        if self._is_slave:
            return HAInfo()
        ha_address = self._names.calls.ha_address
        return HAInfo(self._address, ha_address, self._flush_offset)

    def _told(self, info: HAInfo) -> Deferred[None] | None:
        """A master says that it comes back.

        Only its log is followed: its tables are old, and it has not taken over this
        slave's yet. They are copied when name servers know it.

        @raise NoPermission: it is not the master of this slave.
        """
        if not self._is_slave:
            return None
        self._names.membership.check_master(info.ha_address or "")
        self._note_flush_offset(info)
        self._follow_log(info.ha_address)
        return None if self.acting is None else self.acting.pause()

    def _note_flush_offset(self, info: HAInfo) -> None:
        """Keep where the master's log ended when it started, if nothing is known."""
        status, options = self._replicas.status, self._options
        wanted = options.sync_master_flush_offset_when_startup
        if wanted and not status.master_flush_offset:
            status.master_flush_offset = info.flush_offset or 0
