# -*- test-case-name: tests.proxy.test_transactions -*-
"""Transactions: where the half message of a transaction id is, for a while.

A client ends a transaction by its topic and its id; the broker wants to know where the
half message is. That is learned from the answer to the send, and again from each check.
C{docs/facts/proxy.md} 9.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from rocketbroker.proxy.messages_pb2 import TransactionResolution
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_UNKNOWN,
    EndTransactionRequestHeader,
)

#: What the request says about who ends it.
REMARK: Final = "end transaction from proxy"

_OUTCOMES: Final = {
    TransactionResolution.COMMIT: TRANSACTION_COMMIT,
    TransactionResolution.ROLLBACK: TRANSACTION_ROLLBACK,
}


class Half(NamedTuple):
    """Where a half message is.

    @ivar position: in the commit log.
    @ivar queue_offset: in the queue of half messages.
    @ivar expires: when this is forgotten, by the clock that only goes forward.
    """

    broker: str
    position: int
    queue_offset: int
    expires: float


@final
class Halves:
    """All half messages that were sent or checked lately, by topic and transaction."""

    def __init__(self, settings: ProxySettings) -> None:
        self._seconds = settings.transaction_data_expire_millis / 1000
        self._most = settings.transaction_data_max_num
        self._known: dict[tuple[str, str], list[Half]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def put(
        self,
        topic: str,
        transaction_id: str,
        broker: str,
        position: int,
        queue_offset: int,
        now: float,
    ) -> None:
        """Remember where one is."""
        half = Half(broker, position, queue_offset, now + self._seconds)
        known = self._known.setdefault((topic, transaction_id), [])
        known.append(half)
        del known[: -self._most]

    def take(self, topic: str, transaction_id: str, now: float) -> Half | None:
        """Where one is, by the newest that is known; it is forgotten here."""
        known = self._known.pop((topic, transaction_id), [])
        half = known.pop() if known else None
        if half is None or half.expires <= now:
            return None
        if known:
            self._known[topic, transaction_id] = known
        return half

    def clean(self, now: float) -> None:
        """Forget what is too old."""
        for key, known in [*self._known.items()]:
            left = [half for half in known if half.expires > now]
            if left:
                self._known[key] = left
            else:
                del self._known[key]


def end_request(
    topic: str,
    half: Half,
    message_id: str,
    transaction_id: str,
    resolution: TransactionResolution,
    from_check: bool,
) -> Command:
    """The request that a transaction ends."""
    header = EndTransactionRequestHeader(
        topic=topic,
        producer_group=topic,
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.position,
        commit_or_rollback=_OUTCOMES.get(resolution, TRANSACTION_UNKNOWN),
        from_transaction_check=from_check,
        msg_id=message_id,
        transaction_id=transaction_id,
    )
    return Command(RequestCode.END_TRANSACTION, header.to_ext(), remark=REMARK)
