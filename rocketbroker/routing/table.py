# -*- test-case-name: tests.routing.test_table -*-
"""The name server's tables: the routes of topics, and the live brokers.

There is no clock, lock or connection here: the time is an argument, callers take turns,
and a channel is whatever the caller knows a connection by. C{docs/facts/namesrv.md} 4
to 7, with the quirks that brokers or operators can see:

  - The cluster's set of names and an empty group stay behind when a registration is
    refused.
  - A registration that contradicts a newer one is answered with success, and nothing
    but the state version decides which is newer.
  - A first registration with exactly one topic is refused: it is the increment of a
    broker that we do not know.
  - Topics come from masters, and from the least id of a group without master whose
    sender is new enough to say whether a slave may act as master.
  - A topic that a broker no longer has stays in its route.
  - A permission that was wiped stays wiped until the broker's data version changes.

What looks at each topic is a generator, so that a caller can do it in slices and serve
routes between them. The caller lets only one such work change the table at a time. A
route between two slices has each topic as it was before, or as it is after: a group's
addresses change first, for all topics at once, then queues and mapping of each topic in
one step; queues of a group that is gone are not shown
(L{rocketbroker.routing.lookup}), and a group that has lost its master is shown without
the permission to write before each of its topics has lost it.

Three oddities are not copied, because no client can depend on them: a live entry whose
broker is in no group any more is dropped when it expires, instead of being found again
for ever; an unregistration without broker id removes the address like any other,
instead of losing all those that were applied together with it; and nothing that a body
contains can leave a registration half done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar, final

import attrs

from rocketbroker.errors import SystemFailure
from rocketbroker.routing.registration import (
    BROKER_EXPIRES_MS,
    MASTER,
    BrokerKey,
    Group,
    LiveBroker,
    MinBrokerChange,
    Registered,
    RegisteredTopic,
    Registration,
    Unregistration,
)
from rocketbroker.wire.bodies.mappings import TopicQueueMappingInfo
from rocketbroker.wire.bodies.routes import QueueData
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.steps import Steps

T = TypeVar("T")

#: How many topics a step looks at.
STEP_TOPICS: Final = 64

#: The most broker names, and the most brokers of one name: a hundred times what the
#: largest clusters have. What is asked of the whole table takes 20 ms in one step then.
MAX_GROUPS: Final = 10_000
MAX_MEMBERS: Final = 100

#: Permission bits.
READ: Final = 4
WRITE: Final = 2


@final
class RouteTable:
    """The registrations of all brokers.

    @ivar topics: by topic, then by broker name.
    @ivar groups: by broker name.
    @ivar clusters: by cluster, the broker names, in the order in which they came.
    @ivar live: by cluster and address.
    @ivar filter_servers: by cluster and address.
    @ivar mappings: by topic, then by broker name.
    """

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, QueueData]] = {}
        self.groups: dict[str, Group] = {}
        self.clusters: dict[str, dict[str, None]] = {}
        self.live: dict[BrokerKey, LiveBroker] = {}
        self.filter_servers: dict[BrokerKey, Sequence[str]] = {}
        self.mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}

    # Registration: section 5; the numbers are its steps.

    def registering(
        self, new: Registration, now_ms: int, drop_missing: bool = False
    ) -> Steps[Registered | None]:
        """Register a broker and its topics.

        @param now_ms: the wall clock.
        @param drop_missing: whether topics that it does not name are gone (setting
            deleteTopicWithBrokerRegistration).
        @return: None if it is refused.
        @raise SystemFailure: there are too many brokers.
        """
        group = self.groups.get(new.name)
        if group is None and len(self.groups) >= MAX_GROUPS:
            raise SystemFailure(
                f"The name server knows {MAX_GROUPS} broker names, which is the most."
            )
        members = {} if group is None else group.addresses
        if len(members) >= MAX_MEMBERS and new.broker_id not in members:
            raise SystemFailure(
                f"The broker name {new.name} has {MAX_MEMBERS} brokers, which is the "
                "most."
            )
        self.clusters.setdefault(new.cluster, {})[new.name] = None  # 1
        first = group is None
        if group is None:  # 2
            group = self.groups[new.name] = Group(cluster=new.cluster, name=new.name)
        group.acting_master = bool(new.acting_master)  # 3
        group.zone = new.zone
        addresses = group.addresses
        least_changed = new.broker_id < min(addresses, default=0)  # 4
        for number in [n for n, a in addresses.items() if a == new.address]:  # 5
            if number != new.broker_id:
                del addresses[number]
        previous = addresses.get(new.broker_id)
        rival = None
        if previous is not None and previous != new.address:  # 6
            other = self.live.get((new.cluster, previous))
            if other or (group.cluster, previous) in self.live:
                rival = previous
            if other and other.data_version.state_version > (
                new.data_version.state_version
            ):
                self.live.pop((new.cluster, new.address), None)
                return Registered(rival=rival)
        if previous is None and len(new.topics) == 1:  # 7
            return None
        addresses[new.broker_id] = new.address  # 8
        new_here = first or not previous
        yield from self._take_topics(new, group, new_here, drop_missing)  # 9, 10
        self._take_liveness(new, now_ms)  # 11, 12
        return self._registered(new, group, least_changed, rival)  # 13, 14

    def _take_topics(
        self, new: Registration, group: Group, first: bool, drop_missing: bool
    ) -> Steps[None]:
        """Steps 9 and 10: enter the topics, if this broker speaks for its group."""
        prime_slave = (
            new.acting_master is not None
            and new.broker_id != MASTER
            and new.broker_id == min(group.addresses)
        )
        if new.broker_id != MASTER and not prime_slave:
            return
        if drop_missing and not new.mappings:
            yield from self._drop_missing(new.name, new.topics)
        changed = self._version_differs(new.cluster, new.address, new.data_version)
        mask = ~WRITE if prime_slave and group.acting_master else ~0
        for some in few_at_a_time(new.topics.items()):
            for topic, config in some:
                there = self.topics.get(topic)
                if first or changed or there is None or new.name not in there:
                    self.topics.setdefault(topic, {})[new.name] = QueueData(
                        broker_name=new.name,
                        read_queue_nums=config.read_queue_nums,
                        write_queue_nums=config.write_queue_nums,
                        perm=config.perm & mask,
                        topic_sys_flag=config.topic_sys_flag,
                    )
                if first or changed:
                    self._take_mapping(topic, new.mappings.get(topic))
            yield
        if first or changed:
            for infos in few_at_a_time(new.mappings.items()):
                for topic, info in infos:
                    self._take_mapping(topic, info)
                yield

    def _take_mapping(self, topic: str, info: TopicQueueMappingInfo | None) -> None:
        """A broker has a share of a static topic."""
        if info is not None and info.bname is not None:
            self.mappings.setdefault(topic, {})[info.bname] = info

    def _drop_missing(
        self, name: str, registered: Mapping[str, RegisteredTopic]
    ) -> Steps[None]:
        """Remove a group from all topics that it did not register."""
        for some in few_at_a_time(list(self.topics)):
            for topic in some:
                if topic not in registered:
                    self._drop_queue(topic, name)
            yield

    def _drop_queue(self, topic: str, name: str) -> None:
        """A group has a topic no longer, if it ever had it."""
        there = self.topics.get(topic, {})
        if there.pop(name, None) is not None and not there:
            del self.topics[topic]

    def _take_liveness(self, new: Registration, now_ms: int) -> None:
        """Steps 11 and 12."""
        key = (new.cluster, new.address)
        timeout = new.timeout_ms
        self.live[key] = LiveBroker(
            updated_ms=now_ms,
            timeout_ms=BROKER_EXPIRES_MS if timeout is None else timeout,
            data_version=new.data_version,
            channel=new.channel,
            ha_address=new.ha_address,
        )
        if new.filter_servers:
            self.filter_servers[key] = tuple(new.filter_servers)
        elif new.filter_servers is not None:
            self.filter_servers.pop(key, None)

    def _registered(
        self, new: Registration, group: Group, least_changed: bool, rival: str | None
    ) -> Registered:
        """Steps 13 and 14: the answer to the broker, and whom else to notify."""
        master = master_ha = None
        if new.broker_id != MASTER and (address := group.addresses.get(MASTER)):
            live = self.live.get((new.cluster, address))
            if live is not None:
                master, master_ha = address, live.ha_address
        change = None
        if least_changed:
            change = self._change(group, None, new.ha_address)
        return Registered(
            rival=rival,
            master_address=master,
            ha_address=master_ha,
            change=change,
        )

    @staticmethod
    def _change(
        group: Group, offline: str | None, ha_address: str | None
    ) -> MinBrokerChange:
        """The notification that the minimum id has changed."""
        least = min(group.addresses)
        everyone = offline is not None or len(group.addresses) == 1
        return MinBrokerChange(
            name=group.name,
            broker_id=least,
            address=group.addresses[least],
            offline_address=offline,
            ha_address=ha_address,
            recipients=tuple(
                address
                for number, address in group.addresses.items()
                if everyone or number != least
            ),
        )

    # Unregistration: section 6.

    def unregistering(
        self, leaving: Iterable[Unregistration]
    ) -> Steps[list[MinBrokerChange]]:
        """Brokers go.

        @return: whom to tell, for each group whose least id has left and in which a
            slave may act as master.
        """
        removed: set[str] = set()
        reduced: set[str] = set()
        changes: dict[str, str] = {}
        for one in leaving:
            self.live.pop((one.cluster, one.address), None)
            self.filter_servers.pop((one.cluster, one.address), None)
            group = self.groups.get(one.name)
            if group is None:
                continue
            addresses = group.addresses
            if addresses and one.broker_id == min(addresses):
                changes[one.name] = one.address
            for number in [n for n, a in addresses.items() if a == one.address]:
                del addresses[number]
            if addresses:
                reduced.add(one.name)
            else:
                self._remove_group(one.cluster, one.name)
                removed.add(one.name)
            yield
        yield from self._drop_queues(removed, reduced - removed)
        return [
            self._change(group, address, None)
            for name, address in changes.items()
            if (group := self.groups.get(name)) is not None and group.acting_master
        ]

    def _remove_group(self, cluster: str, name: str) -> None:
        """The last of a name has left."""
        del self.groups[name]
        names = self.clusters.get(cluster)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self.clusters[cluster]

    def _drop_queues(self, removed: set[str], reduced: set[str]) -> Steps[None]:
        """Forget the queues of removed groups; those without master are read-only."""
        masterless = {
            name
            for name in reduced
            if self.groups[name].acting_master
            and MASTER not in self.groups[name].addresses
        }
        if not removed and not masterless:
            return
        for name in masterless:
            self.groups[name].is_losing_write = True
        for some in few_at_a_time(list(self.topics)):
            for topic in some:
                there = self.topics.get(topic, {})
                for name in masterless & there.keys():
                    queues = there[name]
                    there[name] = attrs.evolve(queues, perm=queues.perm & ~WRITE)
                for name in removed & there.keys():
                    self._drop_queue(topic, name)
            yield
        for name in masterless:
            self.groups[name].is_losing_write = False

    # Liveness: section 7.

    def heard(self, cluster: str, address: str, now_ms: int) -> None:
        """A broker spoke; one that is not known stays unknown."""
        live = self.live.get((cluster, address))
        if live is not None:
            live.updated_ms = now_ms

    def expired(self, now_ms: int) -> list[tuple[BrokerKey, object]]:
        """The brokers that were silent for too long, each with its channel."""
        return [
            (key, live.channel)
            for key, live in self.live.items()
            if live.updated_ms + live.timeout_ms < now_ms
        ]

    def is_silent(self, key: BrokerKey, now_ms: int) -> bool:
        """Whether a broker was silent for too long."""
        live = self.live.get(key)
        return live is not None and live.updated_ms + live.timeout_ms < now_ms

    def of_channel(self, channel: object) -> BrokerKey | None:
        """The first live broker whose last registration came by C{channel}.

        Only the first, as in RocketMQ: of several brokers in one process that lost
        their common connection the others stay until they come back or expire.
        """
        for key, live in self.live.items():
            if live.channel is channel:
                return key
        return None

    def unregistrations(self, keys: Iterable[BrokerKey]) -> list[Unregistration]:
        """The unregistrations of brokers that did not send one.

        Those that are in no group are forgotten here and now.
        """
        found: dict[BrokerKey, Unregistration | None] = dict.fromkeys(keys)
        if not found:
            return []
        for group in self.groups.values():
            for number, address in group.addresses.items():
                key = (group.cluster, address)
                if key in found and found[key] is None:
                    found[key] = Unregistration(
                        cluster=group.cluster,
                        name=group.name,
                        address=address,
                        broker_id=number,
                    )
        for key, leaving in found.items():
            if leaving is None:
                self.live.pop(key, None)
                self.filter_servers.pop(key, None)
        return [leaving for leaving in found.values() if leaving is not None]

    def data_version(self, cluster: str, address: str) -> DataVersion | None:
        """The data version that a broker registered last, None if it is not known."""
        live = self.live.get((cluster, address))
        return None if live is None else live.data_version

    def _version_differs(self, cluster: str, address: str, new: DataVersion) -> bool:
        known = self.data_version(cluster, address)
        return known != new

    # Requests of operators: C{docs/facts/namesrv.md} 10.2 and 10.3.

    def wiping_write(self, name: str) -> Steps[int]:
        """Take the permission to write from all topics of a group; how many."""
        return self._permitting(name, lambda perm: perm & ~WRITE)

    def adding_write(self, name: str) -> Steps[int]:
        """Allow a group's topics to be read and written, and nothing else; how many."""
        return self._permitting(name, lambda perm: READ | WRITE)

    def _permitting(self, name: str, change: Callable[[int], int]) -> Steps[int]:
        count = 0
        for some in few_at_a_time(list(self.topics)):
            for topic in some:
                queues = self.topics.get(topic, {}).get(name)
                if queues is not None:
                    perm = change(queues.perm)
                    self.topics[topic][name] = attrs.evolve(queues, perm=perm)
                    count += 1
            yield
        return count

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic, or its routes in one cluster."""
        if cluster is None:
            self.topics.pop(topic, None)
            return
        there = self.topics.get(topic)
        names = self.clusters.get(cluster)
        if there is None or not names:
            return
        for name in names.keys() & there.keys():
            del there[name]
        if not there:
            del self.topics[topic]

    def add_topic(self, topic: str, queues: Sequence[QueueData]) -> bool:
        """Brokers have a topic (request 217).

        @return: False if one of them is not known: those before it stay entered if the
            topic was there, and a new topic is not made.
        """
        there = self.topics.get(topic)
        entered: dict[str, QueueData] = {} if there is None else there
        for one in queues:
            if one.broker_name not in self.groups:
                return False
            entered[one.broker_name] = one
        if entered:
            self.topics[topic] = entered
        return True


def few_at_a_time(items: Iterable[T]) -> Iterator[list[T]]:
    """Lists of L{STEP_TOPICS} items."""
    rest = iter(items)
    while some := list(islice(rest, STEP_TOPICS)):
        yield some
