# -*- test-case-name: tests.broker.metadata.test_offsets -*-
"""The consumer offsets: the progress of each group in each queue.

Offsets are committed on hot paths, and the whole file is written every few seconds if
any changed. Its text is made in slices where many did (L{offset_texts}).

C{docs/facts/broker.md} 16.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata import pending_resets
from rocketbroker.broker.metadata.offset_files import (
    LIGHT_TABLE,
    TAKEN_OVER,
    merged,
    offsets_in,
)
from rocketbroker.broker.metadata.offset_texts import (
    STEP_KEYS,
    Offsets,
    OffsetTexts,
)
from rocketbroker.broker.metadata.topics import loaded_version
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.cooperative_tasks import only_stopped
from rocketbroker.remoting.interfaces import IConnection, ISlices
from rocketbroker.wire.bodies.topics import DataVersion

#: The offset of a queue for which nothing was committed.
NONE: Final = -1

#: Ends the name of the group that has the least offsets of a broadcasting group.
BROADCAST: Final = "@broadcast"

#: Up to so many changed groups are written without slices: it takes two milliseconds.
FEW: Final = 500


class OffsetWatcher(Protocol):
    """Who goes by offsets, and has to know of more than commits."""

    def offset_reset(self, group: str, topic: str, queue_id: int) -> None:
        """A group is to go on elsewhere in a queue."""

    def offsets_forgotten(self, is_gone: Callable[[str, str], bool]) -> None:
        """The offsets of some groups and topics are gone.

        @param is_gone: whether those of a group in a topic are.
        """


@final
class OffsetTable:
    """Consumer offsets (kept), pull offsets and pending resets (in memory only).

    @ivar version: moves every consumerOffsetUpdateVersionStep commits.
    @ivar commits: how often an offset was committed.
    @ivar resets: those that are pending, if any; changed here only.
    """

    _log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        file: JsonTable,
        other_file: JsonTable,
        slices: ISlices,
        wall_ms: Callable[[], int],
    ) -> None:
        """
        @param file: that of the setting enableLmq.
        @param other_file: that of the opposite setting, which is only read.
        """
        self.version = DataVersion(timestamp=wall_ms())
        self.commits = 0
        self._saved_at = 0
        self._changes = 0
        self._take(options)
        self._file = file
        self._other_file = other_file
        self._taken_over: DataVersion | None = None
        self._slices = slices
        self._wall_ms = wall_ms
        self._offsets: Offsets = {}
        self._texts = OffsetTexts()
        self._stale = self._texts.stale
        self._pull_offsets: Offsets = {}
        self.resets: pending_resets.Resets = {}
        self._watchers: list[OffsetWatcher] = []

    def watch(self, watcher: OffsetWatcher) -> None:
        """Tell somebody who goes by these offsets when they are moved or forgotten."""
        self._watchers.append(watcher)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._take(settings.broker)

    def _take(self, options: BrokerOptions) -> None:
        self._step = max(1, options.consumer_offset_update_version_step)
        self._server_side = options.use_server_side_reset_offset

    def load(self) -> None:
        """I{Blocking.} Read the file, and what the other one has that is newer.

        @raise ConfigurationError: there is one that cannot be read.
        """
        content = "the offsets of all consumer groups"
        own = self._file.load_required(content)
        other = self._other_file.load_required(content)
        found = merged(own, other, self._wall_ms())
        self._offsets, self.version, self._taken_over, is_new = found
        if is_new:
            self._changes += 1
            self._log.info(
                "enableLmq: the offsets of {other} are taken over into {path}",
                other=self._other_file.path,
                path=self._file.path,
            )
        self._stale.update(self._offsets)
        self._texts.make(self._offsets)

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """A pending reset, else what was committed, else L{NONE}."""
        key = f"{topic}@{group}"
        if self.resets:
            reset = pending_resets.pending(self.resets, key, queue_id)
            if reset is not None:
                return reset
        queues = self._offsets.get(key)
        return NONE if queues is None else queues.get(queue_id, NONE)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Remember how far the group has come; lower values are taken too."""
        key = f"{topic}@{group}"
        queues = self._offsets.get(key)
        if queues is None:
            queues = self._offsets[key] = {}
        queues[queue_id] = offset
        self._stale.add(key)
        self._changes += 1
        self.commits += 1
        if self.commits % self._step == 0:
            self.version = self.version.next(self._wall_ms())

    def commit_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Remember where the group pulls next."""
        key = f"{topic}@{group}"
        queues = self._pull_offsets.get(key)
        if queues is None:
            queues = self._pull_offsets[key] = {}
        queues[queue_id] = offset

    def pull_offset(self, group: str, topic: str, queue_id: int) -> int:
        """Where the group pulls next; L{NONE} if it never did."""
        return self._pull_offsets.get(f"{topic}@{group}", {}).get(queue_id, NONE)

    def pulled(self) -> list[tuple[str, dict[int, int]]]:
        """Where groups pull next, by C{topic@group} and queue."""
        return list(self._pull_offsets.items())

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Let the group go on at C{offset} with its next pull; negative: nothing.

        Where clients are told instead (useServerSideResetOffset is off), it is only
        committed.
        """
        if offset < 0:
            return
        if self._server_side:
            key = f"{topic}@{group}"
            self.resets.setdefault(key, {})[queue_id] = pending_resets.PendingReset(
                offset
            )
        self.commit(group, topic, queue_id, offset)
        for watcher in self._watchers:
            watcher.offset_reset(group, topic, queue_id)

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Whether a reset is pending, so that commits are refused."""
        if not self.resets:
            return False
        key = f"{topic}@{group}"
        return pending_resets.pending(self.resets, key, queue_id) is not None

    def reset_for_pull(
        self,
        connection: IConnection,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
    ) -> int | None:
        """Where a pull that has just come is to go on instead of at C{offset}."""
        key = f"{topic}@{group}"
        return pending_resets.for_new_pull(
            self.resets, key, queue_id, connection, offset
        )

    def reset_for_held(
        self, connection: IConnection, group: str, topic: str, queue_id: int
    ) -> int | None:
        """Where a pull that was held is to go on."""
        key = f"{topic}@{group}"
        return pending_resets.for_held_pull(self.resets, key, queue_id, connection)

    def reset_for_pop(self, group: str, topic: str, queue_id: int) -> int | None:
        """Where a group that pops is to go on, once; None: where it is."""
        if not self.resets:
            return None
        return pending_resets.taken(self.resets, f"{topic}@{group}", queue_id)

    def keys(self) -> list[str]:
        """C{topic@group} of all that was committed."""
        return list(self._offsets)

    def progress(
        self, group: str, topic: str
    ) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """What L{query} and L{pull_offset} tell of all queues that they know.

        @return: to be looked at now, and not to be kept.
        """
        key = f"{topic}@{group}"
        committed = self._offsets.get(key, {})
        resets = self.resets.get(key)
        if resets:
            committed = committed | {at: each.offset for at, each in resets.items()}
        return committed, self._pull_offsets.get(key, {})

    def queues(self, group: str, topic: str) -> dict[int, int]:
        """A copy of the group's committed offsets in a topic."""
        return dict(self._offsets.get(f"{topic}@{group}", {}))

    def topics_of(self, group: str) -> list[str]:
        """The topics in which a group has offsets."""
        end = f"@{group}"
        keys = [key for key in self._offsets if key.endswith(end)]
        return [key.removesuffix(end) for key in keys if key.count("@") == 1]

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have offsets in a topic."""
        start = f"{topic}@"
        keys = [key for key in self._offsets if key.startswith(start)]
        return [key.removeprefix(start) for key in keys if key.count("@") == 1]

    def forget_group(self, group: str) -> None:
        """Forget all that is known of a group's progress."""
        for table in (self._offsets, self._pull_offsets, self.resets):
            keys = [key for key in table if group in key]
            self._forget(table, keys, lambda topic, its: its == group)
        for watcher in self._watchers:
            watcher.offsets_forgotten(lambda its, topic: its == group)

    def forget_topic(self, *topics: str) -> None:
        """Forget the progress of all groups in topics, at one look at the table.

        A reset or a pull offset of a topic that is gone would apply to the next topic
        of that name, and so would the progress of broadcasting groups, which RocketMQ
        keeps; so they go too.
        """
        names = frozenset(topics)
        for table in (self._offsets, self._pull_offsets, self.resets):
            keys = [key for key in table if key.partition("@")[0] in names]
            self._forget(table, keys, lambda topic, group: topic in names)
        for watcher in self._watchers:
            watcher.offsets_forgotten(lambda group, its: its in names)

    def _forget(
        self,
        table: dict[str, Any],
        keys: Iterable[str],
        is_gone: Callable[[str, str], bool],
    ) -> None:
        """Drop those of these keys whose topic and group are gone."""
        for key in keys:
            parts = key.removesuffix(BROADCAST).split("@")
            if len(parts) == 2 and is_gone(*parts):
                del table[key]
                self._stale.add(key)
                self._changes += 1

    def take_back(self, value: Mapping[str, object]) -> None:
        """Take over what was committed at a slave while this broker was away.

        @param value: the slave's table, as its file has it. If its version is newer,
            its offsets replace those of the same group and topic; if not, none goes
            back.
        """
        theirs = offsets_in(value)
        version = loaded_version(value, DataVersion())
        newer = version.is_newer_than(self.version)
        for key, queues in theirs.items():
            own = self._offsets.get(key, {})
            if not newer:
                known = own.items()
                queues.update(
                    {at: max(queues.get(at, NONE), each) for at, each in known}
                )
            if queues != own:
                self._offsets[key] = queues
                self._stale.add(key)
                self._changes += 1
        if newer:
            self.version = version

    def become(self, theirs: Offsets, version: DataVersion) -> Iterator[None]:
        """Take over a master's offsets, some groups at each step.

        A group whose offsets it has not keeps its own (C{docs/facts/ha.md}, trap 18).

        @param version: the master's.
        """
        for number, (key, queues) in enumerate(theirs.items(), 1):
            if self._offsets.get(key) != queues:
                self._offsets[key] = queues
                self._stale.add(key)
                self._changes += 1
            if not number % STEP_KEYS:
                yield
        self.version = version

    def made(self, owner: object) -> Deferred[dict[str, object]]:
        """The answer to request 43: what the file has, as it is now, made in slices.

        @param owner: who asks for it.
        """
        made = self._slices.run(owner, self._texts.steps(self._offsets))
        return made.addCallback(lambda _: self._made())

    def _made(self) -> dict[str, object]:
        queues, lmqs = self._texts.tables()
        tables: dict[str, object] = {
            "dataVersion": self.version.to_json(),
            "offsetTable": queues,
        }
        if lmqs is not None:
            tables[LIGHT_TABLE] = lmqs
        return tables

    def _content(self) -> dict[str, object]:
        """The file's content."""
        tables = self._made()
        if self._taken_over is not None:
            tables[TAKEN_OVER] = self._taken_over.to_json()
        return tables

    def save(self) -> Deferred[None]:
        """Write the file in a thread if anything was committed since the last time."""
        if self._changes == self._saved_at and not self._file.failed:
            return succeed(None)
        self._saved_at = self._changes
        if self._texts.waiting() <= FEW:
            self._texts.make(self._offsets)
            return self._file.save_soon(self._content)
        made = self._slices.run(self, self._texts.steps(self._offsets))
        made.addCallback(lambda _: self._file.save_soon(self._content))
        return made.addErrback(self._not_made)

    def _not_made(self, failure: Failure) -> None:
        """The broker stops: what is left is written at its end."""
        only_stopped(failure)
        self._saved_at = -1

    def save_now(self) -> Deferred[None]:
        """Write it in a thread, the text at once: nobody else waits any more."""
        self._texts.make(self._offsets)
        return self.save()

    def saved(self) -> Deferred[None]:
        """Fires when no write of the file is under way."""
        return self._file.idle()


def broadcast_group(group: str) -> str:
    """Under which name the least offsets of a broadcasting group stand."""
    return group + BROADCAST
