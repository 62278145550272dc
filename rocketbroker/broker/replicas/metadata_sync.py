# -*- test-case-name: tests.broker.replicas.test_metadata_sync -*-
"""A slave's copies of its master's tables.

The log is replicated; what stands beside it is asked for: topics (21), with the
mappings of static ones, which RocketMQ's slaves leave out; consumer offsets
(43), offsets of delay levels (45), groups (201), and how groups get their messages
(402). RocketMQ does it once a minute, the first time a minute after the start. Here the
first time is as soon as the master is known: a master that dies before that would leave
a slave that does not know its topics.

Each table is for itself: one that cannot be had is tried again a minute later, and does
not keep the others from being copied. Bodies are read in a thread, as is the comparison
of large tables; only what differs is put into them.

Where RocketMQ does otherwise, on purpose here:

  - Topics and groups are taken over whole. RocketMQ 5.3.3 gives up a list at the first
    topic that has attributes.
  - A table that was taken over has the master's version, so the next round, which
    finds that version again, has nothing to do.
  - Topics that every broker has at its start stay, if the master is one of another
    version that lacks them.

C{docs/facts/ha.md} 11 and traps 17 to 19.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar, final

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.message_request_mode import (
    loaded_modes,
)
from rocketbroker.broker.metadata.offset_files import offsets_in
from rocketbroker.broker.metadata.queue_mappings import loaded_details
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.metadata.topics import bounded, loaded_version
from rocketbroker.broker.registration.masters import Master, Masters
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.broker.roles import Role
from rocketbroker.broker.room import Room
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.errors import (
    NoPermission,
    RemoteProtocolError,
    RequestCodeNotSupported,
    RocketbrokerError,
)
from rocketbroker.remoting.addresses import address_text, split_address
from rocketbroker.remoting.interfaces import ISlices
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.mappings import TopicQueueMappingDetail
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads

METADATA_SYNC: Final = Service(
    "copy of the master's tables",
    "a slave can serve clients when its master is gone",
    always(3),
    always(10),
    roles=frozenset({Role.SLAVE}),
)

T = TypeVar("T")
C = TypeVar("C", TopicConfig, SubscriptionGroupConfig)

#: From one copy of all tables to the next.
FULL_SECONDS: Final = 60.0

#: How long a master may take to send a table. RocketMQ gives it 3 s, which is little
#: for fifty thousand topics on a busy machine.
TABLE_SECONDS: Final = 10.0

#: What helps if a master with access control refuses a slave.
UNSIGNED: Final = (
    " innerClientAuthenticationCredentials of this slave must be a super user's of the "
    "master"
)

#: The VIP port, at which RocketMQ's slaves ask for topics, is so far below the main
#: port.
VIP_DISTANCE: Final = 2


class _Over(Exception):
    """The master is another one, or this is no slave any more."""


@final
class TableCopy:
    """One table of the master, and how its copy goes.

    @ivar name: for the log and operators.
    @ivar copy: copies it from the master at an address.
    @ivar last_ms: when it was last copied, by the time of day; 0: never.
    @ivar failures: how often it could not be.
    @ivar problem: a sentence on why not the last time; or empty.
    """

    __slots__ = ("copy", "failures", "last_ms", "name", "problem")

    def __init__(self, name: str, copy: Callable[[str], Awaitable[None]]) -> None:
        self.name = name
        self.copy = copy
        self.last_ms = 0
        self.failures = 0
        self.problem = ""


@final
class MetadataSync(Room):
    """The copying of the master's tables to a slave.

    @ivar tables: in the order in which they are copied.
    """

    _log = Logger()

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        masters: Masters,
        take_delays: Callable[[Mapping[str, object]], None],
    ) -> None:
        """
        @param take_delays: takes the offsets of delay levels.
        """
        self._clock = context.clock
        self._wall_ms = context.wall_ms
        self._in_thread: InThread = context.in_thread
        self._slices: ISlices = context.slices
        self._client = context.client
        self._masters = masters
        #: What would be copied from there is this broker's own.
        self._own_address = context.address
        self._topics = metadata.topics
        self._mappings = metadata.mappings
        self._groups = metadata.groups
        self._offsets = metadata.offsets
        self._request_modes = metadata.request_modes
        self._take_delays = take_delays
        self._services: Services = context.services
        self._next_at = 0.0
        self._is_copying = False
        self._is_running = False
        self.tables = (
            TableCopy("topics", self._copy_topics),
            TableCopy("consumer offsets", self._copy_offsets),
            TableCopy("offsets of delay levels", self._copy_delays),
            TableCopy("groups", self._copy_groups),
            TableCopy("message request modes", self._copy_modes),
        )
        masters.watch(self._found)

    def start(self) -> None:
        """Begin, as soon as this is a slave."""
        self._is_running = True
        self._services.begin(METADATA_SYNC, self.look)

    def stop(self) -> Deferred[None]:
        """End: nothing is put into a table any more."""
        self._is_running = False
        return succeed(None)

    def problems(self) -> list[str]:
        """Sentences about tables that could not be copied, of what is no master."""
        if self._services.role is Role.MASTER:
            return []
        return [table.problem for table in self.tables if table.problem]

    def look(self) -> Deferred[None]:
        """Copy all tables, if it is time; fires when that is done."""
        address, now = self._masters.current.address, self._clock.seconds()
        if (
            address is None
            or address == self._own_address
            or self._is_copying
            or now < self._next_at
            or not self._goes_on(address)
        ):
            return succeed(None)
        self._next_at = now + FULL_SECONDS
        return Deferred.fromCoroutine(self._copy_all(address))

    def _found(self, master: Master) -> None:
        """Another master is there, or none: copy what it has at once."""
        self._next_at = 0.0
        self.look().addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        self._log.failure("The tables of the master cannot be copied.", failure)

    def _goes_on(self, address: str | None) -> bool:
        """Whether the tables of the master at C{address} are still wanted."""
        return (
            self._is_running
            and address == self._masters.current.address
            and self._services.is_on(METADATA_SYNC)
        )

    async def _copy_all(self, address: str) -> None:
        self._is_copying = True
        try:
            for table in self.tables:
                await self._copy(table, address)
        except (_Over, CancelledError):
            pass
        finally:
            self._is_copying = False

    async def _copy(self, table: TableCopy, address: str) -> None:
        """Copy one, and note how that went.

        @raise _Over: no table is wanted any more.
        """
        problem = ""
        try:
            await table.copy(address)
        except RequestCodeNotSupported:
            pass  # A master of an older version has no such table.
        except RocketbrokerError as error:
            if not self._goes_on(address):
                raise _Over from error
            table.failures += 1
            problem = f"The {table.name} of the master {address} cannot be had: {error}"
            if isinstance(error, NoPermission):
                problem += UNSIGNED
            if not table.problem:
                self._log.warn("{problem}; going on to try", problem=problem)
        else:
            table.last_ms = self._wall_ms()
        table.problem = problem

    async def _read(
        self, address: str, code: RequestCode, read: Callable[[bytes], T]
    ) -> T:
        """Ask the master, and read what it answers in a thread.

        @raise RocketbrokerError: it did not answer, or with nonsense.
        @raise _Over: the answer is not wanted any more.
        """
        master = self._masters.current.address
        answer = await self._client.invoke(address, Command(code), TABLE_SECONDS)
        body = successful(answer).body
        found = await self._in_thread(partial(read, body))
        if not self._goes_on(master):
            raise _Over
        return found

    async def _copy_topics(self, address: str) -> None:
        host, port = split_address(address)
        vip = address_text(host, port - VIP_DISTANCE)
        known, version = self._topics.known(), self._topics.version

        def read(body: bytes) -> tuple[Copy[TopicConfig] | None, MappingCopy]:
            return topics_in(body, known, version), mappings_in(body)

        code = RequestCode.GET_ALL_TOPIC_CONFIG
        copy, mappings = await self._read(vip, code, read)
        self._mappings.become(*mappings)
        if copy is not None:
            self._topics.become(*copy)

    async def _copy_groups(self, address: str) -> None:
        known, version = self._groups.known(), self._groups.version
        read = partial(groups_in, known=known, version=version)
        code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
        copy = await self._read(address, code, read)
        if copy is not None:
            self._groups.become(*copy)

    async def _copy_offsets(self, address: str) -> None:
        code = RequestCode.GET_ALL_CONSUMER_OFFSET
        value = await self._read(address, code, table_in)
        offsets = offsets_in(value)
        version = loaded_version(value, DataVersion())
        await self._slices.run(self, self._offsets.become(offsets, version))

    async def _copy_delays(self, address: str) -> None:
        code = RequestCode.GET_ALL_DELAY_OFFSET
        self._take_delays(await self._read(address, code, table_in))

    async def _copy_modes(self, address: str) -> None:
        code = RequestCode.GET_ALL_MESSAGE_REQUEST_MODE
        value = await self._read(address, code, table_in)
        self._request_modes.become(loaded_modes(value))


#: What a table lacks that is to be a copy of another: the entries that differ, the
#: names that the other has not, and its version.
Copy: TypeAlias = tuple[list[C], list[str], DataVersion]


#: The mappings of static topics, and the version of their table.
MappingCopy: TypeAlias = tuple[list[TopicQueueMappingDetail], DataVersion]


def table_in(body: bytes) -> dict[str, object]:
    """The table in an answer.

    @raise RemoteProtocolError: there is none.
    """
    value = loads(body)
    if not isinstance(value, dict):
        raise RemoteProtocolError("the answer is no table")
    return value


def topics_in(
    body: bytes, known: Mapping[str, TopicConfig], version: DataVersion
) -> Copy[TopicConfig] | None:
    """What differs in a table of topics; None if it has that version.

    @raise RemoteProtocolError: it is no such table.
    """
    value = table_in(body)
    if loaded_version(value, DataVersion()) == version:
        return None
    table = value.get("topicConfigTable")
    configs = map(TopicConfig.from_json, entries(table))
    return compared({each.topic_name: bounded(each) for each in configs}, known, value)


def mappings_in(body: bytes) -> MappingCopy:
    """The mappings in a table of topics; a master before 5.0 has none.

    @raise RemoteProtocolError: they make no sense.
    """
    value = table_in(body)
    version = DataVersion.from_json(value.get("mappingDataVersion"))
    return loaded_details(value), version


def groups_in(
    body: bytes, known: Mapping[str, SubscriptionGroupConfig], version: DataVersion
) -> Copy[SubscriptionGroupConfig] | None:
    """The same of a table of groups.

    @raise RemoteProtocolError: it is no such table.
    """
    value = table_in(body)
    if loaded_version(value, DataVersion()) == version:
        return None
    table = value.get("subscriptionGroupTable")
    configs = map(SubscriptionGroupConfig.from_json, entries(table))
    return compared({each.group_name: each for each in configs}, known, value)


def entries(table: object) -> Iterable[object]:
    """What a table holds.

    @raise RemoteProtocolError: it is no table; an empty one would delete all.
    """
    if not isinstance(table, dict):
        raise RemoteProtocolError("the answer has no table")
    return table.values()


def compared(
    theirs: Mapping[str, C], known: Mapping[str, C], value: Mapping[str, object]
) -> Copy[C]:
    """What is to be changed for C{known} to become C{theirs}.

    @param value: the table that has them, with its version.
    """
    changed = [each for name, each in theirs.items() if known.get(name) != each]
    for each in changed:
        assert each.member  # Its text is made here, in a thread.
    gone = [name for name in known if name not in theirs]
    return changed, gone, loaded_version(value, DataVersion())
