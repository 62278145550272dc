# -*- test-case-name: tests.broker.test_wait_limits -*-
"""Limits of the time that the requests of each family may wait to be begun.

A family is what RocketMQ gives a thread pool of its own, and the limits are those of
the pools' queues (C{docs/facts/broker.md} 6.2, 7.1). Replies, queries of messages, and
what clients say and ask of themselves, their offsets and assignments have none. What is
in no other family is an administrator's.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from rocketbroker.config.broker import BrokerOptions

SENDS: Final = (10, 36, 310, 320, 370)
PULLS: Final = (11, 200050, 200052, 200054, 200055)
LITE_PULLS: Final = (361,)
HEARTBEATS: Final = (34,)
TRANSACTIONS: Final = (37,)
ACKS: Final = (200051, 200053, 200151)

#: Requests that wait for ever.
UNLIMITED: Final = frozenset((12, 14, 15, 33, 35, 38, 46, 324, 325, 400, 401))


def wait_limits(options: BrokerOptions, codes: Iterable[int]) -> dict[int, float]:
    """The limits of those request codes that have one, in seconds."""
    if not options.broker_fast_failure_enable:
        return {}
    limits = {
        SENDS: options.wait_time_mills_in_send_queue,
        PULLS: options.wait_time_mills_in_pull_queue,
        LITE_PULLS: options.wait_time_mills_in_lite_pull_queue,
        HEARTBEATS: options.wait_time_mills_in_heartbeat_queue,
        TRANSACTIONS: options.wait_time_mills_in_transaction_queue,
        ACKS: options.wait_time_mills_in_ack_queue,
    }
    of_code = {code: ms for family, ms in limits.items() for code in family}
    others = options.wait_time_mills_in_admin_broker_queue
    return {
        code: of_code.get(code, others) / 1000
        for code in codes
        if code not in UNLIMITED
    }


def wait_limit(options: BrokerOptions, code: int) -> float:
    """The limit of one request code, in seconds; infinite if it has none."""
    return wait_limits(options, [code]).get(code, inf)
