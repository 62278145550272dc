# -*- test-case-name: tests.routing.test_topic_view -*-
"""A topic as its clients see it: queues to send to, queues to read, addresses.

C{docs/facts/client.md} 3.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from rocketbroker.errors import NoBroker, NoPermission
from rocketbroker.routing.static_topics import leading_brokers, logical_leaders
from rocketbroker.wire.bodies.routes import TopicRouteData

#: Bits of a topic's permission.
READ: Final = 4
WRITE: Final = 2

#: Queues for each broker of a topic that its first message creates.
NEW_TOPIC_QUEUES: Final = 4

#: The broker id of a master.
MASTER: Final = 0


class MessageQueue(NamedTuple):
    """One queue of a topic."""

    topic: str
    broker: str
    queue_id: int

    def __str__(self) -> str:
        return f"queue {self.queue_id} of {self.topic} on {self.broker}"


def write_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues to send to, by broker and number; of a static topic its logical ones.

    @param topic: whose queues; another than the route's while it does not exist yet.
    """
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    if route.topic_queue_mapping_by_broker:
        leaders = leading_brokers(route.topic_queue_mapping_by_broker)
        return [MessageQueue(topic, name, number) for number, name in leaders.items()]
    with_master = {
        broker.broker_name
        for broker in route.broker_datas
        if MASTER in broker.broker_addrs
    }
    return [
        MessageQueue(topic, queues.broker_name, number)
        for queues in sorted(route.queue_datas, key=lambda one: one.broker_name)
        if queues.perm & WRITE and queues.broker_name in with_master
        for number in range(queues.write_queue_nums)
    ]


def _ordered_queues(topic: str, conf: str) -> list[MessageQueue]:
    """The queues of C{b1:4;b2:4}, in that order."""
    queues = []
    for part in conf.split(";"):
        broker, _, count = part.partition(":")
        if broker and count.isdecimal() and len(count) < 6:
            queues += [MessageQueue(topic, broker, n) for n in range(int(count))]
    return queues


def read_queues(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues to read, by broker and number."""
    return [
        MessageQueue(topic, queues.broker_name, number)
        for queues in sorted(route.queue_datas, key=lambda one: one.broker_name)
        if queues.perm & READ
        for number in range(queues.read_queue_nums)
    ]


@final
class TopicView:
    """A route, and what is asked of it again and again.

    @ivar route: as the name server sent it.
    @ivar write: the queues to send to.
    @ivar read: the queues to read: physical ones, whose offsets have no gaps; or, as
        the members of a group share them, the logical ones of a static topic, on a
        broker by whose name nothing can be reached.
    @ivar leaders: which broker has a logical queue now, by its broker and number.
    @ivar masters: the address of each master, by broker name.
    @ivar any: the address of the lowest broker id, by broker name.
    @ivar brokers: all addresses by broker id, by broker name.
    """

    __slots__ = (
        *("any", "brokers", "expires", "leaders", "masters", "read", "route"),
        "write",
    )

    def __init__(
        self,
        topic: str,
        route: TopicRouteData,
        expires: float,
        is_logical: bool = False,
    ) -> None:
        """
        @param is_logical: whether the queues to read are those of a group's members.
        """
        self.route = route
        self.expires = expires
        self.write = write_queues(topic, route)
        infos = route.topic_queue_mapping_by_broker
        self.leaders = logical_leaders(infos) if is_logical and infos else {}
        self.read = [MessageQueue(topic, *queue) for queue in sorted(self.leaders)]
        if not self.leaders:
            self.read = read_queues(topic, route)
        self.brokers = {
            broker.broker_name: broker.broker_addrs for broker in route.broker_datas
        }
        self.masters = {
            broker.broker_name: broker.broker_addrs[MASTER]
            for broker in route.broker_datas
            if MASTER in broker.broker_addrs
        }
        self.any = {
            broker.broker_name: broker.broker_addrs[min(broker.broker_addrs)]
            for broker in route.broker_datas
            if broker.broker_addrs
        }


def writable(topic: str, view: TopicView) -> list[MessageQueue]:
    """The queues to send to, of which there is one at least.

    @raise NoBroker: none of the topic's brokers has a master now.
    @raise NoPermission: none of its queues may be written.
    """
    if view.write:
        return view.write
    if view.masters and view.route.queue_datas:
        raise NoPermission(f"{topic} may not be written: it has no write permission")
    raise NoBroker(f"the name server knows no master now for {topic}")


def first_queues(topic: str, default: TopicView) -> list[MessageQueue]:
    """The queues that a topic gets by its first message, as far as they are known.

    @param default: the topic of which brokers have a copy that create topics so.
    """
    return [
        MessageQueue(topic, queue.broker, queue.queue_id)
        for queue in default.write
        if queue.queue_id < NEW_TOPIC_QUEUES
    ]
