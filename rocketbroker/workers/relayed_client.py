# -*- test-case-name: tests.workers.test_relayed_client -*-
"""A client's connection in a worker, what answers its pulls there, and what of it
may be a send.

Order
=====

Sends of one connection are stored in the order in which they came, by two processes. So
the worker appends none while one that it has relayed may not be stored yet; it learns
of that by fences. Each connection is in one L{SendOrder}, and L{TRANSITIONS} is the
table of all that L{OrderInput} may do to it. An input that an order has no entry for is
a mistake of ours::

    ========  ===============================  ========  ======  ========  =========
    order     meaning                          RELAY     FENCE   BACK      LAST_BACK
    ========  ===============================  ========  ======  ========  =========
    OWN       all that was relayed is stored:  UNFENCED
              the worker may append the next
    UNFENCED  a send was relayed in this                 FENCED  UNFENCED  UNFENCED
              turn, and has no fence yet
    FENCED    fences have not come back        UNFENCED          FENCED    OWN
    ========  ===============================  ========  ======  ========  =========

The first send of a turn that is relayed says RELAY, the end of that turn FENCE. A fence
that comes back says LAST_BACK if no other is out: this is what C{fences} counts, of
UNFENCED and FENCED.

Reading
=======

A client is not read for any of three reasons: the owner has said PAUSE, there is no
room on the link, it has broken the protocol. Each of them comes and goes without the
others, and all eight cases make sense. So they are no machine: C{reasons} is the set.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Protocol, final

from rocketbroker.remoting.hubconnection import HubConnection

#: The codes of sends, as they stand in headers of JSON, and as numbers.
_SENDS: Final = frozenset((b"310,", b"320,", b"324,", b"325,", b'10,"'))
_SEND_CODES: Final = frozenset((10, 310, 320, 324, 325))
_BINARY: Final = 1


def is_send(data: bytes, start: int) -> bool:
    """Whether the frame that begins there may be a send: it is not known to be none."""
    if data[start + 8 : start + 16] == b'{"code":':
        return data[start + 16 : start + 20] in _SENDS
    if data[start + 4] == _BINARY:
        return int.from_bytes(data[start + 8 : start + 10], "big") in _SEND_CODES
    return True


class SendOrder(IntEnum):
    """Who may store the sends of a connection; see the module."""

    OWN = 0
    UNFENCED = 1
    FENCED = 2


class OrderInput(IntEnum):
    """What happens to the order of a connection.

    RELAY: a send goes to the owner. FENCE: a fence goes behind it. BACK: a fence comes
    back, and others are out. LAST_BACK: the last one comes back.
    """

    RELAY = 0
    FENCE = 1
    BACK = 2
    LAST_BACK = 3


#: The table; see the module.
TRANSITIONS: Final[Mapping[SendOrder, Mapping[OrderInput, SendOrder]]] = {
    SendOrder.OWN: {OrderInput.RELAY: SendOrder.UNFENCED},
    SendOrder.UNFENCED: {
        OrderInput.FENCE: SendOrder.FENCED,
        OrderInput.BACK: SendOrder.UNFENCED,
        OrderInput.LAST_BACK: SendOrder.UNFENCED,
    },
    SendOrder.FENCED: {
        OrderInput.RELAY: SendOrder.UNFENCED,
        OrderInput.BACK: SendOrder.FENCED,
        OrderInput.LAST_BACK: SendOrder.OWN,
    },
}

# Members of an enumeration are slow to look up.
_OWN: Final = SendOrder.OWN
_UNFENCED: Final = SendOrder.UNFENCED
_RELAY: Final = OrderInput.RELAY
_FENCE: Final = OrderInput.FENCE
_BACK: Final = OrderInput.BACK
_LAST_BACK: Final = OrderInput.LAST_BACK

#: Reasons not to read a client: the owner wants nothing of it for now; the link has no
#: room; it has broken the protocol, and the owner is about to close it.
PAUSED: Final = 1
NO_ROOM: Final = 2
BROKEN: Final = 4


@final
class RelayedClient:
    """A client's connection in a worker, whose requests go to the owner.

    @ivar id: its number on the link.
    @ivar connection: in the worker's hub.
    @ivar unacknowledged: bytes of the owner for it that were not acknowledged.
    @ivar order: who may store its sends.
    @ivar fences: how many fences have not come back.
    @ivar reasons: why it is not read, a bit for each; 0: it is read.
    """

    __slots__ = ("connection", "fences", "id", "order", "reasons", "unacknowledged")

    def __init__(self, connection_id: int, connection: HubConnection) -> None:
        self.id = connection_id
        self.connection = connection
        self.unacknowledged = 0
        self.order = _OWN
        self.fences = 0
        self.reasons = 0

    def on(self, given: OrderInput) -> None:
        """Go to the order that C{given} leads to."""
        self.order = TRANSITIONS[self.order][given]

    def relayed(self) -> bool:
        """A send was relayed; whether it is the first behind which a fence must go."""
        if self.order is _UNFENCED:
            return False
        self.on(_RELAY)
        return True

    def fenced(self) -> None:
        """A fence goes behind all that was relayed."""
        self.on(_FENCE)
        self.fences += 1

    def fence_back(self) -> None:
        """The owner has stored all before a fence."""
        self.on(_LAST_BACK if self.fences == 1 else _BACK)
        self.fences -= 1

    def hold(self, reason: int) -> None:
        """Do not read it, for this reason."""
        self.reasons |= reason
        self.connection.hold(True)

    def free(self, reason: int) -> None:
        """Read it, if there is no other reason not to."""
        self.reasons &= ~reason
        self.connection.hold(self.reasons != 0)


class TakesPulls(Protocol):
    """Answers pulls in this worker."""

    def take(self, client: RelayedClient, header: bytes, size: int) -> bool:
        """Answer a pull, or let it wait.

        @param size: the bytes of its frame.
        @return: whether that was done; else it is to be relayed.
        """

    @property
    def is_unreported(self) -> bool:
        """Whether the owner has not been told of all."""

    def report(self) -> None:
        """Tell it."""
