# -*- test-case-name: tests.nameserver.test_nameserver -*-
"""A name server: its parts together."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime

from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.files.interfaces import IFiles
from rocketbroker.nameserver.brokers import Brokers, Oneway
from rocketbroker.nameserver.file_writer import InThread
from rocketbroker.nameserver.keyvalues import KeyValues
from rocketbroker.nameserver.routes import Routes
from rocketbroker.nameserver.settings import RunningSettings
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.remoting.periodic import PeriodicCall
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.routing.table import RouteTable


@final
class NameServer:
    """A name server without its port: give L{responders} to a server.

    @ivar responders: answer the requests.
    @ivar routes: the table.
    @ivar brokers: keeps the table up to date, and counts.
    @ivar lookups: answers from the table, and counts.
    @ivar keyvalues: key-value settings.
    @ivar settings: the settings in force.
    @ivar slices: does long work in bounded slices.
    @ivar scan: looks for silent brokers, and counts the times it failed.
    """

    def __init__(
        self,
        clock: IReactorTime,
        settings: NamesrvSettings,
        files: IFiles,
        now_ms: Callable[[], int],
        in_thread: InThread,
        oneway: Oneway,
    ) -> None:
        """
        @param clock: calls later.
        @param settings: as at the start.
        @param files: where the settings' files are.
        @param now_ms: a clock that never jumps; the wait for service counts from now.
        @param in_thread: runs functions that may wait for the disk.
        @param oneway: sends a request that wants no answer to a broker.
        """
        options = settings.options
        self.responders = ResponderTable()
        self.slices = Slices(clock)
        self.routes = RouteTable()
        self.settings = RunningSettings(settings, files, in_thread)
        self.keyvalues = KeyValues(
            files, options.kv_config_path, in_thread, self.slices
        )
        self.brokers = Brokers(
            clock,
            self.routes,
            self.settings,
            self.keyvalues,
            now_ms,
            oneway,
            self.slices,
        )
        self.lookups = Routes(
            self.routes, self.settings, self.keyvalues, now_ms, self.slices
        )
        for part in (self.settings, self.keyvalues, self.brokers, self.lookups):
            part.register(self.responders)
        self.scan = PeriodicCall(clock, "scan for silent brokers", self.brokers.scan)
        self.settings.watch(lambda options: self.scan.change(scan_seconds(options)))

    def load(self) -> None:
        """Read the files. Blocking; before the reactor runs.

        @raise ConfigurationError: one sentence, if they cannot be read or written.
        """
        self.keyvalues.load()

    def start(self) -> None:
        """Scan for silent brokers from now on."""
        self.scan.start(scan_seconds(self.settings.options))

    def stop(self) -> Deferred[None]:
        """Stop scanning.

        @return: fires when all changes of settings are on the disk.
        """
        self.scan.stop()
        self.brokers.stop()
        self.slices.stop()
        parts = [self.keyvalues.stop(), self.settings.stop()]
        return gatherResults(parts).addCallback(lambda _: None)


def scan_seconds(options: NamesrvOptions) -> float:
    """The time between looks for silent brokers."""
    return options.scan_not_active_broker_interval / 1000
