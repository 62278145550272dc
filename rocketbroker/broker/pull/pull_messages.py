# -*- test-case-name: tests.broker.pull.test_pull -*-
"""The messages of a pull: its request, its limits, and the code of its answer.

As in RocketMQ, the broker's settings limit a pull, whatever the client asks for
(maxTransferCountOnMessageInMemory and its like; the store applies them). With
rocketbrokerMaxPullMessages, clients that ask for more messages than that get them, and
their maxMsgBytes counts, which RocketMQ does not read.

C{docs/facts/broker.md} 12.1, 12.3, 12.4; C{docs/facts/store.md} 16.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, final

from twisted.internet.defer import Deferred

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.reads import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_LOGIC_QUEUE,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    ReadResult,
)
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import PullMessageRequestHeader
from rocketbroker.wire.hot import PULL_ANSWER, PullFields

if TYPE_CHECKING:
    # A worker, which answers pulls, too, has no tables of topics and groups.
    from rocketbroker.broker.pull.pull_checks import Route

#: How long a pull waits at most, whatever it says: clients say 15 to 30 seconds.
MAX_SUSPENDED_SECONDS: Final = 3600.0

#: Bytes of one answer, whatever the settings say: half of the largest frame.
MAX_BYTES: Final = 8 << 20

#: Required fields that a pull without a subscription, that does not wait and commits
#: nothing, does well without.
NOT_NEEDED: Final = frozenset(("commitOffset", "suspendTimeoutMillis", "subVersion"))

_SIZES: Final = Struct(
    ">I"  # length of the frame, without these 4 bytes
    "I"  # serialization (JSON: 0), length of the header
)

#: The status of a pull whose group's offset was reset.
OFFSET_RESET: Final = "OFFSET_RESET"

_CODES: Final = {
    FOUND: ResponseCode.SUCCESS,
    MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    NO_MATCHED_LOGIC_QUEUE: ResponseCode.PULL_OFFSET_MOVED,
    NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


#: What a read finds that sends the reader elsewhere in the queue.
CORRECTIONS: Final = frozenset(
    (
        NO_MATCHED_LOGIC_QUEUE,
        NO_MESSAGE_IN_QUEUE,
        OFFSET_FOUND_NULL,
        OFFSET_OVERFLOW_BADLY,
        OFFSET_OVERFLOW_ONE,
        OFFSET_TOO_SMALL,
    )
)


@final
class Pull:
    """One pull on its way, and where its answer goes.

    @ivar opaque: of a request that came the hot way.
    @ivar done: takes the answer of one that came the general way.
    @ivar read_ms: how long the read of its messages took.
    @ivar waited: whether it has waited because its group read too much cold data.
    """

    __slots__ = (
        "connection",
        "done",
        "fields",
        "opaque",
        "queue",
        "read_ms",
        "route",
        "waited",
    )

    def __init__(
        self,
        connection: IConnection,
        fields: PullFields,
        route: Route,
        queue: IQueue,
        opaque: int,
        done: Deferred[Command | None] | None,
    ) -> None:
        self.connection = connection
        self.fields = fields
        self.route = route
        self.queue = queue
        self.opaque = opaque
        self.done = done
        self.read_ms = 0
        self.waited = False


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


def ordinary_messages(options: StoreOptions) -> int:
    """Up to how many messages a pull is an ordinary one, whose bytes the settings
    alone limit."""
    if options.rocketbroker_max_pull_messages:
        return options.max_transfer_count_on_message_in_memory
    return (1 << 31) - 1


def limits(fields: PullFields, ordinary: int) -> tuple[int, int]:
    """How many messages and bytes a pull asks for; the store may give less.

    @param ordinary: see L{ordinary_messages}.
    """
    most = fields.maxMsgNums
    if most <= ordinary:
        return (most if most > 0 else 1), MAX_BYTES
    return most, min(fields.maxMsgBytes or MAX_BYTES, MAX_BYTES)


def code_of(status: str, offset: int) -> int:
    """The response code for what a read at C{offset} found."""
    if status in (NO_MESSAGE_IN_QUEUE, NO_MATCHED_LOGIC_QUEUE) and offset == 0:
        return ResponseCode.PULL_NOT_FOUND
    return _CODES[status]


def keeps_offsets(options: StoreOptions) -> bool:
    """Whether readers are not sent elsewhere: on a slave, whose queues may lack what
    the master's have (C{docs/facts/ha.md} 12, C{store.md} trap 21)."""
    return options.is_slave and not options.offset_check_in_slave


def kept(result: ReadResult, offset: int) -> ReadResult:
    """What was found, for a reader that stays at C{offset} if there was nothing."""
    if result.status not in CORRECTIONS:
        return result
    status, first, end = result.status, result.min_offset, result.max_offset
    return ReadResult(status, offset, first, end, [], 0, 0)


def nothing(status: str, queue: IQueue, offset: int) -> ReadResult:
    """The result of a pull that gets no message and goes on at C{offset}."""
    return ReadResult(
        status, offset, queue.reported_min_offset, queue.max_offset, [], 0, 0
    )


def send_answer(
    connection: IConnection,
    opaque: int,
    code: int,
    result: ReadResult,
    broker_id: int,
    topic_flag: int,
    group_flag: int,
) -> None:
    """Answer a pull that came as JSON.

    @param opaque: the pull's.
    """
    header = PULL_ANSWER % (
        code,
        broker_id,
        result.next_offset,
        result.min_offset,
        result.max_offset,
        topic_flag,
        group_flag,
        opaque,
        result.status.encode(),
    )
    length = len(header)
    head = _SIZES.pack(length + 4 + result.size, length) + header
    connection.send_parts(head, result.records, result.size)
