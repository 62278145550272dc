# -*- test-case-name: tests.broker.registration.test_membership -*-
"""The members of this broker's name: the copies that count, and the master.

Neither the port of replication nor request 906 asks for a password. What is known of
the others of this name is what name servers say:

  - A connection to the port of replication is a slave's if it comes from the host of a
    slave that a name server lists (901, or the route of the group's topic), or from one
    of haTrustedAddresses. All others are strangers'. Without name servers this machine
    is trusted, too.
  - A slave that connects before it is registered is a stranger until name servers
    list it. So they are asked again while there are strangers, but not all the time.
  - A master that comes back (906) has to be the one that name servers name, or named
    last: while it tells its slaves, it is not registered itself.
  - Name servers that are silent change nothing. What they said is kept in a file, so
    that it holds for a start while they are silent, too.

C{docs/facts/ha.md} 3 and 13.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.registration.known_hosts import host_of, packed
from rocketbroker.broker.registration.masters import Master, Masters
from rocketbroker.broker.registration.member_group import MemberGroup
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.config.addresses import is_among
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import NoPermission, RemoteProtocolError
from rocketbroker.wire.bodies.routes import BrokerMemberGroup
from rocketbroker.wire.fields import Fields

#: How often name servers are asked because of strangers, at most.
LOOK_SECONDS: Final = 2.0

#: The file of what name servers said last.
FILE: Final = "replicaGroup.json"


@final
class Membership:
    """Says who belongs to this broker's name.

    @ivar serves_strangers: whether strangers are sent the log.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        settings: BrokerSettings,
        members: MemberGroup,
        masters: Masters,
        name_servers: NameServers,
        file: JsonTable,
    ) -> None:
        """
        @param file: keeps what name servers said.
        """
        self._clock = clock
        broker = settings.broker
        self._own = broker.broker_cluster_name, broker.broker_name
        self._members = members
        self._masters = masters
        self._name_servers = name_servers
        self._hosts = name_servers.hosts
        self._file = file
        self._kept: object = None
        self._looking: Deferred[None] | None = None
        self._looked_at = -LOOK_SECONDS
        self._is_stopped = False
        self._changed: list[Callable[[bool], object]] = []
        # Whom a slave follows is nothing that a request may change.
        self._trusted_masters = settings.store.ha_trusted_addresses
        self._obey(settings)
        masters.watch(lambda master: self._keep())

    def _obey(self, settings: BrokerSettings) -> None:
        self.serves_strangers = settings.store.ha_serve_strangers
        self._trusted = settings.store.ha_trusted_addresses

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        before = self.serves_strangers, self._trusted
        self._obey(settings)
        if (self.serves_strangers, self._trusted) != before:
            self._tell(True)

    def watch(self, changed: Callable[[bool], object]) -> None:
        """Call C{changed} when the answers of L{is_slave} may be others.

        It is given whether the settings are others: then what was a slave's connection
        may be none any more.
        """
        self._changed.append(changed)

    def _tell(self, anew: bool) -> None:
        for changed in self._changed:
            changed(anew)

    # Questions.

    def is_slave(self, host: str) -> bool:
        """Whether a connection from C{host} is a slave's."""
        peer = packed(host)
        if peer is None:
            return False
        if self._is_trusted(peer, self._trusted):
            return True
        return self._hosts.is_of(peer, self._members.others())

    def _is_trusted(self, host: bytes, trusted: str) -> bool:
        if is_among(host, trusted):
            return True
        return not self._name_servers.is_needed() and self._hosts.is_own(host)

    def check_master(self, ha_address: str) -> None:
        """Check whether a slave may follow whoever says that it is the master.

        One that has never heard of a master follows the first.

        @raise NoPermission: name servers name another.
        """
        known = self._masters.last.ha_address
        if ha_address == known or (known is None and self._name_servers.is_needed()):
            return
        host = packed(host_of(ha_address))
        if host is not None and self._is_trusted(host, self._trusted_masters):
            return
        raise NoPermission(
            "the master that this slave's name servers name, or named last, is "
            f"{known or 'nobody'}, and not {ha_address}: if that one is to be "
            "followed, name its host in haTrustedAddresses of this slave's settings, "
            "and start the slave again"
        )

    # What name servers say.

    def look_soon(self) -> None:
        """Ask the name servers, unless they have just been asked for this reason."""
        now = self._clock.seconds()
        if self._looking is None and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self.look().addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        self._log.failure("Name servers cannot be asked for the group.", failure)

    def look(self) -> Deferred[None]:
        """Ask the name servers, and look up hosts; fires when it is done."""
        if self._looking is not None or self._is_stopped:
            return succeed(None)
        looking = self._looking = Deferred.fromCoroutine(self._look())
        return looking.addBoth(self._looked)

    def _looked(self, result: None) -> None:
        self._looking = None
        return result

    async def _look(self) -> None:
        await self._members.ask_all()
        if self._is_stopped:
            return
        addresses = {*self._members.others(), *self._name_servers.current}
        await self._hosts.look_up(addresses)
        self._keep()
        self._tell(False)

    def stop(self) -> None:
        """Ask nobody any more."""
        self._is_stopped = True

    # The file.

    def load(self) -> None:
        """I{Blocking.} Take up what name servers said before this start; what makes no
        sense is left out."""
        try:
            fields = Fields(self._file.load() or {}, self._file.path)
            group = BrokerMemberGroup.from_json(fields.value("brokerMemberGroup") or {})
            master = Master(fields.text("haServerAddr"), fields.text("masterAddr"))
        except RemoteProtocolError:
            return
        if (group.cluster, group.broker_name) == self._own:
            self._members.restore(group.broker_addrs)
            self._masters.last = master
            self._kept = self._known()

    def _keep(self) -> None:
        """Write what has changed."""
        known = self._known()
        if known != self._kept and self._name_servers.is_needed():
            self._kept = known
            self._file.save_soon(partial(dict, known))

    def _known(self) -> dict[str, object]:
        (cluster, name), master = self._own, self._masters.last
        group = BrokerMemberGroup(
            cluster=cluster,
            broker_name=name,
            broker_addrs=dict(sorted(self._members.all())),
        )
        return {
            "brokerMemberGroup": group.to_json(),
            "haServerAddr": master.ha_address,
            "masterAddr": master.address,
        }
