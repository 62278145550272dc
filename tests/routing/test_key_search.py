"""The search for a key on one broker."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records import hosts, properties
from rocketbroker.records.record import StoredMessage, decode, encode
from rocketbroker.routing.key_search import (
    INDEX_PAGE,
    UNIQUE_KEY_QUERY,
    KeySearch,
    index_request,
    told,
)
from rocketbroker.wire.command import Command

HOST = hosts.encode("10.0.0.1", 10911)


def message(number: int, store_ms: int, key: str = "k") -> StoredMessage:
    """A message with a key."""
    own = properties.encode({"KEYS": key})
    place = (0, number, number * 100)
    return decode(encode(b"T", b"x", own, *place, 1, HOST, store_ms, HOST))


class KeySearchTests(SynchronousTestCase):
    """Pages that a broker tells, the newest of a span."""

    def search(
        self, search: KeySearch, stored: Sequence[StoredMessage]
    ) -> list[tuple[int, int]]:
        """Search to the end; the span of each request."""
        spans = []
        while not search.is_over:
            ext = search.request().ext or {}
            begin, end = int(ext["beginTimestamp"]), int(ext["endTimestamp"])
            spans.append((begin, end))
            search.take([m for m in stored if begin <= m.store_ms <= end][-INDEX_PAGE:])
        return spans

    def test_onlyUniqueKeysAreMarked(self) -> None:
        """RocketMQ 4.9 with access control takes no query that is marked and signed."""
        for is_unique, mark in ((True, "true"), (False, None)):
            ext = index_request("T", "k", 0, 1, is_unique).ext or {}
            self.assertEqual(ext.get(UNIQUE_KEY_QUERY), mark)

    def test_otherKeysOfThatHashDoNotCount(self) -> None:
        """Older messages are asked for until there are enough."""
        stored = [message(0, 5000), *(message(n, 9000 + n, "o") for n in range(1, 99))]
        search = KeySearch("T", "k", 1)
        spans = self.search(search, stored)
        self.assertEqual(search.messages, stored[:1])
        self.assertTrue(search.is_whole)
        self.assertEqual([end for _, end in spans[1:]], [9035])

    def test_moreOfOneSecondThanIsTold(self) -> None:
        """Some are missed, and that is known."""
        stored = [message(0, 1000), *(message(n, 9000, "o") for n in range(1, 99))]
        search = KeySearch("T", "k", 5)
        self.search(search, stored)
        self.assertEqual(search.messages, stored[:1])
        self.assertFalse(search.is_whole)

    def test_spanIsOfStoreTimes(self) -> None:
        """The index may have them up to a second before."""
        stored = [message(n, 1000 + n) for n in range(9)]
        search = KeySearch("T", "k", 9, 1003, 1005)
        ((begin, end), *_) = self.search(search, stored)
        self.assertEqual((begin, end), (4, 1005))
        self.assertEqual(search.messages, stored[3:6])

    def test_nonsenseIsRefused(self) -> None:
        """Rather than that a message is made of it."""
        with self.assertRaises(RemoteProtocolError):
            told(Command(0, {}, b"no message"))
