"""The parts of a broker that heartbeats touch."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.consumer_notify import ConsumerNotify
from rocketbroker.broker.clients.consumers import ConsumerRegistry
from rocketbroker.broker.clients.heartbeats import Heartbeats
from rocketbroker.broker.clients.members import MemberLog
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.broker.clients.sql_compiler import SqlCompiler
from rocketbroker.broker.clients.sql_filters import Filters
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command
from tests.broker.rig import answered, context_of, heartbeat, settings_of


class HeartbeatCase(SynchronousTestCase):
    """The parts of a broker that heartbeats touch."""

    def setUp(self) -> None:
        """A broker without clients."""
        self.make(BrokerOptions())

    def make(self, options: BrokerOptions) -> None:
        """The parts that heartbeats touch."""
        disk = MemoryDisk()
        clock = self.clock = Clock()

        def file(name: str) -> JsonTable:
            return JsonTable(disk, f"/config/{name}", at_once, Clock())

        self.topics = TopicTable(options, file("topics"), lambda: 1000)
        self.groups = GroupTable(options, file("groups"), lambda: 1000)
        context = context_of(clock, settings_of(broker=options))
        self.slices = context.slices
        log = MemberLog(Slices(clock))
        self.consumers = ConsumerRegistry(
            clock.seconds, log, ConsumerNotify(clock, options).consumer_ids_changed
        )
        self.producers = ProducerRegistry(clock.seconds, log)
        self.filters = Filters(
            options, file("filters"), lambda: 1000, SqlCompiler(Slices(clock))
        )
        self.heartbeats = Heartbeats(
            context,
            self.topics,
            self.groups,
            self.consumers,
            self.producers,
            self.filters,
            self.wait,
        )
        self.announced: Deferred[None] = succeed(None)
        self.connection = RecordedConnection()

    def wait(self, max_seconds: float) -> Deferred[None]:
        """Wait for name servers."""
        self.waited = max_seconds
        return self.announced

    def begin(
        self, content: bytes | None = None
    ) -> Deferred[Command | None] | Command | None:
        """A heartbeat, and what becomes its answer."""
        request = Command(34, {}, heartbeat() if content is None else content, opaque=7)
        return self.heartbeats.heart_beat(self.connection, request)

    def run_slices(self) -> None:
        """Take all steps."""
        while self.slices.waiting:
            self.clock.advance(0.001)

    def sliced(self, content: bytes) -> Command:
        """The answer to a heartbeat that is taken over in slices."""
        answer = self.begin(content)
        self.assertTrue(self.slices.waiting)
        self.run_slices()
        return answered(answer)

    def beat(self, content: bytes | None = None) -> dict[str, str]:
        """The extension fields that answer a heartbeat."""
        answer = answered(self.begin(content))
        self.assertEqual((answer.code, answer.opaque), (0, 7))
        assert answer.ext is not None
        self.assertEqual(answer.ext["IS_SUPPORT_HEART_BEAT_V2"], "true")
        return answer.ext
