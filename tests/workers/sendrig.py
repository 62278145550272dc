"""A broker whose workers append sends themselves, all in the process of the test."""

from __future__ import annotations

import socket
from collections.abc import Callable
from select import POLLIN, poll
from typing import Any

from twisted.internet.testing import MemoryReactorClock

from rocketbroker.broker.broker import Broker
from rocketbroker.broker.context import BrokerContext
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.records.record import StoredMessage, decode_all
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.connection_group import ConnectionGroup, ConnectionLimits
from rocketbroker.remoting.hub import Hub
from rocketbroker.store.message_store import Store
from rocketbroker.store.shared_positions import AsWords, in_words
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection
from rocketbroker.wire.frames import encode
from rocketbroker.workers.approvals import Approvals
from rocketbroker.workers.hello import WorkerSettings
from rocketbroker.workers.worker import GRACE_SECONDS, Worker
from rocketbroker.workers.workers import Workers
from tests.broker.rig import HOST, SMALL, NoLookup, send_ext
from tests.workers.usage import NoUsage

SEND, PULL = 310, 11


def is_readable(descriptor: int) -> bool:
    """Whether it is, however high its number."""
    found = poll()
    found.register(descriptor, POLLIN)
    return bool(found.poll(0))


class WorkerHere:
    """A worker in the process of the test, which can be killed."""

    def __init__(self, rig: SendRig, number: int, end: socket.socket, ended: Any):
        self.pid = number
        self.has_ended = False
        self._ended = ended
        self.worker = Worker(
            rig.reactor,
            end.dup(),
            OpenFiles(rig.disk),
            rig.wall_ms,
            NoUsage(),
            self._ends,
            as_words=rig.as_words,
        )

    def _ends(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            self._ended("exit status 0")

    def kill(self) -> None:
        """The link and all files are closed, by the kernel; nothing else is done."""
        if self.has_ended:
            return
        self.has_ended = True
        self.worker.own_sends.drafts = []
        self.worker.relay.abort()
        self.worker.hub.shut()
        self._ended("signal 9")


class SendRig:
    """An owner, its workers, and clients.

    @ivar broker: the owner.
    @ivar workers: those of the owner.
    @ivar processes: all that were started.
    """

    def __init__(
        self,
        count: int = 2,
        disk: MemoryDisk | None = None,
        as_words: AsWords = in_words,
        wrap: Callable[[Store], Any] = lambda store: store,
        /,
        **settings: str,
    ) -> None:
        """
        @param count: how many workers.
        @param as_words: shows workers what they share with the owner.
        @param wrap: makes of the store what the broker is to see of it.
        """
        self.reactor: Any = MemoryReactorClock()
        self.disk = disk or MemoryDisk()
        self.as_words = as_words
        self.hub = Hub(self.reactor)
        self.clients: list[SendClient] = []
        given = {
            **SMALL,
            "brokerName": "b",
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": "",
            **settings,
        }
        parsed = BrokerSettings.from_properties(given)
        self.store = Store(self.disk, parsed.store, self.wall_ms, HOST, is_shared=True)
        context = BrokerContext(
            settings=parsed,
            port=10911,
            clock=self.reactor,
            wall_ms=self.wall_ms,
            files=self.disk,
            store=wrap(self.store),
            in_thread=at_once,
            client=RemotingClient(self.reactor, parsed.client),
            lookup=NoLookup(),
            turns=self.hub,
            unique_keys=UniqueKeys(b"\x0a\0\0\1", 1, 2, self.wall_ms),
            followers=[],
            replica_server=lambda store, in_thread, membership: ScriptedReplicas(),
            master_link=lambda store, in_thread: ScriptedLink(),
        )
        self.broker = Broker(context)
        self.approvals = Approvals(
            self.reactor, self.hub, self.broker, self.store.sharing, HOST
        )
        self.broker.open()
        self.approvals.start()
        self.group = ConnectionGroup(
            self.reactor, self.broker.main, ConnectionLimits(), self.hub.turns
        )
        self.processes: list[WorkerHere] = []
        self.workers = Workers(
            self.reactor,
            self.hub,
            WorkerSettings(ConnectionLimits(), 1 << 26),
            count,
            self._spawn,
            self.approvals,
        )
        self.workers.start()
        self.broker.start()
        self.step()

    def wall_ms(self) -> int:
        """The time of day."""
        return 1_700_000_000_000 + int(self.reactor.seconds() * 1000)

    def _spawn(self, number: int, end: socket.socket, ended: Any) -> WorkerHere:
        self.processes.append(WorkerHere(self, len(self.processes) + 1, end, ended))
        return self.processes[-1]

    @property
    def alive(self) -> list[Worker]:
        """The workers that there are."""
        return [each.worker for each in self.processes if not each.has_ended]

    @property
    def appended(self) -> int:
        """How many sends workers have appended themselves."""
        return sum(each.worker.own_sends.appended for each in self.processes)

    def client(self) -> SendClient:
        """One more client."""
        self.clients.append(SendClient(self))
        return self.clients[-1]

    def step(self, seconds: float = 0.0) -> None:
        """Turns of all, and what is due, until nothing happens."""
        self.reactor.advance(seconds)
        for _ in range(10_000):
            self.reactor.advance(0)
            hubs = [self.hub, *(worker.hub for worker in self.alive)]
            ready = [hub for hub in hubs if is_readable(hub.fileno())]
            for hub in ready:
                hub.doRead()
            read = [client.read() for client in self.clients]
            calls = self.reactor.getDelayedCalls()
            now = self.reactor.seconds()
            due = any(call.getTime() <= now for call in calls)
            if not ready and not any(read) and not due:
                return
        raise AssertionError("it does not come to an end")

    def later(self) -> None:
        """Some time passes, in which all is told and dispatched."""
        for _ in range(5):
            self.step(0.002)

    def stored(self, topic: str = "T", queue_id: int = 0) -> list[StoredMessage]:
        """The messages of a queue."""
        self.later()
        queue = self.store.queue(topic, queue_id)
        offset = queue.min_offset
        found: list[StoredMessage] = []
        while offset < queue.max_offset:
            got = self.store.read(queue, offset, 1000, 1 << 22, None)
            found += decode_all(b"".join(got.records))
            offset = got.next_offset
        return found

    def bodies(self, topic: str = "T", queue_id: int = 0) -> list[bytes]:
        """Their bodies; their offsets are dense."""
        found = self.stored(topic, queue_id)
        assert [m.queue_offset for m in found] == [*range(len(found))]
        return [message.body for message in found]

    def end(self) -> None:
        """Close all."""
        self.approvals.stop()
        for client in self.clients:
            client.socket.close()
        self.clients.clear()
        self.workers.stop()
        self.step()
        self.step(GRACE_SECONDS)
        self.hub.shut()


class SendClient:
    """A client.

    @ivar answers: all that it got, by opaque.
    """

    def __init__(self, rig: SendRig) -> None:
        self._rig = rig
        ours, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        self.answers: dict[int, Command] = {}
        self._opaque = 0
        self._decoder = Connection()
        rig.workers.hand_over(ours, rig.group, "1.2.3.4", 5)
        rig.step()

    def ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> int:
        """Ask, without waiting.

        @return: the opaque.
        """
        self._opaque += 1
        request = Command(code, ext, body, opaque=self._opaque)
        self.socket.sendall(encode(request))
        return self._opaque

    def ask_together(self, *requests: tuple[int, dict[str, str]]) -> None:
        """Ask several times with bytes that arrive at once."""
        data = b""
        for code, ext in requests:
            self._opaque += 1
            data += encode(Command(code, ext, opaque=self._opaque))
        self.socket.sendall(data)

    def send(self, body: bytes, topic: str = "T", queue_id: int = 0) -> int:
        """Send an ordinary message."""
        return self.ask(SEND, send_ext(topic, queue_id), body)

    def sent(self, body: bytes, topic: str = "T", queue_id: int = 0) -> Command:
        """The answer to an ordinary message."""
        opaque = self.send(body, topic, queue_id)
        self._rig.step()
        return self.answers[opaque]

    def read(self) -> bool:
        """Read what there is; whether there was something."""
        try:
            data = self.socket.recv(1 << 20)
        except (BlockingIOError, OSError):
            return False
        for answer in self._decoder.receive(data):
            self.answers[answer.opaque] = answer
        return bool(data)
