# -*- test-case-name: tests.broker.registration.test_member_group -*-
"""The brokers that share this one's name, as name servers see them.

With enableSlaveActingMaster every broker of a group tells all name servers each second
that it lives, and asks one of them who else does: how many copies can be waited for,
and whose id is the least. A name server may say the second by itself, too (905), as
soon as it has changed; from nobody else that is taken.

Whose copies of the log count is asked of all name servers
(L{rocketbroker.broker.registration.membership}): a slave may be registered with some
of them only.

C{docs/facts/ha.md} 13; C{docs/facts/controller.md} 23.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, final

import attrs
from twisted.internet.defer import Deferred, gatherResults
from twisted.python.failure import Failure

from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.registration.name_server_api import NameServerApi
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.errors import ConnectionLost, NoPermission, RocketbrokerError
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.headers.namesrv import NotifyMinBrokerIdChangeRequestHeader

#: The id of masters.
MASTER_ID: Final = 0


@attrs.frozen
class Least:
    """Whose id is the least in a group.

    @ivar broker_id: that id.
    @ivar address: where that broker is; None if that is not said.
    @ivar offline: the address of a broker that has gone; None if that is not said.
    @ivar ha_address: where a master with that id is followed; None likewise.
    """

    broker_id: int
    address: str | None
    offline: str | None = None
    ha_address: str | None = None


@final
class MemberGroup:
    """The members of the broker's group, as name servers report them.

    @ivar addresses: the members by id, as they were last heard of.
    @ivar alive: how many of them live, this broker included.
    """

    def __init__(
        self,
        calls: NameServerApi,
        name_servers: NameServers,
        topics: TopicTable,
        own_id: int,
        refusals: RefusalLog,
    ) -> None:
        self.addresses: Mapping[int, str] = {}
        self.alive = 1
        self._calls = calls
        self._name_servers = name_servers
        self._topics = topics
        self._own_id = own_id
        self._refusals = refusals
        self._heard: list[Callable[[Least], object]] = []
        #: What each name server said last, and what they said before this start.
        self._said: dict[str, Mapping[int, str]] = {}
        self._before: Mapping[int, str] = {}

    def watch(self, heard: Callable[[Least], object]) -> None:
        """Call C{heard} with what is heard of the least id, whether it is another than
        before or not."""
        self._heard.append(heard)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, self.notified)

    def heartbeat(self) -> None:
        """Tell all name servers that this broker lives."""
        for server in self._name_servers.current:
            self._calls.heartbeat(server, self._topics.version)

    async def ask(self) -> Mapping[int, str]:
        """The members, as the first name server says that answers.

        @raise RocketbrokerError: none of them has.
        """
        problem: RocketbrokerError = ConnectionLost("there are no name servers")
        for server in self._name_servers.current:
            try:
                return await self._ask(server)
            except RocketbrokerError as error:
                problem = error
        raise problem

    async def _ask(self, server: str) -> Mapping[int, str]:
        members = await self._calls.members(server)
        if members:
            self._said[server] = members
        return members

    def ask_all(self) -> Deferred[None]:
        """Ask all name servers; fires when all have answered, or have not."""
        asked = [
            Deferred.fromCoroutine(self._ask(server)).addErrback(no_answer)
            for server in self._name_servers.current
        ]
        return gatherResults(asked).addCallback(lambda answers: None)

    def all(self) -> Iterator[tuple[int, str]]:
        """The members, each with its id, as any of the name servers said last."""
        said = [each for s in self._name_servers.current if (each := self._said.get(s))]
        for members in said or [self._before]:
            yield from members.items()

    def others(self) -> set[str]:
        """The addresses of the other members."""
        own = self._calls.address
        return {a for number, a in self.all() if number != self._own_id and a != own}

    def restore(self, members: Mapping[int, str]) -> None:
        """These are the members until a name server says it."""
        self._before = members

    def look(self) -> Deferred[None]:
        """Ask who is there; without an answer all stays as it was."""
        asked = Deferred.fromCoroutine(self.ask())
        return asked.addCallbacks(self._seen, no_answer)

    def _seen(self, addresses: Mapping[int, str]) -> None:
        if not addresses:
            return
        self.addresses = addresses
        self.alive = len(addresses) + (self._own_id not in addresses)
        least = min(addresses)
        self._tell(Least(least, addresses[least]))

    def _tell(self, least: Least) -> None:
        for heard in self._heard:
            heard(least)

    def notified(self, connection: IConnection, request: Command) -> Command:
        """Request 905, from a name server: the least id has changed.

        @raise NoPermission: it is from somebody else.
        """
        if not self._name_servers.is_one(connection):
            sentence = (
                f"Request 905 of {connection.peer} is refused: that is none of the "
                "name servers of this broker."
            )
            self._refusals.say(sentence)
            raise NoPermission(sentence)
        header = NotifyMinBrokerIdChangeRequestHeader.from_ext(request.ext)
        if header.min_broker_id is not None:
            self._tell(
                Least(
                    header.min_broker_id,
                    header.min_broker_addr or None,
                    header.offline_broker_addr or None,
                    header.ha_broker_addr or None,
                )
            )
        return response_to(request)


def no_answer(failure: Failure) -> None:
    """No name server has answered: the registration says so in the log."""
    failure.trap(RocketbrokerError)  # type: ignore[no-untyped-call]
