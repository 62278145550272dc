# -*- test-case-name: tests.store.test_log_tail -*-
"""The interfaces of plug-ins of the store.

There are two kinds, each found by Twisted's plug-in system and chosen by a setting with
their names, separated by commas:

  - C{messageStorePlugIn}: a L{IStorePlugin} stands between the broker and its store,
    and every call of the store passes through it. The first one named is the
    outermost. It works in the reactor's thread, within each turn: a slow one slows the
    broker.
  - C{dispatchFollowers}: a L{IFollowerPlugin} makes an L{IRecordFollower}, which
    follows the dispatch at its own pace, in a thread of its own. The broker does not
    wait for a slow one, or fail with it; and it misses nothing by errors or a restart.

C{docs/facts/broker.md} 24. RocketMQ names Java classes; here a plug-in has a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from zope.interface import Attribute, Interface

from rocketbroker.store.dispatched_record import DispatchedRecord
from rocketbroker.store.interfaces import IStore


class IStorePlugin(Interface):
    """Stands between the broker and its store."""

    name: str = Attribute("Its name in the setting messageStorePlugIn.")

    def wrap(store: IStore, settings: Mapping[str, str]) -> IStore:
        """The store that the broker uses.

        A class that C{twisted.python.components.proxyForInterface(IStore)} makes hands
        on all calls; a plug-in overrides some of its methods.

        @param store: the store, not open yet.
        @param settings: all settings of the broker as text, also those that only the
            plug-in knows.
        @raise ConfigurationError: the broker cannot start so; one sentence.
        """


class IRecordFollower(Interface):
    """A follower: receives each record that was dispatched, in the order of the log.

    All methods are called in one thread, which is its own, and may block. An error that
    one of them raises is logged, and the call is repeated later.
    """

    def start(remembered: int | None, end: int) -> int:
        """The position where it goes on. Called until it succeeds once.

        It receives only records that are on the disk, so that no crash takes one back.

        @param remembered: the position behind the last record that it has taken, as
            the broker remembers it, after a crash up to some seconds old; None if it
            has never run in this store. A follower that returns it receives some
            records twice after a crash, but misses none.
        @param end: the position behind the newest record when the broker was started.
        @return: a position behind a record, or 0 for the oldest record.
        """

    def follow(records: Sequence[DispatchedRecord]) -> None:
        """Take these records; the same again if it raises."""

    def stop() -> None:
        """The broker stops."""


class IFollowerPlugin(Interface):
    """A plug-in that makes a follower of records."""

    name: str = Attribute("Its name in the setting dispatchFollowers.")

    def follower(
        folder: str,
        settings: Mapping[str, str],
        record_at: Callable[[int], bytes | None],
    ) -> IRecordFollower:
        """A follower for one broker.

        @param folder: a directory that it has for itself, and that may not be there.
        @param settings: all settings of the broker as text, also those that only the
            plug-in knows.
        @param record_at: the whole record at a position, None if it is gone; with
            L{rocketbroker.records.record.decode} a message with its body.
        """
