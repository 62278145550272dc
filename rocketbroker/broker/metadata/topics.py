# -*- test-case-name: tests.broker.metadata.test_topics -*-
"""The topics of this broker, and how they are created.

A L{TopicConfig} in the table is never changed, it is replaced; C{generation} tells
caches that the table has changed.

C{docs/facts/broker.md} 11, which also the numbers of sections below are of.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, final

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.creation_limit import CreationLimit
from rocketbroker.broker.metadata.deletions import Deletions
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import RemoteProtocolError, TopicNotExist
from rocketbroker.records.names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    HALF_TOPIC,
    MAX_QUEUES,
    OFFSET_MOVED_TOPIC,
    OP_HALF_TOPIC,
    REVIVE_PREFIX,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYNC_MEMBER_PREFIX,
    SYSTEM_TOPICS,
    TIMER_TOPIC,
    is_lmq,
    is_retry_topic,
    is_system_topic,
    reply_topic,
    topic_problem,
)
from rocketbroker.wire.bodies.topics import DataVersion, TopicConfig
from rocketbroker.wire.fastjson import joined

READ: Final = 4
WRITE: Final = 2
INHERIT: Final = 1

#: Bits of the topic's system flag: it belongs to a unit; consumers of one read it.
UNIT: Final = 1
UNIT_SUBSCRIPTION: Final = 2

#: How many queues built-in topics have that have more than one.
SCHEDULE_QUEUES: Final = 18
BENCHMARK_QUEUES: Final = 1024
CLUSTER_QUEUES: Final = 16

#: How many changes are remembered by name; a cache that missed more starts anew.
MAX_CHANGES: Final = 100


@final
class TopicTable:
    """The table of topics by name.

    @ivar generation: moves with each change.
    @ivar version: what name servers compare.
    @ivar limit: how many topics sends may create.
    @ivar deletions: the topics that were deleted not long ago.
    """

    _log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        file: JsonTable,
        wall_ms: Callable[[], int],
        timer: bool = True,
        lmq: bool = False,
    ) -> None:
        """
        @param timer: timerWheelEnable.
        @param lmq: enableLmq: topics of LMQs are there without being made.
        """
        self.limit = CreationLimit(
            "Topics",
            "rocketbrokerMaxAutoTopics",
            options.rocketbroker_max_auto_topics,
        )
        self.deletions = Deletions(wall_ms)
        self._lmq = lmq
        self._timer = timer
        self.generation = 0
        self.version = DataVersion(timestamp=wall_ms())
        self._options = options
        self._file = file
        self._wall_ms = wall_ms
        self._configs = {
            config.topic_name: config for config in built_in_topics(options, timer)
        }
        self._sorted = sorted(self._configs)
        #: The names in each of the last changes: one for each generation.
        self._changes: deque[list[str]] = deque(maxlen=MAX_CHANGES)
        self._built_in = frozenset(self._configs)
        #: The topics whose last change is not in the file yet, each with the generation
        #: of that change.
        self._unsaved: dict[str, int] = {}
        #: Who waits for topics to be in the file.
        self._waiting: list[tuple[tuple[str, ...], Deferred[None]]] = []
        self._watchers: list[Callable[[list[str]], None]] = []
        self._change_watchers: list[Callable[[], object]] = []

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on: built-in topics become what they would be at
        a start without a file, if that is something else; none goes."""
        before = built_in_topics(self._options, self._timer)
        self._options = options = settings.broker
        self.limit.most = options.rocketbroker_max_auto_topics
        after = built_in_topics(options, self._timer)
        self._built_in |= {config.topic_name for config in after}
        changed = [config for config in after if config not in before]
        if changed:
            self.put(changed)

    def load(self) -> None:
        """I{Blocking.} Merge the file over the built-in topics.

        @raise ConfigurationError: there is one that cannot be read.
        """
        value = self._file.load_required("all topics but those that sends create")
        if value is None:
            return
        table = value.get("topicConfigTable")
        for name, entry in table.items() if isinstance(table, dict) else ():
            try:
                config = TopicConfig.from_json(entry)
            except RemoteProtocolError as error:
                self._log.warn(
                    "{path}: topic {name}: {error}",
                    path=self._file.path,
                    name=name,
                    error=error,
                )
            else:
                config = bounded(config)
                self._configs[config.topic_name] = config
        self._sorted = sorted(self._configs)
        self.version = loaded_version(value, self.version)
        self.generation += 1
        self._changes.clear()
        self.to_json()  # The texts are made before anybody waits for them.

    def config(self, name: str) -> TopicConfig | None:
        """The topic's settings; None if there is no such topic."""
        found = self._configs.get(name)
        if found is None and self._lmq and is_lmq(name):
            return lmq_config(name)
        return found

    def is_batch(self, name: str) -> bool:
        """Whether the topic is there and has batch queues."""
        config = self._configs.get(name)
        return config is not None and has_batch_queues(config)

    def __len__(self) -> int:
        """How many topics there are."""
        return len(self._configs)

    def names(self) -> list[str]:
        """The names of all topics, sorted."""
        return self._sorted.copy()

    def configs(self) -> list[TopicConfig]:
        """All topics, sorted by name."""
        configs = self._configs
        return [configs[name] for name in self._sorted]

    def is_system(self, name: str) -> bool:
        """Whether the topic belongs to the system (section 11.3)."""
        return name in self._built_in or is_system_topic(name)

    def system_names(self) -> list[str]:
        """The topics of the system, sorted."""
        return sorted(SYSTEM_TOPICS | self._built_in)

    def create_for_send(
        self,
        name: str,
        default_topic: str,
        queue_nums: int,
        unit_mode: bool = False,
        exempt: bool = False,
    ) -> TopicConfig | None:
        """Create a topic because of a send to it (section 11.5).

        It is written to the file in the background: a caller that must not lose it
        answers once L{saved} has fired for it.

        @param default_topic: whose settings it inherits.
        @param queue_nums: how many queues the sender wants; the default topic's
            number is the most it gets.
        @param unit_mode: the sender belongs to a unit, and so does its topic; a retry
            topic is one that consumers of the unit read.
        @param exempt: whether the limit of topics does not count.
        @return: its settings; None if it may not be created.
        @raise TopicNotExist: there are as many as sends may create.
        """
        found = self._configs.get(name)
        if found is not None:
            return found
        flag = 0
        if unit_mode:
            flag = UNIT_SUBSCRIPTION if is_retry_topic(name) else UNIT
        default = self._configs.get(default_topic)
        if default is None:
            return self._create_retry(name, flag, exempt)
        perm = default.perm
        if (
            default_topic == AUTO_CREATE_TOPIC
            and not self._options.auto_create_topic_enable
        ):
            perm &= ~INHERIT
        if not perm & INHERIT:
            return self._create_retry(name, flag, exempt)
        if not exempt:
            self._check_limit(name)
        queues = max(0, min(queue_nums, default.write_queue_nums))
        config = TopicConfig(
            topic_name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm & ~INHERIT,
            topic_filter_type=default.topic_filter_type,
            topic_sys_flag=flag,
        )
        self.put([config])
        return config

    def _create_retry(self, name: str, flag: int, exempt: bool) -> TopicConfig | None:
        if not is_retry_topic(name):
            return None
        if not exempt:
            self._check_limit(name)
        return self.ensure(name, 1, sys_flag=flag)

    def _check_limit(self, name: str) -> None:
        limit = self.limit
        if not limit.allows(len(self), name):
            raise TopicNotExist(
                f"topic[{name}] not exist, and is not created: the broker has as many "
                f"topics as {limit.key} allows ({limit.most})"
            )

    def ensure(
        self,
        name: str,
        queue_nums: int,
        perm: int = READ | WRITE,
        order: bool = False,
        sys_flag: int = 0,
    ) -> TopicConfig:
        """The topic, made if it is missing; its order flag becomes C{order}.

        @param sys_flag: of one that is made; one that is there keeps its own.
        """
        config = self._configs.get(name)
        if config is not None and config.order == order:
            return config
        if config is None:
            config = TopicConfig(
                topic_name=name,
                read_queue_nums=queue_nums,
                write_queue_nums=queue_nums,
                perm=perm,
                order=order,
                topic_sys_flag=sys_flag,
            )
        else:
            config = attrs.evolve(config, order=order)
        config = bounded(config)
        self.put([config])
        return config

    def put(self, configs: Sequence[TopicConfig]) -> None:
        """Store topics as they are, and call the watchers."""
        names = [config.topic_name for config in configs]
        sort_in(self._sorted, {name for name in names if name not in self._configs})
        self._configs.update(zip(names, configs, strict=True))
        self._changed(names)
        for watcher in self._watchers:
            watcher(names)

    def stored(self, names: Iterable[str]) -> list[TopicConfig | None]:
        """Of each of these topics what was put last."""
        return [self._configs.get(name) for name in names]

    def known(self) -> dict[str, TopicConfig]:
        """All topics by name, to be kept."""
        return self._configs.copy()

    def become(
        self, changed: Sequence[TopicConfig], gone: Sequence[str], version: DataVersion
    ) -> None:
        """Be a copy of a master's table, and call the watchers.

        @param gone: what the master does not have; built-in topics stay.
        @param version: the master's.
        """
        left = [name for name in gone if name not in self._built_in]
        for name in left:
            self._configs.pop(name, None)
        self.deletions.note(left)
        names = [config.topic_name for config in changed]
        self._configs.update(zip(names, changed, strict=True))
        self._sorted = sorted(self._configs)
        self.version = version
        self._note(left + names)
        for watcher in self._watchers:
            watcher(names)

    def delete(self, name: str) -> bool:
        """Forget a topic; whether it was there. Name servers hear of it later."""
        if self._configs.pop(name, None) is None:
            return False
        del self._sorted[bisect_left(self._sorted, name)]
        self.deletions.note([name])
        self._changed([name])
        return True

    def changed_since(self, generation: int) -> set[str] | None:
        """The topics that were made, changed or deleted after that generation.

        @return: None if there were too many changes to tell.
        """
        count = self.generation - generation
        if count > len(self._changes):
            return None
        return set().union(*islice(reversed(self._changes), count))

    def touch(self) -> None:
        """Move the version on without a change of a topic."""
        self.version = self.version.next(self._wall_ms())

    def _changed(self, names: list[str]) -> None:
        self.touch()
        self._note(names)

    def _note(self, names: list[str]) -> None:
        self.generation += 1
        for watcher in self._change_watchers:
            watcher()
        self._changes.append(names)
        saved = self._file.save_soon(self.to_json)
        self._unsaved.update(dict.fromkeys(names, self.generation))
        saved.addCallback(self._names_saved, names, self.generation)

    def _names_saved(self, _: None, names: list[str], generation: int) -> None:
        for name in names:
            if self._unsaved.get(name) == generation:
                del self._unsaved[name]
        waiting, self._waiting = self._waiting, []
        for wanted, done in waiting:
            if self._unsaved.keys().isdisjoint(wanted):
                done.callback(None)
            else:
                self._waiting.append((wanted, done))

    def to_json(self) -> dict[str, object]:
        """The content of the file, and of answers to other servers.

        The text of each topic is made once and kept with it.
        """
        return {
            "dataVersion": self.version.to_json(),
            "topicConfigTable": joined([config.member for config in self.configs()]),
        }

    @property
    def pause_seconds(self) -> float:
        """How long changes are gathered: nothing while the table is small."""
        return self._file.pause_seconds

    def is_saved(self, name: str) -> bool:
        """Whether no change of that topic waits to be written."""
        return name not in self._unsaved

    def saved(self, *names: str) -> Deferred[None]:
        """Fires when all changes so far are in the file.

        @param names: only those of these topics, if any is named: where topics are
            made all the time, some change always waits.
        """
        if not names:
            return self._file.idle()
        if self._unsaved.keys().isdisjoint(names):
            return succeed(None)
        done: Deferred[None] = Deferred()
        self._waiting.append((names, done))
        return done

    def kept(self, *names: str) -> Deferred[None]:
        """The same, but fails if they cannot be written."""
        return self.saved(*names).addCallback(self._file.check)

    def save(self) -> Deferred[None]:
        """Write the file in a thread if the last write of it failed."""
        if not self._file.failed:
            return succeed(None)
        return self._file.save_soon(self.to_json)

    def watch_changes(self, changed: Callable[[], object]) -> None:
        """Call C{changed} with each change, a deletion too, before anybody hears of it
        or acts by it."""
        self._change_watchers.append(changed)

    def watch(self, changed: Callable[[list[str]], None]) -> None:
        """Call C{changed} with the names after topics were made or changed."""
        self._watchers.append(changed)


def sort_in(names: list[str], more: set[str]) -> None:
    """Add names to a sorted list; where they are many, each alone would move it all."""
    if len(more) == 1:
        insort(names, more.pop())
    elif more:
        names.extend(more)
        names.sort()


def built_in_topics(options: BrokerOptions, timer: bool) -> list[TopicConfig]:
    """The topics that are there at every start (section 11.2)."""
    cluster, broker = options.broker_cluster_name, options.broker_name
    both = READ | WRITE
    named = both | INHERIT
    wanted = [
        (SELF_TEST_TOPIC, 1, both, True),
        (
            AUTO_CREATE_TOPIC,
            options.default_topic_queue_nums,
            named,
            options.auto_create_topic_enable,
        ),
        (BENCHMARK_TOPIC, BENCHMARK_QUEUES, both, True),
        (
            cluster,
            CLUSTER_QUEUES,
            named if options.cluster_topic_enable else INHERIT,
            True,
        ),
        (broker, 1, named if options.broker_topic_enable else INHERIT, True),
        (OFFSET_MOVED_TOPIC, 1, both, True),
        (SCHEDULE_TOPIC, SCHEDULE_QUEUES, both, True),
        (options.msg_trace_topic_name, 1, both, options.trace_topic_enable),
        (reply_topic(cluster), 1, both, True),
        (REVIVE_PREFIX + cluster, options.revive_queue_num, both, True),
        (SYNC_MEMBER_PREFIX + broker, 1, INHERIT, True),
        (HALF_TOPIC, 1, both, True),
        (OP_HALF_TOPIC, 1, both, True),
        (TIMER_TOPIC, 1, both, timer),
    ]
    return [
        TopicConfig(
            topic_name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
        )
        for name, queues, perm, there in wanted
        if there
    ]


def lmq_config(name: str) -> TopicConfig | None:
    """The settings of a topic of an LMQ; None if it cannot have that name."""
    if topic_problem(name) is not None:
        return None
    return TopicConfig(
        topic_name=name, read_queue_nums=1, write_queue_nums=1, perm=READ | WRITE
    )


def has_batch_queues(config: TopicConfig) -> bool:
    """Whether a topic's queues have a unit for each batch, or message that is alone,
    and not an entry for each message (section 11.7)."""
    return config.attributes.get("queue.type") == "BatchCQ"


def bounded(config: TopicConfig) -> TopicConfig:
    """A topic with no more queues than one may have: files and groups say anything."""
    reads, writes = config.read_queue_nums, config.write_queue_nums
    if 0 <= reads <= MAX_QUEUES and 0 <= writes <= MAX_QUEUES:
        return config
    return attrs.evolve(
        config,
        read_queue_nums=max(0, min(reads, MAX_QUEUES)),
        write_queue_nums=max(0, min(writes, MAX_QUEUES)),
    )


def loaded_version(value: Mapping[Any, object], default: DataVersion) -> DataVersion:
    """The data version that a file holds; C{default} if it holds none."""
    try:
        return DataVersion.from_json(value.get("dataVersion"))
    except RemoteProtocolError:
        return default
