# -*- test-case-name: tests.broker.metadata.test_groups -*-
"""The consumer groups of this broker and their settings.

A L{SubscriptionGroupConfig} in the table is never changed, it is replaced;
C{generation} tells caches that the table has changed.

C{docs/facts/broker.md} 11.8.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, final

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.creation_limit import CreationLimit
from rocketbroker.broker.metadata.deletions import Deletions
from rocketbroker.broker.metadata.topics import READ, loaded_version, sort_in
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records.names import SYSTEM_GROUP_PREFIX, group_problem, is_lmq
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.topics import DataVersion
from rocketbroker.wire.fastjson import joined

#: Groups that are there at every start.
BUILT_IN: Final = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)


@final
class GroupTable:
    """All consumer groups by name.

    @ivar generation: moves with each change.
    @ivar version: what slaves compare.
    @ivar limit: how many groups clients may create by using them.
    @ivar deletions: the groups that were deleted not long ago.
    """

    _log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        file: JsonTable,
        wall_ms: Callable[[], int],
        lmq: bool = False,
    ) -> None:
        """
        @param lmq: enableLmq: groups of LMQs are there without being made.
        """
        self.limit = CreationLimit(
            "Groups",
            "rocketbrokerMaxAutoGroups",
            options.rocketbroker_max_auto_groups,
        )
        self.deletions = Deletions(wall_ms)
        self._lmq = lmq
        self.generation = 0
        self.version = DataVersion(timestamp=wall_ms())
        self._options = options
        self._file = file
        self._wall_ms = wall_ms
        self._configs = {
            name: SubscriptionGroupConfig(group_name=name) for name in BUILT_IN
        }
        self._sorted = sorted(self._configs)
        self._forbidden: dict[str, dict[str, int]] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self.limit.most = settings.broker.rocketbroker_max_auto_groups

    def load(self) -> None:
        """I{Blocking.} Merge the file over the built-in groups."""
        value = self._file.load()
        if value is None:
            return
        table = value.get("subscriptionGroupTable")
        for name, entry in table.items() if isinstance(table, dict) else ():
            try:
                config = SubscriptionGroupConfig.from_json(entry)
            except RemoteProtocolError as error:
                self._log.warn(
                    "{path}: group {name}: {error}",
                    path=self._file.path,
                    name=name,
                    error=error,
                )
            else:
                self._configs[config.group_name] = config
        self._sorted = sorted(self._configs)
        self._forbidden = loaded_masks(value.get("forbiddenTable"))
        self.version = loaded_version(value, self.version)
        self.generation += 1
        self.to_json()  # The texts are made before anybody waits for them.

    def config(self, name: str) -> SubscriptionGroupConfig | None:
        """The group's settings if it is there; nothing is created."""
        found = self._configs.get(name)
        if found is not None or not self._lmq or not is_lmq(name):
            return found
        return SubscriptionGroupConfig(group_name=name) if is_named(name) else None

    def find(self, name: str) -> SubscriptionGroupConfig | None:
        """The group's settings, created if that is allowed; None if not."""
        found = self.config(name)
        if found is not None:
            return found
        options = self._options
        system = (
            name.startswith(SYSTEM_GROUP_PREFIX) and options.enable_create_sys_group
        )
        if not (options.auto_create_subscription_group or system):
            return None
        if group_problem(name) is not None:
            return None
        if not self.limit.allows(len(self), name):
            return None
        config = SubscriptionGroupConfig(group_name=name)
        self.put([config])
        return config

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self._configs)

    def configs(self) -> list[SubscriptionGroupConfig]:
        """All groups, sorted by name."""
        configs = self._configs
        return [configs[name] for name in self._sorted]

    def put(self, configs: Sequence[SubscriptionGroupConfig]) -> None:
        """Store groups as they are."""
        names = [config.group_name for config in configs]
        sort_in(self._sorted, {name for name in names if name not in self._configs})
        self._configs.update(zip(names, configs, strict=True))
        self._changed()

    def known(self) -> dict[str, SubscriptionGroupConfig]:
        """All groups by name, to be kept."""
        return self._configs.copy()

    def become(
        self,
        changed: Sequence[SubscriptionGroupConfig],
        gone: Sequence[str],
        version: DataVersion,
    ) -> None:
        """Be a copy of a master's table; what is forbidden to groups stays.

        @param gone: what the master does not have; built-in groups stay.
        @param version: the master's.
        """
        left = set(gone).difference(BUILT_IN)
        for name in left:
            self._configs.pop(name, None)
        self.deletions.note(left)
        self._configs.update({config.group_name: config for config in changed})
        self._sorted = sorted(self._configs)
        self.version = version
        self._note()

    def disable(self, name: str) -> bool:
        """Let a group consume no more, in memory only; whether it is there.

        The file has it with the next change of any group.
        """
        config = self._configs.get(name)
        if config is None:
            return False
        self._configs[name] = attrs.evolve(config, consume_enable=False)
        self.generation += 1
        self.version = self.version.next(self._wall_ms())
        return True

    def delete(self, name: str) -> bool:
        """Forget a group and what is forbidden to it; whether it was there."""
        self._forbidden.pop(name, None)
        if self._configs.pop(name, None) is None:
            return False
        del self._sorted[bisect_left(self._sorted, name)]
        self.deletions.note([name])
        self._changed()
        return True

    def read_forbidden(self, group: str, topic: str) -> bool:
        """Whether the group may not read the topic."""
        if not self._forbidden:
            return False
        return bool(self._forbidden.get(group, {}).get(topic, 0) & READ)

    def forbid_read(self, group: str, topic: str, forbidden: bool) -> None:
        """Forbid the group to read the topic, or allow it again.

        RocketMQ allows the group all topics again, and forgets to write that.
        """
        if forbidden == self.read_forbidden(group, topic):
            return
        topics = dict(self._forbidden.get(group, {}))
        mask = topics.pop(topic, 0) & ~READ
        if forbidden:
            mask |= READ
        if mask:
            topics[topic] = mask
        if topics:
            self._forbidden[group] = topics
        else:
            self._forbidden.pop(group, None)
        self._changed()

    def _changed(self) -> None:
        self.version = self.version.next(self._wall_ms())
        self._note()

    def _note(self) -> None:
        self.generation += 1
        self._file.save_soon(self.to_json)

    def to_json(self) -> dict[str, object]:
        """The file, and the answer to request 201; as that of topics."""
        return {
            "dataVersion": self.version.to_json(),
            "forbiddenTable": dict(self._forbidden),
            "subscriptionGroupTable": joined(
                [config.member for config in self.configs()]
            ),
        }

    def saved(self) -> Deferred[None]:
        """Fires when all changes so far are in the file."""
        return self._file.idle()

    def kept(self) -> Deferred[None]:
        """Fires when all changes so far are in the file; fails if they cannot be."""
        return self._file.kept()

    def save(self) -> Deferred[None]:
        """Write the file in a thread if the last write of it failed."""
        if not self._file.failed:
            return succeed(None)
        return self._file.save_soon(self.to_json)


def is_named(group: str) -> bool:
    """Whether a group can have that name."""
    return group_problem(group) is None


def loaded_masks(value: object) -> dict[str, dict[str, int]]:
    """C{group -> topic -> forbidden permissions} as a file holds them."""
    if not isinstance(value, dict):
        return {}
    return {
        str(group): {
            str(topic): mask for topic, mask in topics.items() if isinstance(mask, int)
        }
        for group, topics in value.items()
        if isinstance(topics, dict)
    }
