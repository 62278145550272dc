# -*- test-case-name: tests.broker.test_broker -*-
"""The context of a broker: its effects, and the settings of its start.

Programs and tests give time, disk, threads and network; services, slices and the files
of tables follow from them. The rooms of a broker are made from the context. None of
their objects keeps it: each takes what it needs in its constructor, so that a change of
settings reaches it by C{configure} alone, and the data path reads plain attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.background_work import BackgroundWork, InThread
from rocketbroker.broker.long_requests import LongRequests
from rocketbroker.broker.services import Services
from rocketbroker.broker.table_files import TableFiles
from rocketbroker.broker.waiting_requests import WaitingFamilies, WaitingRequests
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.remoting.addresses import host_bytes
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.interfaces import ITurns
from rocketbroker.replication.interfaces import (
    IMasterLink,
    IReplicaServer,
    Membership,
)
from rocketbroker.replication.security import Secret
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.plugins import IFollowerPlugin
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command


class Caller(Protocol):
    """The part of L{rocketbroker.remoting.client.RemotingClient} that is used."""

    def invoke(
        self, address: str, command: Command, timeout: float
    ) -> Deferred[Command]:
        """Send a request; fires with the response, whatever its code."""

    def oneway(self, address: str, command: Command) -> None:
        """Send a request that wants no answer."""


class Lookup(Protocol):
    """Finds addresses and pages; all calls block."""

    def own(self) -> list[str]:
        """The addresses of this machine."""

    def resolve(self, host: str) -> list[str]:
        """The addresses of a host.

        @raise OSError: there is none.
        """

    def fetch(self, url: str, max_bytes: int) -> str:
        """The text of a page.

        @raise OSError: there is none.
        """


#: Make the two sides of replication for a store, which is not open yet; what blocks is
#: to run in such threads. The master's side is told who is a slave.
MakeReplicaServer: TypeAlias = Callable[[IStore, InThread, Membership], IReplicaServer]
MakeMasterLink: TypeAlias = Callable[[IStore, InThread], IMasterLink]


@final
@attrs.frozen(kw_only=True, eq=False)
class BrokerContext:
    """The effects of a broker.

    @ivar settings: those of the start.
    @ivar port: the main port.
    @ivar clock: the reactor, to tell monotonic time and call later.
    @ivar wall_ms: the time of day.
    @ivar files: the disk.
    @ivar store: the store, not opened yet.
    @ivar in_thread: runs calls that may wait for the disk, and knows when all have
        ended.
    @ivar client: calls name servers.
    @ivar lookup: finds addresses of name servers.
    @ivar turns: where to register for the end of turns.
    @ivar unique_keys: makes ids for messages that come without one.
    @ivar followers: plug-ins that see each stored message, each with its thread.
    @ivar replica_server: makes what sends the log to slaves.
    @ivar master_link: makes what gets it from a master.
    @ivar ha_secret: what others of the group have to prove; C{None}: nothing.
    @ivar slices: does long work in bounded slices, by the clock.
    @ivar services: the work that is done again and again.
    @ivar tables: the files of all tables.
    @ivar waiting: the requests that wait for a thread or for slices.
    @ivar started_ms: when the broker was made.
    @ivar long_requests: counts the requests with long bodies that are done in slices.
    """

    settings: BrokerSettings
    port: int
    clock: IReactorTime
    wall_ms: Callable[[], int]
    files: IFiles
    store: IStore
    in_thread: BackgroundWork = attrs.field(converter=BackgroundWork)
    client: Caller
    lookup: Lookup
    turns: ITurns
    unique_keys: UniqueKeys
    followers: Sequence[tuple[IFollowerPlugin, InThread]]
    replica_server: MakeReplicaServer
    master_link: MakeMasterLink
    ha_secret: Secret | None = None
    slices: Slices = attrs.field(init=False)
    services: Services = attrs.field(init=False)
    tables: TableFiles = attrs.field(init=False)
    waiting: WaitingFamilies = attrs.field(init=False)
    long_requests: LongRequests = attrs.field(init=False)
    started_ms: int = attrs.field(init=False)

    @slices.default
    def _make_slices(self) -> Slices:
        return Slices(self.clock)

    @services.default
    def _make_services(self) -> Services:
        return Services(self.clock, self.settings, self.wall_ms)

    @tables.default
    def _make_tables(self) -> TableFiles:
        root = self.settings.store.store_path_root_dir
        return TableFiles(self.files, root, self.in_thread, self.clock)

    @waiting.default
    def _make_waiting(self) -> WaitingFamilies:
        return WaitingFamilies(self.clock, self.settings)

    @long_requests.default
    def _make_long_requests(self) -> LongRequests:
        return LongRequests(self.slices)

    @started_ms.default
    def _see_start(self) -> int:
        return self.wall_ms()

    @property
    def administrators(self) -> WaitingRequests:
        """The requests of administrators that wait."""
        return self.waiting.family(RequestCode.GET_BROKER_RUNTIME_INFO)

    @property
    def told_port(self) -> int:
        """The port of the main port's address, which becomes part of message ids."""
        return self.settings.broker.rocketbroker_advertised_port or self.port

    @property
    def address(self) -> str:
        """Where clients reach the main port."""
        return f"{self.settings.broker.broker_ip1}:{self.told_port}"

    @property
    def host(self) -> bytes:
        """The same as records have it."""
        return host_bytes(self.settings.broker.broker_ip1, self.told_port)
