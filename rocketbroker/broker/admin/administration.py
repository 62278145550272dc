# -*- test-case-name: tests.broker.test_broker -*-
"""What answers operators and their tools, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketbroker.broker.admin.client_relay import ClientRelay
from rocketbroker.broker.admin.clone_offsets import CloneOffsets
from rocketbroker.broker.admin.consume_progress import ConsumeProgress
from rocketbroker.broker.admin.group_admin import GroupAdmin
from rocketbroker.broker.admin.message_queries import MessageQueries
from rocketbroker.broker.admin.reset_offset import ResetOffset
from rocketbroker.broker.admin.runtime_info import RuntimeInfo
from rocketbroker.broker.admin.settings_requests import SettingsRequests
from rocketbroker.broker.admin.topic_admin import TopicAdmin
from rocketbroker.broker.clients.queue_assignment import QueueAssignment
from rocketbroker.broker.environment import BrokerEnvironment, Part

if TYPE_CHECKING:
    from rocketbroker.broker.broker import Broker


def administration(broker: Broker, outside: BrokerEnvironment) -> list[Part]:
    """The parts that look into the others, and change their tables, on request."""
    settings, store = broker.settings, broker.store
    options = settings.broker
    return [
        TopicAdmin(
            store,
            options,
            broker.topics,
            broker.offsets,
            broker.statistics.put_tps,
            outside.in_thread,
            broker.registration.announced,
        ),
        GroupAdmin(broker.groups, broker.offsets, broker.consumers, broker.producers),
        SettingsRequests(settings, outside.wall_ms),
        RuntimeInfo(
            settings,
            store,
            broker.statistics,
            broker.durability,
            broker.pulling,
            outside.wall_ms,
            outside.in_thread,
            [broker.delaying.figures, broker.followers.figures],
        ),
        *about_consumers(broker, outside),
        MessageQueries(
            store,
            broker.topics,
            broker.upkeep.dispatch,
            outside.in_thread,
            settings.store.default_query_max_num,
        ),
    ]


def about_consumers(broker: Broker, outside: BrokerEnvironment) -> list[Part]:
    """Those about consumers: how far they are, where they go on, what they consume."""
    settings, store = broker.settings, broker.store
    options = settings.broker
    return [
        ResetOffset(
            store,
            options,
            broker.topics,
            broker.groups,
            broker.offsets,
            broker.consumers,
            broker.pulling,
            broker.upkeep.dispatch,
            outside.in_thread,
        ),
        ConsumeProgress(
            store,
            options.broker_name,
            broker.topics,
            broker.offsets,
            broker.consumers,
            broker.statistics.taken_tps,
            broker.upkeep.dispatch,
            outside.wall_ms,
            outside.in_thread,
        ),
        QueueAssignment(
            outside.clock.seconds,
            options,
            broker.topics,
            broker.groups,
            broker.consumers,
            broker.request_modes,
            settings.name_servers,
            broker.name_server_calls.route,
        ),
        CloneOffsets(
            store, broker.topics, broker.groups, broker.offsets, broker.consumers
        ),
        ClientRelay(
            store,
            options.broker_name,
            broker.topics,
            broker.groups,
            broker.consumers,
            outside.in_thread,
        ),
    ]
