# -*- test-case-name: tests.broker.pop.test_pop -*-
"""The state that the parts of POP share: the messages that were popped."""

from __future__ import annotations

from typing import final

import attrs

from rocketbroker.broker.pop.check_point_buffer import CheckPointBuffer
from rocketbroker.broker.pop.order_info import OrderInfo
from rocketbroker.broker.pop.progress import PopProgress
from rocketbroker.broker.pop.retry_topics import RetryTopics
from rocketbroker.broker.pop.revive_log import ReviveLog


@final
@attrs.frozen(eq=False)
class PopState:
    """One object of each kind, for all parts.

    @ivar retry_topics: where messages go that are given out again.
    @ivar progress: how far groups are, and what they have in flight.
    @ivar order: what groups have that consume in order.
    @ivar log: writes check points and acknowledgements.
    @ivar buffer: check points in memory.
    """

    retry_topics: RetryTopics
    progress: PopProgress
    order: OrderInfo
    log: ReviveLog
    buffer: CheckPointBuffer
