# -*- test-case-name: tests.proxy.test_transactions -*-
"""Transactions: where the half message of a transaction is.

A client ends a transaction by its topic and its id; the broker wants to know where the
half message is. RocketMQ's Proxy remembers that for half a minute. Here the id that
clients get says it, as a receipt handle does, so that any proxy may end any
transaction. C{docs/facts/proxy.md} 9.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketbroker.proxy.messages_pb2 import Code, TransactionResolution
from rocketbroker.proxy.statuses import Refusal
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

    @ivar broker: the name of its broker.
    @ivar position: in the commit log.
    @ivar queue_offset: in the queue of half messages.
    @ivar transaction_id: as its broker knows it.
    """

    broker: str
    position: int
    queue_offset: int
    transaction_id: str

    def text(self) -> str:
        """The transaction id that clients have."""
        return (
            f"{self.position} {self.queue_offset} {self.broker} {self.transaction_id}"
        )

    @classmethod
    def parse(cls, text: str) -> Half:
        """Read one.

        @raise Refusal: it is no id of a proxy of ours.
        """
        try:
            position, queue_offset, broker, transaction_id = text.split(" ", 3)
            return cls(broker, int(position), int(queue_offset), transaction_id)
        except ValueError:
            words = "cannot found transaction data"
            raise Refusal(Code.INTERNAL_SERVER_ERROR, words) from None


def end_request(
    topic: str,
    half: Half,
    message_id: str,
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
        transaction_id=half.transaction_id,
    )
    return Command(RequestCode.END_TRANSACTION, header.to_ext(), remark=REMARK)
