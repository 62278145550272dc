# -*- test-case-name: tests.broker.metadata -*-
"""The room of what is kept beside the messages: topics, groups, offsets."""

from __future__ import annotations

from typing import final

from twisted.internet.defer import Deferred, gatherResults

from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.message_request_mode import MessageRequestModes
from rocketbroker.broker.metadata.offset_files import LIGHT_FILE, PLAIN_FILE
from rocketbroker.broker.metadata.offsets import OffsetTable
from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.room import Room
from rocketbroker.config.broker_settings import BrokerSettings


@final
class MetadataRoom(Room):
    """The tables of a broker.

    @ivar topics: the topics.
    @ivar mappings: static topics, whose queues move between brokers.
    @ivar groups: the consumer groups.
    @ivar offsets: how far each group is.
    @ivar request_modes: which groups pull, and which pop.
    """

    def __init__(self, context: BrokerContext) -> None:
        options, store = context.settings.broker, context.settings.store
        file, wall_ms, light = context.tables.file, context.wall_ms, store.enable_lmq
        timer = store.timer_wheel_enable
        self.topics = TopicTable(options, file("topics.json"), wall_ms, timer, light)
        groups = file("subscriptionGroup.json")
        self.groups = GroupTable(options, groups, wall_ms, light)
        plain, lmq = file(PLAIN_FILE), file(LIGHT_FILE)
        offsets = (lmq, plain) if light else (plain, lmq)
        self.offsets = OffsetTable(options, *offsets, context.slices, wall_ms)
        modes = file("messageRequestMode.json")
        self.request_modes = MessageRequestModes(options, modes)
        mappings = file("topicQueueMapping.json")
        self.mappings = QueueMappings(options.broker_name, mappings, wall_ms)

    def is_static(self, topic: str) -> bool:
        """Whether a topic is static: its queues move between brokers."""
        return topic in self.mappings.details

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.topics.configure(settings)
        self.groups.configure(settings)
        self.offsets.configure(settings)
        self.request_modes.configure(settings)

    def load(self) -> None:
        """I{Blocking.} Read the tables."""
        self.topics.load()
        self.mappings.load()
        self.groups.load()
        self.offsets.load()
        self.request_modes.load()

    def save(self) -> Deferred[None]:
        """Write the tables that changed; fires when that is done."""
        tables = self.topics, self.mappings, self.groups, self.offsets
        for table in (*tables, self.request_modes):
            table.save()
        written = [table.saved() for table in (*tables, self.request_modes)]
        return gatherResults(written).addCallback(lambda _: None)

    def problems(self) -> list[str]:
        """Sentences about tables that are full."""
        found = (
            self.topics.limit.problem(len(self.topics)),
            self.groups.limit.problem(len(self.groups)),
        )
        return [sentence for sentence in found if sentence]
