# -*- test-case-name: tests.broker.test_broker -*-
"""The parts that answer administrators and their tools, put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rocketbroker.broker.admin.broker_config import BrokerConfig
from rocketbroker.broker.admin.client_relay import ClientRelay
from rocketbroker.broker.admin.clone_offsets import CloneOffsets
from rocketbroker.broker.admin.consume_progress import ConsumeProgress
from rocketbroker.broker.admin.group_admin import GroupAdmin
from rocketbroker.broker.admin.message_queries import MessageQueries
from rocketbroker.broker.admin.queue_admin import QueueAdmin
from rocketbroker.broker.admin.reset_offset import ResetOffset
from rocketbroker.broker.admin.runtime_info import RuntimeInfo
from rocketbroker.broker.admin.stats_views import StatsViews
from rocketbroker.broker.admin.topic_admin import TopicAdmin
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.parts import Parts
from rocketbroker.broker.room import Responder
from rocketbroker.broker.waiting_requests import WaitingRequests
from rocketbroker.files.own_version import own_version
from rocketbroker.files.settings_file import SettingsFile
from rocketbroker.wire.codes import RequestCode

#: A key that RocketMQ's brokers do not have; brokerVersionDesc is whom we are like.
OWN_VERSION: Final = "rocketbrokerVersion"


def runtime_info(
    parts: Parts,
    context: BrokerContext,
    problems: Callable[[], Mapping[str, str]],
) -> RuntimeInfo:
    """The figures of a broker.

    @param problems: what an operator has to mend, as a figure.
    """
    return RuntimeInfo(
        parts.running,
        parts.store,
        parts.statistics,
        parts.group_commit,
        parts.pulling,
        context.wall_ms,
        administrators(context).before_threads(context.in_thread),
        context.waiting.family(RequestCode.END_TRANSACTION).size,
        [
            parts.schedule.figures,
            parts.timers.figures,
            parts.log_subscribers.figures,
            problems,
            lambda: {OWN_VERSION: own_version()},
        ],
    )


def administrators(context: BrokerContext) -> WaitingRequests:
    """The requests of administrators that wait."""
    return context.waiting.family(RequestCode.GET_BROKER_RUNTIME_INFO)


def administration(parts: Parts, context: BrokerContext) -> list[Responder]:
    """The parts that show and change the others on request."""
    settings, store, running = parts.settings, parts.store, parts.running
    in_thread = administrators(context).before_threads(context.in_thread)
    slices = administrators(context).before_slices(context.slices)
    topic_admin = TopicAdmin(
        store,
        settings.broker,
        parts.topics,
        parts.mappings,
        parts.offsets,
        parts.keyed_stats.put_tps,
        parts.timers.counts.forget,
        parts.batcher.flush,
        slices,
        context.long_requests,
        context.in_thread,
        parts.registration.announced,
        parts.creation_times,
    )
    queries = MessageQueries(
        store,
        parts.topics,
        parts.scheduler.dispatch,
        context.in_thread,
        in_thread,
        settings.store.default_query_max_num,
    )
    group_admin = GroupAdmin(
        settings.broker,
        parts.groups,
        parts.offsets,
        parts.consumers,
        parts.producers,
        slices,
        context.long_requests,
        context.address,
        context.clock.seconds,
        context.wall_ms,
        parts.creation_times,
    )
    for part in (topic_admin, queries, group_admin):
        running.subscribe(part.configure)
    return [
        topic_admin,
        queries,
        group_admin,
        BrokerConfig(
            running,
            SettingsFile(context.files, settings.changes_path()),
            parts.registration.announced,
            context.in_thread,
        ),
        StatsViews(parts.keyed_stats),
        *about_consumers(parts, context),
        QueueAdmin(
            store,
            parts.topics,
            parts.consumers,
            parts.filters,
            parts.scheduler.dispatch,
            in_thread,
        ),
    ]


def about_consumers(parts: Parts, context: BrokerContext) -> list[Responder]:
    """The parts about consumers: their progress, their offsets, their state."""
    settings, store = parts.settings, parts.store
    options = settings.broker
    in_thread = administrators(context).before_threads(context.in_thread)
    reset_offset = ResetOffset(
        store,
        options,
        parts.topics,
        parts.groups,
        parts.offsets,
        parts.consumers,
        parts.pulling,
        parts.scheduler.dispatch,
        administrators(context).before_slices(context.slices),
        in_thread,
    )
    parts.running.subscribe(reset_offset.configure)
    return [
        reset_offset,
        ConsumeProgress(
            store,
            options.broker_name,
            context.address,
            parts.topics,
            parts.mappings,
            parts.groups,
            parts.offsets,
            parts.consumers,
            parts.keyed_stats.taken_tps,
            parts.scheduler.dispatch,
            context.wall_ms,
            administrators(context).before_slices(context.slices),
            in_thread,
        ),
        CloneOffsets(
            store,
            parts.topics,
            parts.groups,
            parts.offsets,
            parts.consumers,
            administrators(context).before_slices(context.slices),
        ),
        ClientRelay(
            store,
            options.broker_name,
            parts.topics,
            parts.groups,
            parts.consumers,
            in_thread,
        ),
    ]
