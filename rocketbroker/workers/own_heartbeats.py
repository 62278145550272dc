# -*- test-case-name: tests.workers.test_own_heartbeats -*-
"""The heartbeats that a worker answers itself: those that say again what the owner has
taken of the same connection (L{rocketbroker.broker.clients.repeated_heartbeats}).

A heartbeat is relayed first. The owner says its opaque when another one like it would
change nothing; from then on such ones are answered here, as long as the version of
pulls stays what it was when the first was relayed. The owner is told of them once in
L{REPORT_SECONDS}, so that it knows which clients are alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from twisted.internet.interfaces import IDelayedCall

from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.interfaces import HubReactor
from rocketbroker.wire.hot import HEARTBEAT_ANSWER, cut_at_opaque, frame_of
from rocketbroker.workers.link_frames import FORGET, HEARTBEAT_WORD, Kind, link_frame
from rocketbroker.workers.payloads import AnsweredHeartbeats, encode

if TYPE_CHECKING:
    from rocketbroker.workers.relay import OwnerRelay
    from rocketbroker.workers.relayed_client import RelayedClient

#: The owner is told of heartbeats once in this time: it misses them after two minutes.
REPORT_SECONDS: Final = 1.0


@final
class OwnHeartbeats:
    """Answers heartbeats.

    @ivar answered: how many.
    """

    def __init__(
        self,
        reactor: HubReactor,
        hub: Hub,
        relay: OwnerRelay,
        current: Callable[[], int],
    ) -> None:
        """
        @param current: the version of what the owner has allowed; 0: nothing.
        """
        self.answered = 0
        self._reactor = reactor
        self._hub = hub
        self._relay = relay
        self._current = current
        self._said = AnsweredHeartbeats(0.0, 0, [])
        self._report_call: IDelayedCall | None = None

    def take(
        self, client: RelayedClient, header: bytes, body: bytes, size: int
    ) -> bool:
        """See L{TakesRequests.take
        <rocketbroker.workers.relayed_client.TakesRequests.take>}."""
        parts = cut_at_opaque(header)
        if parts is None:
            client.heartbeat = client.asked = None
            return False
        before, opaque, behind = parts
        version = self._current()
        heartbeat = hash((before, behind, body, version))
        if client.heartbeat != heartbeat or not version:
            client.heartbeat = None
            client.asked = int(opaque), heartbeat
            return False
        client.connection.send_now(frame_of(HEARTBEAT_ANSWER % opaque))
        self.answered += 1
        said = self._said
        said.connections.append(client.id)
        said.bytes_in += size
        said.seconds = self._hub.seconds() - self._hub.now
        if self._report_call is None:
            self._report_call = self._reactor.callLater(REPORT_SECONDS, self._report)
        return True

    def approved(self, client: RelayedClient, payload: bytes) -> None:
        """The owner has taken a heartbeat of a client, and it may be repeated."""
        opaque: int = HEARTBEAT_WORD.unpack(payload)[0]
        asked = client.asked
        if opaque == FORGET:
            client.heartbeat = client.asked = None
        elif asked is not None and asked[0] == opaque:
            client.heartbeat = asked[1]
            client.asked = None

    def _report(self) -> None:
        """Tell the owner whose heartbeats were answered."""
        self._report_call = None
        said, self._said = self._said, AnsweredHeartbeats(0.0, 0, [])
        self._relay.tell(link_frame(Kind.HEARTBEATS, 0, encode(said)))

    def close(self) -> None:
        """Answer no more."""
        if self._report_call is not None:
            self._report_call.cancel()
            self._report_call = None
