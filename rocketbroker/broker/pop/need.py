# -*- test-case-name: tests.broker.pop.test_need -*-
"""The broker's need of POP: the request codes of POP, and its files in a store.

A master whose clients do not pop has nothing to revive, nothing in flight, and nobody
who waits. Its room of POP is made by the first request, or by the first message for its
revive log, which another broker may send. A broker of another role has it from the
start: its log is a master's, and its role may change.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.roles import Role
from rocketbroker.records.names import revive_topic
from rocketbroker.wire.codes import RequestCode

#: What both ports answer.
CODES: Final = (
    RequestCode.ACK_MESSAGE,
    RequestCode.BATCH_ACK_MESSAGE,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    RequestCode.POP_ROLLBACK,
)

#: What only the main port answers.
PULL_CODES: Final = (
    RequestCode.POP_MESSAGE,
    RequestCode.NOTIFICATION,
    RequestCode.POLLING_INFO,
    RequestCode.PEEK_MESSAGE,
)

#: The file of consumption in order.
ORDER_FILE: Final = "consumerOrderInfo.json"


def is_needed(context: BrokerContext, topics: TopicTable) -> bool:
    """Whether a broker has POP from its start; its store is open.

    @param topics: those of the broker.
    """
    options = context.settings.broker
    if context.services.role is not Role.MASTER:
        return True
    if options.pop_consumer_kv_service_enable or context.tables.is_there(ORDER_FILE):
        return True
    topic = revive_topic(options.broker_cluster_name)
    config = topics.config(topic)
    return config is not None and any(
        context.store.queue(topic, queue_id).next_offset
        for queue_id in range(max(config.read_queue_nums, options.revive_queue_num))
    )
