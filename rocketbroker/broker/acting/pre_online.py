# -*- test-case-name: tests.broker.acting.test_pre_online -*-
"""Synchronisation before a broker goes online, in groups where a slave may act as
master.

With enableSlaveActingMaster and totalReplicas above 1 a broker starts I{isolated}: it
listens, but it is not registered, sends no heartbeats, and does no work of a master.

  - A master tells each member of its group where it is (906), waits until that slave
    follows it, and takes over what was done while it was away (L{reverse_sync}).
  - A slave asks the master the same, and waits until it follows it itself.
  - Where there is no master a slave waits for nothing, and so does one that is alone.

What fails is tried again each second; what it is stands in the log, once. A member that
has died is waited for until name servers forget it (brokerNotActiveTimeoutMillis). In
RocketMQ a master that died and is started again waits for itself, too, as name servers
still list it; not here.

C{docs/facts/ha.md} 13; C{docs/facts/controller.md} 23.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.acting.acting_master import Follower
from rocketbroker.broker.acting.ha_exchange import HAExchange, HAInfo
from rocketbroker.broker.acting.reverse_sync import ReverseSync
from rocketbroker.broker.registration.known_hosts import KnownHosts, host_of, packed
from rocketbroker.broker.registration.member_group import MASTER_ID, MemberGroup
from rocketbroker.broker.replicas.ha_status import TRANSFER
from rocketbroker.errors import RocketbrokerError
from rocketbroker.remoting.addresses import packed_address
from rocketbroker.replication.interfaces import IReplicaServer


class MasterLink(Protocol):
    """The part of L{rocketbroker.replication.interfaces.IMasterLink} that is used."""

    state: str


@final
class PreOnline:
    """The way of one broker.

    @ivar is_online: whether its end is reached.
    @ivar problem: a sentence on what it waits for; or empty.
    """

    _log = Logger()

    def __init__(
        self,
        group: MemberGroup,
        own_id: int,
        own_address: str,
        way: MasterWay | SlaveWay,
        online: Callable[[int], Deferred[None]],
    ) -> None:
        """
        @param way: what a broker of this role does.
        @param online: called at the end, with the least id of the group; fires when
            name servers know the broker.
        """
        self.is_online = False
        self.problem = ""
        self._group = group
        self._own_id = own_id
        self._own_address = own_address
        self._way = way
        self._online = online

    def look(self) -> Deferred[None]:
        """Go on; fires when no more can be done for now."""
        return Deferred.fromCoroutine(self._look())

    async def _look(self) -> None:
        if self.is_online:
            return
        try:
            members = await self._group.ask()
            others = {
                number: address
                for number, address in members.items()
                if number != self._own_id and address != self._own_address
            }
            problem = await self._way.go(others)
        except RocketbrokerError as error:
            problem = str(error)
        if problem != self.problem:
            self.problem = problem
            if problem:
                self._log.warn(
                    "This broker is not registered yet: {problem}", problem=problem
                )
        if not problem:
            self.is_online = True
            await self._online(min(others, default=self._own_id))


@final
class MasterWay:
    """What a master does first."""

    def __init__(
        self,
        exchange: HAExchange,
        replicas: IReplicaServer,
        reverse: ReverseSync,
        hosts: KnownHosts,
    ) -> None:
        self._exchange = exchange
        self._replicas = replicas
        self._reverse = reverse
        self._hosts = hosts
        self._done: set[str] = set()

    async def go(self, others: Mapping[int, str]) -> str:
        """Go on, as far as it is possible now.

        @param others: the other members of the group.
        @return: a sentence on what it waits for; empty: it can get online.
        @raise RocketbrokerError: another broker did not answer.
        """
        for _, address in sorted(others.items()):
            if address in self._done:
                continue
            await self._exchange.tell(address)
            if not self._follows(address):
                return f"the slave {address} does not follow this master yet."
            await self._reverse.take(address)
            self._done.add(address)
        return ""

    def _follows(self, address: str) -> bool:
        """Whether a slave on the host of C{address} is connected.

        As in RocketMQ, only the host is compared; one that has a name and no number may
        be any.
        """
        replicas = self._replicas.replicas
        if packed(host_of(address)) is None:
            return bool(replicas)
        hosts = (packed_address(host_of(each.address)) for each in replicas)
        return any(self._hosts.is_of(host, (address,)) for host in hosts)


@final
class SlaveWay:
    """What a slave does first."""

    def __init__(
        self,
        exchange: HAExchange,
        following: Follower,
        link: MasterLink,
        told: Callable[[HAInfo], object],
    ) -> None:
        """
        @param told: learns what the master says of itself.
        """
        self._exchange = exchange
        self._following = following
        self._link = link
        self._told = told

    async def go(self, others: Mapping[int, str]) -> str:
        """See L{MasterWay.go}."""
        address = others.get(MASTER_ID)
        if address is None:
            return ""
        info = await self._exchange.ask(address)
        if info.ha_address is None:
            return ""
        self._told(info)
        self._following.follow(info.address or address, info.ha_address)
        if self._link.state != TRANSFER:
            return f"it does not follow the master {address} yet."
        return ""
