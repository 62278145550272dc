# -*- test-case-name: tests.routing.test_key_search -*-
"""Messages by a key: what is asked of one broker's index, and which answers count.

The index knows a hash of topic and key, and whole seconds, each up to 999 ms before a
message was stored; and a broker tells the newest L{INDEX_PAGE} at most
(C{docs/facts/store.md} 12.4). So all that comes is compared here, and older ones are
asked for until enough are found or nothing older comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.records import batches
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import QueryMessageRequestHeader

#: The field of request 12 that says that the key is a unique one.
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"

#: The end of all times.
FOREVER_MS: Final = (1 << 63) - 1

#: How many messages a broker tells of one key, unless its maxMsgsNumBatch is another.
INDEX_PAGE: Final = 64

#: The index knows no shorter time.
SECOND_MS: Final = 1000


def everything(message: StoredMessage) -> bool:
    """A filter that lets all messages pass."""
    return True


def by_store_time(message: StoredMessage) -> tuple[int, int]:
    """The order in which messages are told."""
    return message.store_ms, message.position


def index_request(
    topic: str, key: str, begin_ms: int, end_ms: int, is_unique: bool
) -> Command:
    """Ask what an index has under the hash of a topic and a key.

    @param is_unique: the key is the id that a send returned.
    """
    header = QueryMessageRequestHeader(
        topic=topic,
        key=key,
        max_num=INDEX_PAGE,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
    )
    # 4.9 with access control refuses signed queries with the field.
    extra = {UNIQUE_KEY_QUERY: "true"} if is_unique else {}
    return Command(RequestCode.QUERY_MESSAGE, {**header.to_ext(), **extra})


def told(answer: Command) -> list[StoredMessage]:
    """The messages in an answer to request 12 or 33.

    @raise RemoteProtocolError: something in there is no message.
    """
    try:
        return [*batches.messages(answer.body)]
    except Malformed as problem:
        raise RemoteProtocolError(f"the broker sent no message: {problem}") from None


def with_unique_key(
    page: Sequence[StoredMessage], topic: str, key: str
) -> list[StoredMessage]:
    """Those that have that key, and not only its hash."""
    return [one for one in page if one.topic == topic and one.unique_key == key]


@final
class KeySearch:
    """The search for a key on one broker: ask L{request}, and L{take} what is told.

    @ivar is_over: nothing more is to be asked.
    @ivar is_whole: False: more messages of one second have that hash than the broker
        tells, so some may be missing.
    """

    def __init__(
        self,
        topic: str,
        key: str,
        most: int,
        begin_ms: int = 0,
        end_ms: int = FOREVER_MS,
        wanted: Callable[[StoredMessage], bool] = everything,
    ) -> None:
        """
        @param begin_ms: the first store time.
        @param end_ms: the last store time.
        @param wanted: what else a message has to be.
        """
        self._topic = topic
        self._key = key
        self._most = most
        self._begin_ms = begin_ms
        self._end_ms = end_ms
        self._wanted = wanted
        self._found: list[StoredMessage] = []
        self._seen: set[str] = set()
        self._first_ms = max(0, begin_ms - SECOND_MS + 1)
        self._until_ms = end_ms
        self.is_whole = True
        self.is_over = most <= 0 or self._until_ms < self._first_ms

    def request(self) -> Command:
        """What to ask next."""
        return index_request(
            self._topic, self._key, self._first_ms, self._until_ms, False
        )

    def take(self, page: Sequence[StoredMessage]) -> None:
        """The broker has told these; empty: it has none."""
        if not page:
            self.is_over = True
            return
        new = [one for one in page if one.offset_id not in self._seen]
        self._seen.update(one.offset_id for one in new)
        self._found += (one for one in new if self._counts(one))
        oldest_ms = min(one.store_ms for one in page)
        if new:
            self._until_ms = min(self._until_ms, oldest_ms)
        else:
            self.is_whole = self.is_whole and len(page) < INDEX_PAGE
            self._until_ms = oldest_ms - SECOND_MS
        enough = len(self._found) >= self._most
        self.is_over = enough or self._until_ms < self._first_ms

    def _counts(self, one: StoredMessage) -> bool:
        return (
            one.topic == self._topic
            and self._key in one.keys
            and self._begin_ms <= one.store_ms <= self._end_ms
            and self._wanted(one)
        )

    @property
    def messages(self) -> list[StoredMessage]:
        """Those that are wanted, by store time; the newest if there are more."""
        return sorted(self._found, key=by_store_time)[-self._most :]
