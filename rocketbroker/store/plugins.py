# -*- test-case-name: tests.store.test_log_tail -*-
"""What plug-ins of the store provide, and what they are given.

Two kinds there are, each found by Twisted's plug-in system and chosen by a setting
that has their names, separated by commas:

  - C{messageStorePlugIn}: a L{IStorePlugin} stands between the broker and its store and
    sees every step that is taken. The first one named is the outermost. It is as fast
    and as safe as what it does: it works in the reactor's thread, within each turn.
  - C{dispatchFollowers}: a L{IFollowerPlugin} makes an L{IRecordFollower}, which walks
    behind the dispatch at its own pace, in a thread of its own. It harms nobody by
    being slow or by failing, and misses nothing by that, or by a restart.

C{docs/facts/broker.md} 24; names of ours where Java loads classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from zope.interface import Attribute, Interface

from rocketbroker.store.dispatched_record import DispatchedRecord
from rocketbroker.store.interfaces import IStore


class IStorePlugin(Interface):
    """Stands between the broker and its store."""

    name: str = Attribute("How the setting messageStorePlugIn calls it.")

    def wrap(store: IStore, settings: Mapping[str, str]) -> IStore:
        """The store that the broker gets to see.

        What C{twisted.python.components.proxyForInterface(IStore)} makes hands on
        everything; a plug-in changes what it wants to.

        @param store: the store, not open yet.
        @param settings: all settings of the broker as text, also those that only the
            plug-in knows.
        @raise ConfigurationError: the broker cannot start so; one sentence.
        """


class IRecordFollower(Interface):
    """Sees each record that was dispatched, in the order of the log.

    All methods are called in one thread, which is its own, and may block. What any of
    them raises is logged, and it is asked again later.
    """

    def start(remembered: int | None, end: int) -> int:
        """Where it goes on. Called until it succeeds, and once after that.

        Only what is on the disk is shown, so that no crash takes back what was seen.

        @param remembered: the position behind the last record that it has taken, as
            the broker remembers it, which is up to some seconds ago after a crash;
            None if it has never run in this store. To give it back is to see some
            records twice after a crash, and never none.
        @param end: the position behind the newest record when the broker was started.
        @return: a position behind a record, or 0 for the oldest there is.
        """

    def follow(records: Sequence[DispatchedRecord]) -> None:
        """Take these records; the same again if it raises."""

    def stop() -> None:
        """The broker stops."""


class IFollowerPlugin(Interface):
    """Makes a follower."""

    name: str = Attribute("How the setting dispatchFollowers calls it.")

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
