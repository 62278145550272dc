# -*- test-case-name: tests.broker.pull.test_pull -*-
"""What a pull asks for, and how much of it is given.

The reference gives 32 messages at most, whatever a client asks for. We do too as long
as it asks for no more than that; who asks for more knows us, and gets up to
L{MAX_MESSAGES} and L{MAX_BYTES}.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.errors import SystemFailure
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import PullMessageRequestHeader
from rocketbroker.wire.hot import PullFields

#: More than this many messages are not given at once, whatever is asked for.
MAX_MESSAGES: Final = 65_536

#: What the reference gives at most (its clients do not know more).
STOCK_MESSAGES: Final = 32

#: Bytes of one answer if the pull does not say.
ORDINARY_BYTES: Final = 256 << 10

#: Bytes of one answer, whatever is asked for: half of the largest frame.
MAX_BYTES: Final = 8 << 20

#: Required fields that a pull without a subscription, that does not wait and commits
#: nothing, does well without.
NOT_NEEDED: Final = frozenset(("commitOffset", "suspendTimeoutMillis", "subVersion"))


def fields_of(request: Command) -> PullFields:
    """The fields of a request 11 or 361, whatever its serialization.

    @raise SystemFailure: it has no extension fields, one that is needed is missing, or
        a number is none.
    """
    if request.ext is None:
        raise SystemFailure("the request has no header fields")
    header = PullMessageRequestHeader.complete(request.ext, NOT_NEEDED)
    return PullFields(
        consumerGroup=header.consumer_group,
        topic=header.topic,
        queueId=header.queue_id,
        queueOffset=header.queue_offset,
        maxMsgNums=header.max_msg_nums,
        sysFlag=header.sys_flag,
        commitOffset=header.commit_offset,
        suspendTimeoutMillis=header.suspend_timeout_millis,
        subVersion=header.sub_version,
        subscription=header.subscription,
        expressionType=header.expression_type,
        maxMsgBytes=header.max_msg_bytes,
        requestSource=header.request_source,
        proxyFrowardClientId=header.proxy_froward_client_id,
    )


def limits(fields: PullFields) -> tuple[int, int]:
    """How many messages and bytes a pull gets at most."""
    most = fields.maxMsgNums
    if most <= STOCK_MESSAGES:
        return (most if most > 0 else 1), ORDINARY_BYTES
    size = fields.maxMsgBytes or ORDINARY_BYTES
    return min(most, MAX_MESSAGES), min(size, MAX_BYTES)
