# -*- test-case-name: tests.broker.test_heartbeats -*-
"""Clients say that they are there, and what they want: requests 34, 35 and 46.

Rules: the broker sheet, sections 15.1 to 15.3.

A heartbeat of the second version may leave out its subscriptions because the broker
knows them. A broker that was started since does not, and says so by IS_SUB_CHANGE, upon
which the client sends them: the reference says nothing then and stays without them.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final, final

from rocketbroker.broker.bodies import decoded
from rocketbroker.broker.consumers import ConsumerRegistry
from rocketbroker.broker.filters import Filters, compile_for_pull
from rocketbroker.broker.groups import GroupTable
from rocketbroker.broker.producers import ProducerRegistry
from rocketbroker.broker.pull_checks import check_kind
from rocketbroker.broker.topics import READ, UNIT_SUBSCRIPTION, WRITE, TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import InvalidParameter
from rocketbroker.filtering import tags
from rocketbroker.records.names import retry_topic
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.client_headers import UnregisterClientRequestHeader
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.groups import SubscriptionGroupConfig
from rocketbroker.wire.heartbeats import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
)

ACTIVELY = "CONSUME_ACTIVELY"

#: The groups of consumers, and as many of producers, that one connection may be in:
#: each is kept as long as the connection, and takes a sixth of a millisecond of each
#: heartbeat, in which nobody else is served. A client has a handful.
MOST_GROUPS: Final = 1024


def check_groups(known: Set[str], named: set[str]) -> None:
    """Refuse more groups than one connection may be in.

    @param known: those that it is in.
    @param named: those that a heartbeat names.
    @raise InvalidParameter: together they are too many.
    """
    count = len(named | known)
    if count > MOST_GROUPS:
        raise InvalidParameter(
            f"a connection in {count} groups, the most is {MOST_GROUPS}"
        )


@final
class Heartbeats:
    """Fills the registries of consumers and producers.

    @ivar received: how many heartbeats came.
    """

    def __init__(
        self,
        options: BrokerOptions,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        producers: ProducerRegistry,
        filters: Filters,
    ) -> None:
        self.received = 0
        self._filters = filters
        self._options = options
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._producers = producers

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.HEART_BEAT, self.heart_beat)
        table.register(RequestCode.UNREGISTER_CLIENT, self.unregister)
        table.register(RequestCode.CHECK_CLIENT_CONFIG, self.check_client)

    def heart_beat(self, connection: IConnection, request: Command) -> Command:
        """Request 34: successful whatever becomes of its groups.

        @raise InvalidParameter: too many of them; then none is taken.
        """
        data = decoded(request, HeartbeatData.from_json)
        check_groups(
            self._consumers.groups_on(connection),
            {consumer.group_name for consumer in data.consumer_data_set},
        )
        check_groups(
            self._producers.groups_on(connection),
            {producer.group_name for producer in data.producer_data_set},
        )
        self.received += 1
        changed = False
        for consumer in data.consumer_data_set:
            changed |= self._consumer(connection, request, data, consumer)
        for producer in data.producer_data_set:
            self._producers.register(
                connection,
                data.client_id,
                request.language,
                request.version,
                producer.group_name,
            )
        if data.heartbeat_fingerprint == 0:
            changed = True
        ext = {
            "IS_SUPPORT_HEART_BEAT_V2": "true",
            "IS_SUB_CHANGE": "true" if changed else "false",
        }
        return response_to(request, ext=ext)

    def _consumer(
        self,
        connection: IConnection,
        request: Command,
        data: HeartbeatData,
        consumer: ConsumerData,
    ) -> bool:
        """One consumer of a heartbeat; whether the broker has to hear more of it."""
        options = self._options
        if options.reject_pull_consumer_enable and consumer.consume_type == ACTIVELY:
            return False
        config = self._groups.find(consumer.group_name)
        if config is None:
            return False
        self._retry_topic(config, consumer)
        fingerprint = data.heartbeat_fingerprint
        without = fingerprint != 0 and data.without_sub
        known = self._consumers.group(consumer.group_name)
        unheard = known is None or known.fingerprint is None
        group = self._consumers.register(
            connection,
            data.client_id,
            request.language,
            request.version,
            consumer,
            notify=config.notify_consumer_ids_changed_enable,
            with_subscriptions=not without,
        )
        if not without:
            self._filters.register(group.name, consumer.subscription_data_set)
        if without and unheard:
            return True
        before, group.fingerprint = group.fingerprint, fingerprint
        return before is not None and before != fingerprint

    def _retry_topic(
        self, config: SubscriptionGroupConfig, consumer: ConsumerData
    ) -> None:
        """What a group fails to consume goes to a topic of its own."""
        order = any(
            (topic := self._topics.config(subscription.topic)) is not None
            and topic.order
            for subscription in consumer.subscription_data_set
        )
        self._topics.ensure(
            retry_topic(consumer.group_name),
            config.retry_queue_nums,
            READ | WRITE,
            order,
            UNIT_SUBSCRIPTION if consumer.unit_mode else 0,
        )

    def unregister(self, connection: IConnection, request: Command) -> Command:
        """Request 35: always successful, known or not."""
        header = UnregisterClientRequestHeader.from_ext(request.ext)
        if header.producer_group:
            self._producers.unregister(connection, header.producer_group)
        if header.consumer_group:
            config = self._groups.config(header.consumer_group)
            notify = config is None or config.notify_consumer_ids_changed_enable
            self._consumers.unregister(connection, header.consumer_group, notify)
        return response_to(request)

    def check_client(self, connection: IConnection, request: Command) -> Command:
        """Request 46: whether a subscription could be served.

        @raise SystemFailure: filters that are not by tags are switched off.
        @raise SubscriptionParseFailed: it makes no sense; the remark says why.
        """
        checked = decoded(request, CheckClientRequestBody.from_json).subscription_data
        if not tags.is_tag_type(checked.expression_type):
            check_kind(self._options, checked.expression_type)
            compile_for_pull(checked.sub_string, checked.expression_type)
        return response_to(request)
