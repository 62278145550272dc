# -*- test-case-name: tests.remoting.test_nameservers -*-
"""Which name server to ask: the remoting sheet, section 7.

The list is shuffled, and one is chosen and kept as long as its connection is up. When
it is not, the next call goes to the next in the list. One call makes one attempt: a
failure is reported to the caller, who knows whether to ask again.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, final

from twisted.internet.defer import Deferred, fail

from rocketbroker.errors import ConnectionLost
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.wire.command import Command

#: The index starts below this, at random, so that clients spread over the servers.
_FIRST_INDEX_BELOW: Final = 999


@final
class NameServers:
    """The name servers, and the one that is asked now.

    @ivar addresses: all, in the order in which they are tried.
    @ivar chosen: the one that is asked; L{None} before the first call.
    """

    def __init__(
        self, client: RemotingClient, addresses: Sequence[str], random: Random
    ) -> None:
        """
        @param client: sends the requests.
        @param addresses: of the name servers, C{host:port}.
        @param random: shuffles them.
        """
        self._client = client
        self._random = random
        self._index = random.randrange(_FIRST_INDEX_BELOW)
        self.addresses: list[str] = []
        self.chosen: str | None = None
        self.set_addresses(addresses)

    def set_addresses(self, addresses: Sequence[str]) -> None:
        """Use these from now on; none at all, or the same, changes nothing.

        A chosen one that is not among them is closed.
        """
        if not addresses or set(addresses) == set(self.addresses):
            return
        self.addresses = list(dict.fromkeys(addresses))
        self._random.shuffle(self.addresses)
        if self.chosen is not None and self.chosen not in self.addresses:
            self._client.close(self.chosen)
            self.chosen = None

    def choose(self) -> str:
        """The one to ask: the same while its connection is up, else the next.

        @raise ConnectionLost: there is none at all.
        """
        chosen = self.chosen
        if chosen is not None and self._client.connection(chosen) is not None:
            return chosen
        if not self.addresses:
            raise ConnectionLost("no name server is known")
        self._index = (self._index + 1) % len(self.addresses)
        self.chosen = self.addresses[self._index]
        return self.chosen

    def invoke(self, command: Command, timeout: float) -> Deferred[Command]:
        """Ask one of them; as L{RemotingClient.invoke}."""
        try:
            address = self.choose()
        except ConnectionLost as error:
            return fail(error)
        return self._client.invoke(address, command, timeout)
