"""Which queues a topic has for its clients."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.routing.topic_view import TopicView, read_queues, write_queues
from rocketbroker.wire.bodies.mappings import GLOBAL_SCOPE, TopicQueueMappingInfo
from rocketbroker.wire.bodies.routes import BrokerData, QueueData, TopicRouteData


class QueueTests(SynchronousTestCase):
    """Which queues a route has."""

    def route(self, order: str | None = None) -> TopicRouteData:
        """Four brokers, one of each kind."""
        perms = {"all": 6, "readOnly": 4, "writeOnly": 2, "slaveOnly": 6}
        return TopicRouteData(
            queue_datas=[
                QueueData(
                    broker_name=name, read_queue_nums=1, write_queue_nums=2, perm=perm
                )
                for name, perm in perms.items()
            ],
            broker_datas=[
                BrokerData(
                    cluster="c",
                    broker_name=name,
                    broker_addrs={1 if name == "slaveOnly" else 0: "x:1"},
                )
                for name in perms
            ],
            order_topic_conf=order,
        )

    def test_write(self) -> None:
        """To write, a broker has to allow it and have a master."""
        names = [
            (queue.broker, queue.queue_id) for queue in write_queues("T", self.route())
        ]
        self.assertEqual(
            names, [("all", 0), ("all", 1), ("writeOnly", 0), ("writeOnly", 1)]
        )

    def test_read(self) -> None:
        """To read, a slave will do."""
        names = [queue.broker for queue in read_queues("T", self.route())]
        self.assertEqual(names, ["all", "readOnly", "slaveOnly"])

    def test_static(self) -> None:
        """Of a static topic its logical queues, each at the broker that leads it: of
        two the one with the higher epoch."""
        infos = {
            name: TopicQueueMappingInfo(bname=name, epoch=epoch, curr_id_map=numbers)
            for name, epoch, numbers in (
                ("all", 7, {2: 5, 0: 4}),
                ("readOnly", 6, {0: 1, 1: 0}),
            )
        }
        route = attrs.evolve(self.route(), topic_queue_mapping_by_broker=infos)
        names = [queue[1:] for queue in write_queues("T", route)]
        self.assertEqual(names, [("all", 0), ("readOnly", 1), ("all", 2)])
        self.assertEqual(len(read_queues("T", route)), 3)

    def test_membersReadLogicalQueues(self) -> None:
        """All that there are, in each scope, whether anybody leads them or not; only
        of static topics, and only if that is wanted."""
        infos = {
            name: TopicQueueMappingInfo(
                bname=name, total_queues=3, epoch=1, curr_id_map={at: 0}, scope=scope
            )
            for name, at, scope in (
                ("all", 2, GLOBAL_SCOPE),
                ("readOnly", 0, GLOBAL_SCOPE),
                ("slaveOnly", 1, "S"),
            )
        }
        route = attrs.evolve(self.route(), topic_queue_mapping_by_broker=infos)
        view = TopicView("T", route, 0.0, is_logical=True)
        mock, other = "__syslo__global__", "__syslo__S"
        names = [queue[1:] for queue in view.read]
        self.assertEqual(names, [(one, n) for one in (other, mock) for n in range(3)])
        self.assertEqual(view.leaders[mock, 2], "all")
        self.assertEqual(view.leaders[mock, 1], "__syslo__none__")
        self.assertEqual(view.leaders[other, 1], "slaveOnly")
        for plain in (
            TopicView("T", route, 0.0),
            TopicView("T", self.route(), 0.0, is_logical=True),
        ):
            self.assertEqual(next(one.broker for one in plain.read), "all")
            self.assertEqual(plain.leaders, {})

    def test_ordered(self) -> None:
        """An ordered topic says itself which queues, in which order."""
        queues = write_queues("T", self.route("b2:1;b1:2;;x;y:z;:3;w:99999999"))
        self.assertEqual(
            [queue[1:] for queue in queues], [("b2", 0), ("b1", 0), ("b1", 1)]
        )

    def test_addressesByBrokerId(self) -> None:
        """Each broker is known by all its addresses, and by its master's."""
        view = TopicView("T", self.route(), 0.0)
        self.assertEqual(view.brokers["slaveOnly"], {1: "x:1"})
        self.assertNotIn("slaveOnly", view.masters)
        self.assertEqual(view.any["slaveOnly"], "x:1")
