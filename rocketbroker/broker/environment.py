# -*- test-case-name: tests.broker.test_broker -*-
"""The effects that a broker is given: time, disk, threads, network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.background_work import BackgroundWork, InThread
from rocketbroker.broker.registration.name_server_api import Caller
from rocketbroker.broker.registration.name_servers import Lookup
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.interfaces import IResponderTable, ITurns
from rocketbroker.remoting.slices import Slices
from rocketbroker.replication.interfaces import (
    IMasterLink,
    IReplicaServer,
    Membership,
)
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.plugins import IFollowerPlugin


class Part(Protocol):
    """A part that answers requests."""

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""


class Server(Protocol):
    """The part of L{rocketbroker.remoting.server.RemotingServer} that is used."""

    def listen(self, port: int | None = None) -> int:
        """Accept connections from now on; the port."""

    def stop(self) -> Deferred[None]:
        """Accept no connection any more, let answers go out, close all."""


#: Make the two sides of replication for a store, which is not open yet; what blocks is
#: to run in such threads. The master's side is told who is a slave.
MakeReplicaServer: TypeAlias = Callable[[IStore, InThread, Membership], IReplicaServer]
MakeMasterLink: TypeAlias = Callable[[IStore, InThread], IMasterLink]


@final
class BrokerEnvironment:
    """The effects of a broker; the programs and the tests make them.

    @ivar clock: the reactor, to tell monotonic time and call later.
    @ivar wall_ms: the time of day.
    @ivar files: the disk.
    @ivar store: the store, not opened yet.
    @ivar in_thread: runs calls that may wait for the disk, and knows when all have
        ended.
    @ivar client: calls name servers.
    @ivar lookup: finds addresses of name servers.
    @ivar turns: where to register for the end of turns.
    @ivar slices: does long work in bounded slices, by the clock.
    @ivar unique_keys: makes ids for messages that come without one.
    @ivar followers: plug-ins that see each stored message, each with its thread.
    @ivar replica_server: makes what sends the log to slaves.
    @ivar master_link: makes what gets it from a master.
    """

    def __init__(
        self,
        clock: IReactorTime,
        wall_ms: Callable[[], int],
        files: IFiles,
        store: IStore,
        in_thread: InThread,
        client: Caller,
        lookup: Lookup,
        turns: ITurns,
        unique_keys: UniqueKeys,
        followers: Sequence[tuple[IFollowerPlugin, InThread]],
        replica_server: MakeReplicaServer,
        master_link: MakeMasterLink,
    ) -> None:
        self.clock = clock
        self.wall_ms = wall_ms
        self.files = files
        self.store = store
        self.in_thread = BackgroundWork(in_thread)
        self.client = client
        self.lookup = lookup
        self.turns = turns
        self.slices = Slices(clock)
        self.unique_keys = unique_keys
        self.followers = followers
        self.replica_server = replica_server
        self.master_link = master_link
