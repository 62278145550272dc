# -*- test-case-name: tests.broker.pull.test_broadcast_offsets -*-
"""The offsets of the members of broadcasting groups.

Such a member keeps its offsets itself. One that is connected to a proxy of RocketMQ 5
cannot: the proxy pulls for it, and has no offset to begin at (it sends a negative one).
So the broker notes each pull of a broadcasting group, by client and queue. A pull of a
proxy without an offset goes on where its client was; and so does a client that has come
from a proxy to the broker, or goes the other way. A client that was not seen before
begins where the last of its group is.

Notes are in memory only, and are dropped when the client has gone, or the topic. The
least offset of a group's clients in each queue is kept in the table of offsets, as that
of a group of its own.

C{docs/facts/broker.md} 16.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.metadata.offsets import OffsetTable, broadcast_group
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import IQueue, IStore
from rocketbroker.wire.hot import PullFields

#: What a proxy says in C{requestSource} of a pull for a broadcasting client.
FROM_PROXY: Final = 1

#: Client ids of more characters are not noted, as they come from proxies; an ordinary
#: one is an address, a process number and a time.
MAX_CLIENT_ID: Final = 255


@final
class ClientOffsets:
    """Where one client is in one topic.

    @ivar offsets: by queue; they never go back.
    @ivar from_proxy: whether its last pull came through a proxy.
    @ivar seen: the monotonic time of that, in seconds.
    """

    __slots__ = ("from_proxy", "offsets", "seen")

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.from_proxy = False
        self.seen = 0.0


@final
class BroadcastOffsets:
    """Notes the pulls of broadcasting groups.

    @ivar groups: the groups whose pulls it wants to see, beside those of proxies.
    @ivar refused: how many pulls were not noted because there were too many clients.
    """

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        topics: TopicTable,
        consumers: ConsumerRegistry,
        offsets: OffsetTable,
        options: BrokerOptions,
        seconds: Callable[[], float],
    ) -> None:
        """
        @param seconds: the monotonic time.
        """
        self.refused = 0
        self._store = store
        self._topics = topics
        self._consumers = consumers
        self._offsets = offsets
        self._seconds = seconds
        self._take(options)
        self._places: dict[tuple[str, str], dict[str, ClientOffsets]] = {}
        self._count = 0
        offsets.watch(self)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._take(settings.broker)

    def _take(self, options: BrokerOptions) -> None:
        self._enabled = options.enable_broadcast_offset_store
        known = self._consumers.broadcasting
        self.groups = known if self._enabled else frozenset[str]()
        self._offline_seconds = options.broadcast_offset_expire_second
        self._online_seconds = options.broadcast_offset_expire_max_second
        self._most = options.rocketbroker_max_broadcast_clients

    def _client(
        self, connection: IConnection, fields: PullFields
    ) -> tuple[str, bool] | None:
        """Whom a pull is for, and whether it came from a proxy; None: not noted."""
        if not self._enabled:
            return None
        if fields.requestSource == FROM_PROXY:
            name = fields.proxyFrowardClientId
            return None if name is None else (name, True)
        if fields.consumerGroup not in self.groups:
            return None
        group = self._consumers.group(fields.consumerGroup)
        member = None if group is None else group.members.get(connection)
        return None if member is None else (member.client_id, False)

    def initial(
        self, connection: IConnection, fields: PullFields, queue: IQueue
    ) -> int | None:
        """Where a pull is to go on instead of at its own offset; None: there."""
        client = self._client(connection, fields)
        if client is None:
            return None
        name, from_proxy = client
        offset = fields.queueOffset
        assert type(offset) is int
        begins = from_proxy and offset < 0
        places = self._places.get((fields.topic, fields.consumerGroup))
        place = None if places is None else places.get(name)
        moved = place is not None and place.from_proxy != from_proxy
        if not begins and not moved:
            return None
        found = None if place is None else place.offsets.get(queue.queue_id)
        return self._beginning(fields, queue) if found is None else found

    def _beginning(self, fields: PullFields, queue: IQueue) -> int:
        """Where a client begins that was not seen before."""
        group = broadcast_group(fields.consumerGroup)
        found = self._offsets.query(group, fields.topic, queue.queue_id)
        if found >= 0:
            return found
        end = queue.max_offset
        if end and not queue.min_offset and not self._store.is_cold(queue, 0):
            return 0
        return end

    def pulled(self, connection: IConnection, fields: PullFields, offset: int) -> None:
        """A client has pulled.

        @param offset: where it is: from where it has pulled, or where it was sent.
        """
        client = self._client(connection, fields)
        if client is None:
            return
        name, from_proxy = client
        key = fields.topic, fields.consumerGroup
        place = self._places.get(key, {}).get(name)
        if place is None:
            if self._count >= self._most or len(name) > MAX_CLIENT_ID:
                self._refuse()
                return
            place = self._places.setdefault(key, {})[name] = ClientOffsets()
            self._count += 1
        place.from_proxy = from_proxy
        place.seen = self._seconds()
        known = place.offsets.get(fields.queueId)
        if known is None or known < offset:
            place.offsets[fields.queueId] = offset

    def offset_reset(self, group: str, topic: str, queue_id: int) -> None:
        """Nothing to do: a member that is told so pulls from there."""

    def offsets_forgotten(self, is_gone: Callable[[str, str], bool]) -> None:
        """Groups or topics are gone: what comes under their names begins anew."""
        for topic, group in [*self._places]:
            if is_gone(group, topic):
                self._count -= len(self._places.pop((topic, group)))

    def _refuse(self) -> None:
        if not self.refused:
            self._log.warn(
                "There are more broadcasting clients than "
                "rocketbrokerMaxBroadcastClients allows, {most}, or one has an id of "
                "more than {characters} characters: their offsets are not kept.",
                most=self._most,
                characters=MAX_CLIENT_ID,
            )
        self.refused += 1

    def look(self) -> None:
        """Commit how far each group is, and forget clients that have gone."""
        now = self._seconds()
        for (topic, name), places in list(self._places.items()):
            group = self._consumers.group(name)
            online = frozenset(() if group is None else group.client_ids())
            least: dict[int, int] = {}
            gone = self._topics.config(topic) is None
            for client_id, place in list(places.items()):
                silent = now - place.seen
                here = client_id in online
                if here or silent < self._offline_seconds:
                    for queue_id, offset in place.offsets.items():
                        least[queue_id] = min(offset, least.get(queue_id, offset))
                most = self._online_seconds if here else self._offline_seconds
                if gone or silent >= most:
                    del places[client_id]
                    self._count -= 1
            if not places:
                del self._places[topic, name]
            if not gone:
                self._commit(topic, broadcast_group(name), least)

    def _commit(self, topic: str, group: str, offsets: dict[int, int]) -> None:
        """What has not changed is not committed again: the file would be written."""
        for queue_id, offset in offsets.items():
            if self._offsets.query(group, topic, queue_id) != offset:
                self._offsets.commit(group, topic, queue_id, offset)
