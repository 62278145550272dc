"""Consumer groups and their clients, looked at by the diagnosis, in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.members import MemberLog
from rocketbroker.broker.diagnostics.group_diagnosis import (
    BOUNDS,
    DiagnosisBounds,
    GroupDiagnosis,
)
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.denied_pulls import DeniedPulls
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import TopicNotExist
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData
from rocketbroker.wire.bodies.topics import TopicConfig
from tests.broker.rig import context_of

WALL_MS = 1_700_000_000_000


class World:
    """The tables, two topics T and U, and clients that say what they want."""

    def __init__(
        self, name_servers: Sequence[str] = (), bounds: DiagnosisBounds = BOUNDS
    ) -> None:
        """
        @param name_servers: they know of the topics in C{self.others}.
        """
        self.clock = Clock()
        self.others: set[str] = set()
        self.clock.advance(1000)
        disk = MemoryDisk()
        options = BrokerOptions()
        self.topics = TopicTable(
            options, JsonTable(disk, "/t", at_once, Clock()), self.wall_ms
        )
        self.groups = GroupTable(
            options, JsonTable(disk, "/g", at_once, Clock()), self.wall_ms
        )
        self.route_cache = RouteCache(
            self.clock.seconds, "a", lambda: name_servers, self.route
        )
        log = MemberLog(Slices(self.clock))
        self.registry = ConsumerRegistry(
            self.clock.seconds, log, lambda group, members: None
        )
        self.diagnosis = GroupDiagnosis(
            context_of(self.clock, wall_ms=self.wall_ms),
            self.registry,
            self.topics,
            self.groups,
            self.route_cache,
            DeniedPulls(),
            bounds,
        )
        self.topic("T")
        self.topic("U")

    def route(self, server: str, topic: str) -> Deferred[TopicRouteData]:
        """The answer of a name server."""
        if topic not in self.others:
            return fail(TopicNotExist(topic))
        queues = QueueData(broker_name="b", perm=6)
        return succeed(TopicRouteData(queue_datas=[queues]))

    def wall_ms(self) -> int:
        """The time of day."""
        return WALL_MS + int((self.clock.seconds() - 1000) * 1000)

    def topic(self, name: str, perm: int = 6) -> None:
        """Make or change a topic."""
        self.topics.put([TopicConfig(topic_name=name, perm=perm)])

    def beat(
        self,
        connection: RecordedConnection,
        wants: dict[str, str] | None,
        client: str = "",
        group: str = "G",
        model: str = "CLUSTERING",
    ) -> None:
        """One heartbeat, one second after what was before."""
        self.clock.advance(1)
        self.groups.find(group)
        data = ConsumerData(
            group_name=group,
            message_model=model,
            subscription_data_set=[
                SubscriptionData(
                    topic=topic, sub_string=text, sub_version=int(self.clock.seconds())
                )
                for topic, text in (wants or {}).items()
            ],
        )
        self.registry.register(
            connection,
            client or f"c{connection.peer}",
            "JAVA",
            479,
            data,
            notify=True,
            with_subscriptions=wants is not None,
        )

    def look(self) -> None:
        """Look at the groups that have changed."""
        for _ in self.diagnosis.look():
            pass

    def problems(self) -> list[dict[str, Any]]:
        """The problems listed after a look."""
        self.look()
        listed: Any = self.diagnosis.to_json()["problems"]
        return list(listed)

    def kinds(self) -> list[tuple[str, str]]:
        """Kind and subject of each, sorted."""
        return sorted((found["kind"], found["subject"]) for found in self.problems())


def peers(count: int) -> list[RecordedConnection]:
    """So many connections."""
    return [RecordedConnection(port=number + 1) for number in range(count)]
