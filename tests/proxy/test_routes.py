"""Routes and assignments."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import MessageType, Permission, Resource
from rocketbroker.proxy.routes import accepted, assignments_of, permission, queues_of
from rocketbroker.routing.topic_view import TopicView
from rocketbroker.wire.bodies.routes import BrokerData, QueueData, TopicRouteData
from tests.proxy.made import ENDPOINTS

T = Resource(name="T")


def view(*queues: QueueData, slave: bool = False) -> TopicView:
    """A topic on brokers b1 and b2."""
    addresses = {0: "a:1", 1: "a:2"} if slave else {0: "a:1"}
    brokers = [
        BrokerData(cluster="c", broker_name=name, broker_addrs=addresses)
        for name in ("b2", "b1")
    ]
    route = TopicRouteData(broker_datas=brokers, queue_datas=list(queues))
    return TopicView("T", route, 0.0)


def queues(broker: str, read: int, write: int, perm: int = 6) -> QueueData:
    """The queues of one broker."""
    return QueueData(
        broker_name=broker, read_queue_nums=read, write_queue_nums=write, perm=perm
    )


class RouteTests(SynchronousTestCase):
    """L{queues_of}."""

    def test_eachBrokerHasTheEndpointsOfTheRequest(self) -> None:
        """Port included; slaves are told, too."""
        found = queues_of(T, view(queues("b1", 1, 1), slave=True), "MIXED", ENDPOINTS)
        self.assertEqual([one.broker.id for one in found], [0, 1])
        for one in found:
            self.assertEqual(one.broker.name, "b1")
            self.assertEqual(one.broker.endpoints, ENDPOINTS)
            self.assertEqual(one.topic, T)
            self.assertEqual(len(one.accept_message_types), 4)

    def test_queuesThatAreReadOnlyComeFirst(self) -> None:
        """Then those that are written only, then both."""
        both, read = Permission.READ_WRITE, Permission.READ
        for data, wanted in (
            (queues("b1", 8, 4), [read] * 4 + [both] * 4),
            (queues("b1", 1, 2), [Permission.WRITE, both]),
            (queues("b1", 2, 3, 2), [Permission.WRITE] * 3),
            (queues("b1", 2, 3, 4), [read] * 2),
            (queues("b1", 0, 0, 0), [Permission.NONE]),
        ):
            found = queues_of(T, view(data), "NORMAL", ENDPOINTS)
            self.assertEqual([one.permission for one in found], wanted)
            self.assertEqual([one.id for one in found], [*range(len(wanted))])

    def test_topicTakesTheMessagesOfItsType(self) -> None:
        """None that is known, if its type is not."""
        self.assertEqual(accepted("FIFO"), (MessageType.FIFO,))
        self.assertEqual(accepted("?"), (MessageType.MESSAGE_TYPE_UNSPECIFIED,))
        self.assertEqual(permission(7), Permission.READ_WRITE)

    def test_memberReadsAllBrokers(self) -> None:
        """Each as a whole, or, in order, each queue by itself."""
        known = view(queues("b2", 2, 2), queues("b1", 2, 2), queues("b9", 2, 2))
        found = [
            one.message_queue for one in assignments_of(T, known, False, ENDPOINTS)
        ]
        self.assertEqual(
            [(one.broker.name, one.id) for one in found], [("b1", -1), ("b2", -1)]
        )
        fifo = [one.message_queue for one in assignments_of(T, known, True, ENDPOINTS)]
        self.assertEqual(
            [(one.broker.name, one.id) for one in fifo],
            [("b1", 0), ("b1", 1), ("b2", 0), ("b2", 1)],
        )
        unread = view(queues("b1", 2, 2, 2), queues("b2", 0, 2))
        self.assertEqual(assignments_of(T, unread, False, ENDPOINTS), [])
