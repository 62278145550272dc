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


def administration(broker: Broker, environment: BrokerEnvironment) -> list[Part]:
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
            environment.in_thread,
            broker.registration.announced,
        ),
        GroupAdmin(broker.groups, broker.offsets, broker.consumers, broker.producers),
        SettingsRequests(settings, environment.wall_ms),
        RuntimeInfo(
            settings,
            store,
            broker.statistics,
            broker.group_commit,
            broker.pulling,
            environment.wall_ms,
            environment.in_thread,
            [broker.schedule.figures, broker.followers.figures],
        ),
        *about_consumers(broker, environment),
        MessageQueries(
            store,
            broker.topics,
            broker.scheduler.dispatch,
            environment.in_thread,
            settings.store.default_query_max_num,
        ),
    ]


def about_consumers(broker: Broker, environment: BrokerEnvironment) -> list[Part]:
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
            broker.scheduler.dispatch,
            environment.in_thread,
        ),
        ConsumeProgress(
            store,
            options.broker_name,
            broker.topics,
            broker.offsets,
            broker.consumers,
            broker.statistics.taken_tps,
            broker.scheduler.dispatch,
            environment.wall_ms,
            environment.in_thread,
        ),
        QueueAssignment(
            environment.clock.seconds,
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
            environment.in_thread,
        ),
    ]
