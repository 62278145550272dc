# -*- test-case-name: tests.testing.test_contexts -*-
"""The context of a broker in memory, for tests of one of its rooms.

A room is made from the context and from the rooms below it; a test that needs no more
than these makes them itself, without the whole broker::

    context = memory_context({"brokerName": "a"})
    metadata = MetadataRoom(context)
    metadata.load()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock

from rocketbroker.broker.context import BrokerContext, Caller
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConnectionLost
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.addresses import host_bytes
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.master_link import ScriptedLink
from rocketbroker.testing.replicas import ScriptedReplicas
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.command import Command

#: The time of day when a context begins.
WALL_MS: Final = 1_700_000_000_000

PORT: Final = 10911

#: Small files, and an address that is no machine's.
SETTINGS: Final = {
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "1000",
    "brokerIP1": "10.0.0.1",
}


@final
class Nobody:
    """A client that reaches nobody, and a lookup that knows none."""

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """Fail."""
        return fail(ConnectionLost(f"nobody listens at {address}"))

    def oneway(self, address: str, command: Command) -> None:
        """Nobody hears it."""

    def own(self) -> list[str]:
        """This machine has no address but loopback."""
        return []

    def resolve(self, host: str) -> list[str]:
        """No host is known."""
        raise OSError(f"{host} is not known")

    def fetch(self, url: str, max_bytes: int) -> str:
        """There is no page."""
        raise OSError(f"{url} does not answer")


def memory_context(
    properties: Mapping[str, str],
    clock: Clock | None = None,
    disk: MemoryDisk | None = None,
    client: Caller | None = None,
) -> BrokerContext:
    """A context whose time is a clock, and whose store, not open yet, is in memory.

    @param properties: RocketMQ's keys, beside L{SETTINGS}.
    @param clock: the time; a new one if none is given.
    @param disk: what an earlier broker has left.
    @param client: calls name servers; if none is given, nobody is reached.
    """
    time, files = clock or Clock(), disk or MemoryDisk()
    settings = BrokerSettings.from_properties({**SETTINGS, **properties})

    def wall_ms() -> int:
        return WALL_MS + int(time.seconds() * 1000)

    host = host_bytes(settings.broker.broker_ip1, PORT)
    return BrokerContext(
        settings=settings,
        port=PORT,
        clock=time,
        wall_ms=wall_ms,
        files=files,
        store=Store(files, settings.store, wall_ms, host),
        in_thread=at_once,
        client=client or Nobody(),
        lookup=Nobody(),
        turns=Turns(),
        unique_keys=UniqueKeys(b"\x0a\0\0\1", 1, 2, wall_ms),
        followers=[],
        replica_server=lambda store, in_thread, membership: ScriptedReplicas(),
        master_link=lambda store, in_thread: ScriptedLink(),
    )
