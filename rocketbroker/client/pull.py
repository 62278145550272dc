# -*- test-case-name: tests.client.test_consumer -*-
"""One pull: the request, and what its answer says. C{docs/facts/client.md} 19."""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.errors import error_of_response
from rocketbroker.records import sysflags
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.answers import number
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

#: Bit of the system flag: the request carries an offset to commit.
COMMIT: Final = 1

#: Bit of the system flag: no member of a group that is given messages asks.
LITE_PULL: Final = 16

#: What the answer may take beyond the time that the broker may wait.
SLACK_SECONDS: Final = 15.0

FOUND: Final = ResponseCode.SUCCESS
MOVED: Final = ResponseCode.PULL_OFFSET_MOVED

_CODES: Final = frozenset(
    {
        FOUND,
        MOVED,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
    }
)


class Pulled(NamedTuple):
    """What a pull brought.

    @ivar code: L{FOUND}, L{MOVED}: the offset does not exist; anything else: nothing.
    @ivar next_offset: where to go on.
    @ivar broker_id: which broker of that name to ask the next time.
    @ivar data: the records.
    @ivar delta: what is added to their offsets: of a logical queue the records have
        those of the physical one.
    """

    code: int
    next_offset: int
    broker_id: int
    data: bytes
    delta: int = 0


def pull_request(
    queue: MessageQueue,
    offset: int,
    commit_offset: int | None,
    subscription: Subscription,
    version: int,
    settings: ConsumerSettings,
) -> Command:
    """The request.

    The broker knows the subscription by heartbeats; one that does not, because it has
    just started, refuses with L{SubscriptionNotExist}, and wants a heartbeat first.

    @param commit_offset: to be committed by the way, None for none.
    @param version: of the subscription.
    """
    sys_flag = sysflags.PULL_SUSPEND
    if commit_offset is not None and commit_offset > 0:
        sys_flag |= COMMIT
    ext = {
        "consumerGroup": settings.group,
        "topic": queue.topic,
        "queueId": str(queue.queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": str(settings.pull_batch),
        "sysFlag": str(sys_flag),
        "commitOffset": str(commit_offset if commit_offset is not None else 0),
        "suspendTimeoutMillis": str(int(settings.hold_seconds * 1000)),
        "subVersion": str(version),
        "expressionType": subscription.kind,
        "maxMsgBytes": str(settings.pull_bytes),
        "bname": queue.broker,
    }
    return Command(RequestCode.PULL_MESSAGE, ext)


def lite_pull_request(
    queue: MessageQueue,
    offset: int,
    subscription: Subscription,
    settings: ConsumerSettings,
) -> Command:
    """The request of a consumer that asks by itself.

    It carries its subscription, as no heartbeat has one for queues that were assigned
    by hand. Java's clients of RocketMQ 5 send code 361; brokers of 4.9 know only this.
    """
    command = pull_request(queue, offset, None, subscription, 0, settings)
    flags = sysflags.PULL_SUSPEND | sysflags.PULL_SUBSCRIPTION | LITE_PULL
    assert command.ext is not None
    command.ext |= {"sysFlag": str(flags), "subscription": subscription.expression}
    return command


def pulled(answer: Command) -> Pulled:
    """What the answer says.

    @raise BrokerError: the broker refused.
    @raise RemoteProtocolError: it is no such answer.
    """
    if answer.code not in _CODES:
        raise error_of_response(answer.code, answer.remark)
    return Pulled(
        answer.code,
        number(answer, "nextBeginOffset"),
        number(answer, "suggestWhichBrokerId"),
        answer.body,
        number(answer, "offsetDelta") if "offsetDelta" in (answer.ext or {}) else 0,
    )
