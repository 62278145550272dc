"""A session of the client core that verbs send with, on the scripted machine's servers.

Its clock and its network are those of a memory runtime; the machine's clock goes along.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from rocketbroker.blocking.settings import Settings
from rocketbroker.client.local_offsets import OffsetFolder
from rocketbroker.client.session import Session
from rocketbroker.client.settings import ClientSettings, ProducerSettings
from rocketbroker.config.addresses import name_server_list
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.runtime import MemoryRuntime, PuppetLink, PuppetServer
from rocketbroker.testing.scripted import ScriptedMachine
from rocketbroker.wire.command import Command

T = TypeVar("T")

#: How much time passes while something is waited for, in seconds.
STEP = 0.05


class MemorySender:
    """See L{rocketbroker.cli.cluster.surroundings.Sender}.

    @ivar runtime: where the session runs.
    """

    def __init__(
        self, machine: ScriptedMachine, given: Settings, patience: float
    ) -> None:
        self.runtime = MemoryRuntime()
        self.runtime.advance(machine.now - self.runtime.monotonic())
        self._machine = machine
        names, keys = name_server_list(given.name_servers), given.credentials
        settings = ClientSettings(
            name_servers=names,
            seconds=given.seconds,
            patience=patience,
            access_key=keys.access_key if keys else None,
            secret_key=keys.secret_key if keys else None,
        )
        self._session = Session(
            self.runtime,
            settings,
            ProducerSettings(),
            lambda: OffsetFolder(MemoryDisk(), "/home"),
        )

    def __enter__(self) -> MemorySender:
        return self

    def __exit__(self, *problem: object) -> None:
        self._finish(self._session.close())

    def send_batch(
        self, messages: Iterable[Message], **options: Any
    ) -> list[SendResult]:
        """See L{rocketbroker.cli.cluster.surroundings.Sender}."""
        return self._finish(self._session.send_batch(messages, **options))

    def send_all(
        self, messages: Iterable[Message], **options: Any
    ) -> Iterator[SendResult]:
        """See L{rocketbroker.cli.cluster.surroundings.Sender}."""
        results = self._session.send_all(messages, **options)
        while True:
            try:
                yield self._finish(results.__anext__())
            except StopAsyncIteration:
                return

    def _finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and let time pass until it has ended."""
        outcome = self.runtime.start(coroutine)
        self._look_at_servers()
        self.runtime.settle()
        while not outcome.ended:
            self._machine.sleep(STEP)
            self._look_at_servers()
            self.runtime.advance(STEP)
        return outcome.value()

    def _look_at_servers(self) -> None:
        """Have the servers that the machine has, and no link to others."""
        servers = self.runtime.servers
        for address in servers.keys() - self._machine.servers.keys():
            del servers[address]
            self.runtime.cut(address)
        for address in self._machine.servers:
            servers[address] = self._server(address)

    def _server(self, address: str) -> PuppetServer:
        def serve(link: PuppetLink, command: Command) -> Any:
            self._machine.requests.append((address, command))
            return self._machine.servers[address](command)

        return serve
