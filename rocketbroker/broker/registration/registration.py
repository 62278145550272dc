# -*- test-case-name: tests.broker.registration.test_registration -*-
"""The registration of this broker and its topics with the name servers.

All topics go to every name server at start, and every registerNameServerPeriod; topics
that were created or changed go at once, alone, and where the table is large at most
once a second; a name server that cannot be reached is
tried again every L{RETRY_SECONDS}, so that it learns of the broker when it is there and
not half a minute later.

A name server compares versions of the topic table, and takes all topics of one whose
version differs. Without forceRegister the broker asks for the name servers' version
first (322).

Topics that do not fit into one frame go in parts. A name server takes the topics of a
part only if its version differs from that of the part before, so all parts but the last
have versions of their own, unless the server has the whole table at its version
already: then all have that one, and the server enters what it does not know and leaves
the rest alone.

Rules: docs/facts/broker.md 9."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import attrs
from twisted.internet.defer import Deferred, gatherResults, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.json_table import MAX_PAUSE_SECONDS
from rocketbroker.broker.metadata.queue_mappings import QueueMappings
from rocketbroker.broker.metadata.topics import READ, WRITE, TopicTable
from rocketbroker.broker.registration.masters import Masters
from rocketbroker.broker.registration.member_group import MemberGroup
from rocketbroker.broker.registration.name_server_api import (
    Batch,
    NameServerApi,
    RegisterAnswer,
)
from rocketbroker.broker.registration.name_servers import NameServers
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.refusal_log import RefusalLog
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.bodies.topics import DataVersion, KVTable, TopicConfig
from rocketbroker.wire.frames import MAX_BYTES

#: Bounds of registerNameServerPeriod: name servers forget a broker after two minutes,
#: and need not hear of it all the time.
REGISTRATION_SECONDS: Final = (10.0, 60.0)


def clamped(seconds: float) -> float:
    """The period of registrations, within its bounds."""
    low, high = REGISTRATION_SECONDS
    return min(max(seconds, low), high)


REGISTRATION: Final = Service(
    "registration with name servers",
    "a name server forgets a broker that is silent for two minutes",
    lambda s: clamped(s.broker.register_name_server_period / 1000),
    always(10),
)

#: What topics of one registration may take: the longest frame, with room for the rest.
MAX_TOPICS_BYTES: Final = MAX_BYTES - 64 * 1024

#: How many bytes a character takes at most.
MAX_CHARACTER_BYTES: Final = 4

#: What those of a part take, where one registration is not enough: smaller, so that no
#: server is busy with one for long.
PART_BYTES: Final = 4 * 1024 * 1024

#: How soon a name server that did not answer is tried again.
RETRY_SECONDS: Final = 2.0


@final
class Registration:
    """Registers the broker with its name servers.

    @ivar registered: how many registrations succeeded.
    @ivar failures: how many failed.
    @ivar unreachable: the name servers whose last registration failed.
    @ivar masters: where the master of a slave is.
    @ivar members: who shares this broker's name.
    @ivar refusals: logs what nobody of that name may ask.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        calls: NameServerApi,
        name_servers: NameServers,
        options: BrokerOptions,
        topics: TopicTable,
        mappings: QueueMappings,
        services: Services,
    ) -> None:
        self.registered = 0
        self.failures = 0
        self.unreachable: set[str] = set()
        self.masters = Masters(name_servers)
        self.refusals = RefusalLog(clock.seconds)
        self.members = MemberGroup(
            calls, name_servers, topics, options.broker_id, self.refusals
        )
        self._clock = clock
        self._calls = calls
        self._name_servers = name_servers
        self._options = options
        self._topics = topics
        self._mappings = mappings
        self._services = services
        self._retry: IDelayedCall | None = None
        self._soon: IDelayedCall | None = None
        self._changed: dict[str, None] = {}
        self._announced_at = -MAX_PAUSE_SECONDS
        #: How many announcements were begun, and the numbers of those under way.
        self._announcements = 0
        self._under_way: set[int] = set()
        #: Who waits for all announcements up to a number.
        self._waiting: list[tuple[int, Deferred[None]]] = []
        self._running = False
        self._namesake: str | None = None
        self._split = False
        #: By name server: the version of the table that it has whole.
        self._registered: dict[str, DataVersion] = {}

    @property
    def is_known(self) -> bool:
        """Whether a name server knows this broker, or there is none to know it."""
        return not self._name_servers.is_needed() or (
            self.registered > 0
            and len(self.unreachable) < len(self._name_servers.current)
        )

    def start(self) -> Deferred[None]:
        """Register now, as soon as the name servers are known.

        @return: fires when every name server has answered or failed.
        """
        self._running = True
        if not self._name_servers.is_needed():
            return succeed(None)
        self._topics.watch(self._topics_changed)
        self._services.begin(REGISTRATION, self._period)
        found = self._name_servers.start()
        return found.addCallback(lambda _: self._registered_first())

    def _registered_first(self) -> Deferred[None]:
        self._name_servers.watch(self._servers_changed)
        return self.register_all(forced=True)

    def _servers_changed(self) -> Deferred[None]:
        """Register with name servers that were not there before."""
        current = set(self._name_servers.current)
        self.unreachable &= current
        before = set(self._registered)
        for gone in before - current:
            del self._registered[gone]
        return (
            self._send_all(sorted(current - before)) if self._running else succeed(None)
        )

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        before, self._options = self._options, settings.broker
        if not self._running or not self._name_servers.current:
            return
        if before.broker_permission != self._options.broker_permission:
            # Name servers take no topics at a version that they have.
            self._topics.touch()
            self._announcements += 1
            number = self._announcements
            self._under_way.add(number)
            self._send_all(
                server
                for server in self._name_servers.current
                if server not in self.unreachable
            ).addCallback(self._announced_to_all, number)

    def stop(self) -> Deferred[None]:
        """Take this broker off the name servers; fires when they know or failed."""
        self._running = False
        for call in (self._retry, self._soon):
            if call is not None and call.active():
                call.cancel()
        self._changed.clear()
        self._release()
        return gather(
            [
                self._calls.unregister(server).addErrback(
                    self._not_unregistered, server
                )
                for server in self._name_servers.current
                if server not in self.unreachable
            ]
        )

    def _not_unregistered(self, failure: Failure, server: str) -> None:
        self._log.warn(
            "cannot unregister from name server {server}: {error}",
            server=server,
            error=failure.getErrorMessage(),
        )

    def _period(self) -> Deferred[None]:
        self._look_for_namesake()
        return self.register_all(self._options.force_register)

    def _look_for_namesake(self) -> None:
        """Ask one name server for the address that it has for this broker's name."""
        for server in self._name_servers.current:
            if server not in self.unreachable:
                asked = self._calls.route(server, self._options.broker_name)
                asked.addCallbacks(
                    self._namesake_found, lambda failure: None, callbackArgs=(server,)
                )
                return

    def _namesake_found(self, route: TopicRouteData, server: str) -> None:
        """Warn if it is that of another broker, once for each address.

        Two brokers of one name and id replace one another at the name servers with each
        registration, so that clients find now the one and now the other.
        """
        options = self._options
        for data in route.broker_datas:
            address = data.broker_addrs.get(options.broker_id)
            if data.broker_name != options.broker_name or address is None:
                continue
            if address not in (self._calls.address, self._namesake):
                self._namesake = address
                self._log.warn(
                    "another broker is registered as {name} with id {id} at name "
                    "server {server}: {address}; this one is {own}. Clients find only "
                    "one of them at a time: give each a brokerName of its own",
                    name=options.broker_name,
                    id=options.broker_id,
                    server=server,
                    address=address,
                    own=self._calls.address,
                )

    def register_all(self, forced: bool) -> Deferred[None]:
        """Send all topics to every name server, if they are to or need it.

        @param forced: without asking for their data versions first.
        @return: fires when every name server has answered or failed.
        """
        if forced or self._options.enable_split_registration:
            return self._send_all(self._name_servers.current)
        version = self._topics.version
        asked = [
            self._calls.needs_data(server, version)
            for server in self._name_servers.current
        ]
        return gatherResults(asked).addCallback(
            lambda needs: (
                self._send_all(self._name_servers.current) if any(needs) else None
            )
        )

    def _send_all(self, servers: Iterable[str]) -> Deferred[None]:
        parts = self._parts()
        if len(parts) == 1 or self._options.enable_split_registration:
            batches = self._newer(parts)
            return gather([self._send_batches(server, batches) for server in servers])
        return gather(
            [
                self._send_batches(server, self._known(server, parts))
                for server in servers
            ]
        )

    def _parts(self) -> list[list[TopicConfig]]:
        """All topics, in as many parts as frames and enableSplitRegistration need."""
        configs = self._topics.configs()
        if not self._serves_all():
            configs = [self._visible(config) for config in configs]
        sizes = [len(config.member) + 1 for config in configs]
        if sum(sizes) * MAX_CHARACTER_BYTES > MAX_TOPICS_BYTES:
            sizes = [len(config.member.encode()) + 1 for config in configs]
        total, topics = sum(sizes), len(configs)
        room = MAX_TOPICS_BYTES if total <= MAX_TOPICS_BYTES else PART_BYTES
        if self._options.enable_split_registration:
            topics = max(1, self._options.split_registration_size)
        if total <= room and len(configs) <= topics:
            return [configs]
        parts = parted(configs, sizes, topics, room)
        if total > MAX_TOPICS_BYTES and not self._split:
            self._split = True
            self._log.warn(
                "the topics take {total} bytes, and a registration has at most {most}: "
                "they are registered in {parts} parts. With each part, a name server "
                "with deleteTopicWithBrokerRegistration=true deletes all topics of "
                "the others: turn it off at name servers of this broker",
                total=total,
                most=MAX_TOPICS_BYTES,
                parts=len(parts),
            )
        return parts

    def _newer(self, parts: list[list[TopicConfig]]) -> list[Batch]:
        """The parts of enableSplitRegistration, each a new version of the table."""
        batches = []
        for part in parts:
            if self._options.enable_split_registration:
                self._topics.touch()
            batches.append(self._batch(part, self._topics.version))
        return batches

    def _known(self, server: str, parts: list[list[TopicConfig]]) -> list[Batch]:
        """The parts of one table, with versions as that name server needs them."""
        version = self._topics.version
        same = self._registered.get(server) == version
        last = len(parts) - 1
        return [
            self._batch(
                part,
                version
                if same
                else attrs.evolve(version, timestamp=version.timestamp - last + index),
            )
            for index, part in enumerate(parts)
        ]

    def _batch(self, configs: list[TopicConfig], version: DataVersion) -> Batch:
        infos = self._mappings.infos(config.topic_name for config in configs)
        return Batch(configs, version, self._options.compressed_register, infos)

    def _visible(self, config: TopicConfig) -> TopicConfig:
        """A topic as clients may use it: with no more than the broker permits."""
        if self._serves_all():
            return config
        return attrs.evolve(config, perm=config.perm & self._options.broker_permission)

    def _serves_all(self) -> bool:
        """Whether the broker may be read and written."""
        both = READ | WRITE
        return self._options.broker_permission & both == both

    def _send_batches(self, server: str, batches: list[Batch]) -> Deferred[None]:
        """One batch after the other, so that versions arrive in order."""
        sending: Deferred[RegisterAnswer] = succeed(RegisterAnswer())
        for batch in batches:
            sending.addCallback(self._send_batch, server, batch)
        version = batches[-1].version
        return sending.addCallbacks(
            self._succeeded,
            self._failed,
            callbackArgs=(server, version),
            errbackArgs=(server,),
        )

    def _send_batch(
        self, _: RegisterAnswer, server: str, batch: Batch
    ) -> Deferred[RegisterAnswer]:
        return self._calls.register(server, batch)

    def _succeeded(
        self, answer: RegisterAnswer, server: str, version: DataVersion
    ) -> None:
        self.registered += 1
        self._registered[server] = version
        if server in self.unreachable:
            self.unreachable.discard(server)
            self._log.info("registered with name server {server}", server=server)
            if self._running and version != self._topics.version:
                # Changes that came meanwhile were not announced to it.
                self._send_all([server])
        if answer.orders is not None:
            self._order(answer.orders)
        self.masters.note(server, answer.master)

    def _order(self, orders: KVTable) -> None:
        """Name servers can say that topics are ordered; never that they no longer are.

        Names of order topics: docs/facts/broker.md 9.3, step 5.
        """
        changed = [
            attrs.evolve(config, order=True)
            for name in orders.table
            if (config := self._topics.config(name)) is not None and not config.order
        ]
        if changed:
            self._topics.put(changed)

    def _failed(self, failure: Failure, server: str) -> None:
        self.failures += 1
        self._registered.pop(server, None)
        if server not in self.unreachable:
            self.unreachable.add(server)
            self._log.warn(
                "cannot register with name server {server}, going on to try: {error}",
                server=server,
                error=failure.getErrorMessage(),
            )
        if self._running and self._retry is None:
            self._retry = self._clock.callLater(RETRY_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._send_all(sorted(self.unreachable))

    def announced(self, max_seconds: float) -> Deferred[None]:
        """Fires once name servers know all changes so far, or failed.

        @param max_seconds: it fires after so long in any case.
        """
        last = self._announcements + bool(self._changed)
        if not self._waits(last):
            return succeed(None)
        done: Deferred[None] = Deferred()
        self._waiting.append((last, done))
        return done.addTimeout(max_seconds, self._clock, lambda result, seconds: None)

    def _waits(self, last: int) -> bool:
        """Whether an announcement up to the one of that number has not ended."""
        if last > self._announcements:
            return True
        return any(number <= last for number in self._under_way)

    def _topics_changed(self, names: list[str]) -> None:
        if not self._running or not self._name_servers.current:
            return
        self._changed.update(dict.fromkeys(names))
        if self._soon is None:
            due = self._announced_at + self._topics.pause_seconds
            wait = max(0.0, due - self._clock.seconds())
            self._soon = self._clock.callLater(wait, self._announce)

    def _announce(self) -> None:
        """Send the topics that changed, all that came in a turn or a pause together.

        A name server that did not answer the last time gets all topics when it does
        again. Nobody waits for it until then, and nothing piles up for it.
        """
        self._soon = None
        self._announced_at = self._clock.seconds()
        names, self._changed = self._changed, {}
        configs = [
            self._visible(config)
            for name in sorted(names)
            if (config := self._topics.config(name)) is not None
        ]
        self._announcements += 1
        number = self._announcements
        self._under_way.add(number)
        if not configs:
            self._announced_to_all(None, number)
            return
        current = self._name_servers.current
        servers = [server for server in current if server not in self.unreachable]
        if sum(len(config.member) for config in configs) > PART_BYTES:
            # A slave has just taken over all topics of its master.
            sent = self._send_all(servers)
        else:
            batch = self._batch(configs, self._topics.version)
            sent = gather([self._announce_to(server, batch) for server in servers])
        sent.addCallback(self._announced_to_all, number)

    def _announce_to(self, server: str, batch: Batch) -> Deferred[None]:
        if self._options.enable_single_topic_register:
            return gather(
                [self._calls.register_topic(server, config) for config in batch.configs]
            ).addErrback(self._failed, server)
        return self._send_batches(server, [batch])

    def _announced_to_all(self, _: None, number: int) -> None:
        """Let go on what waited for no more than this."""
        self._under_way.discard(number)
        waiting, self._waiting = self._waiting, []
        for last, done in waiting:
            if self._waits(last):
                self._waiting.append((last, done))
            else:
                done.callback(None)

    def _release(self) -> None:
        """Let everything that waits for name servers go on."""
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            done.callback(None)


def parted(
    configs: list[TopicConfig], sizes: list[int], most: int, room: int
) -> list[list[TopicConfig]]:
    """Topics in parts, in their order; at least one part.

    @param sizes: of the topics, in bytes.
    @param most: how many topics a part has at most.
    @param room: how many bytes it has at most; a topic that has more is alone.
    """
    parts: list[list[TopicConfig]] = [[]]
    used = 0
    for config, size in zip(configs, sizes, strict=True):
        if parts[-1] and (used + size > room or len(parts[-1]) == most):
            parts.append([])
            used = 0
        parts[-1].append(config)
        used += size
    return parts


def gather(calls: Iterable[Deferred[None]]) -> Deferred[None]:
    """Fires when all of C{calls} have."""
    done = gatherResults(list(calls), consumeErrors=True)
    return done.addCallback(lambda results: None)
