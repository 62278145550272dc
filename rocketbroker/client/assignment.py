# -*- test-case-name: tests.client.test_assignment -*-
"""Shares that brokers say: request 400 instead of a strategy of each member.

A broker also says how a member gets the messages of a topic: it pulls queues that are
its own, or it pops, from a broker as a whole or from queues that several members share.
Operators set that (request 401), while members are there. What was retried while the
group popped stands in topics of its own, which are read only while it pulls.
C{docs/facts/client.md} 17, 22.
"""

from __future__ import annotations

import logging
from typing import Final, final

from rocketbroker.client.handlings import Handlings
from rocketbroker.client.inbox import Inbox
from rocketbroker.client.instance import Instance
from rocketbroker.client.pop import PopPlace
from rocketbroker.client.pop_consumer import PopConsumer
from rocketbroker.client.rebalance import Rebalance
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.client.waits import together
from rocketbroker.errors import RequestCodeNotSupported, RocketbrokerError
from rocketbroker.records.names import is_retry_topic, pop_retry_topic
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.topic_view import MessageQueue

#: How messages of a queue are got that are popped.
POP: Final = "POP"

_log: Final = logging.getLogger("rocketbroker.client")


@final
class BrokerAssignment:
    """The shares of one consumer, as brokers say them."""

    def __init__(
        self,
        instance: Instance,
        settings: ConsumerSettings,
        inbox: Inbox,
        handlings: Handlings | None,
    ) -> None:
        """
        @param inbox: takes what is popped.
        @param handlings: are told of it.
        """
        self._instance = instance
        self._settings = settings
        self._inbox = inbox
        self._handlings = handlings
        self._own = Rebalance(instance, settings)
        self._popping: dict[str, PopConsumer] = {}
        self._places: dict[str, list[PopPlace]] = {}
        self._unsupported = False
        #: The topics of which all that is its own is pulled.
        self._pulled: set[str] = set()

    async def assigned(self, wanted: Subscription) -> list[MessageQueue] | None:
        """The queues of a topic to pull; None if that cannot be known now.

        What is to be popped is popped by L{pop}, when others have been given up.
        """
        topic = wanted.topic
        if self._unsupported:
            return await self._own.assigned(topic)
        if await self._own.queues(topic) is None:
            return None
        try:
            found = await self._instance.requests.assigned(
                topic,
                self._settings.group,
                self._instance.membership.client_id,
                str(self._settings.strategy),
            )
        except RequestCodeNotSupported:
            self._unsupported = True
            _log.info(
                "Brokers do not assign queues before RocketMQ 5; the members of %s "
                "share them",
                self._settings.group,
            )
            return await self._own.assigned(topic)
        except RocketbrokerError as problem:
            _log.debug("No assignment of %s: %s", topic, problem)
            return None
        if found is None:
            return None
        queues = [queue for queue, mode in found if mode != POP]
        places = [
            PopPlace(queue.broker, queue.queue_id)
            for queue, mode in found
            if mode == POP
        ]
        self._places[topic] = places
        if queues and not places and not is_retry_topic(topic):
            self._pulled.add(topic)
        elif places and not queues:
            self._pulled.discard(topic)
        return queues

    async def pop(self, wanted: Subscription) -> None:
        """Pop of a topic what is to be popped, and nothing else."""
        places = self._places.get(wanted.topic, [])
        part = self._popping.get(wanted.topic)
        if part is None:
            if not places:
                return
            part = PopConsumer(
                self._instance, self._settings, wanted, self._inbox, self._handlings
            )
            self._popping[wanted.topic] = part
        await part.assign(places)

    def retries(self) -> dict[str, Subscription]:
        """What is pulled beside the rest: what was retried while the group popped."""
        group = self._settings.group
        found = {pop_retry_topic(group, one, v2=False): one for one in self._pulled}
        return {topic: Subscription(topic, origin=found[topic]) for topic in found}

    def parts(self) -> list[PopConsumer]:
        """What pops now, for each topic."""
        popping = self._popping.items()
        return [part for topic, part in popping if self._places.get(topic)]

    def popped_by(self, message: StoredMessage) -> PopConsumer | None:
        """What has popped a message; None if it was pulled."""
        for part in self._popping.values():
            if part.has(message):
                return part
        return None

    async def stop(self) -> None:
        """Pop no more; what was popped may still be acknowledged."""
        parts = [part.assign([]) for part in self._popping.values()]
        await together(self._instance.runtime, parts)

    async def end(self) -> None:
        """Pop no more, and acknowledge no more."""
        parts = [part.end() for part in self._popping.values()]
        await together(self._instance.runtime, parts)
