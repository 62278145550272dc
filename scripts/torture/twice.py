"""Messages of transactions that were delivered twice, and whether they may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocketbroker.broker.messages.transaction_messages import offsets_in, root_of
from rocketbroker.records.record import StoredMessage

NEVER = 1 << 62


def delivered_again(
    halves: Iterable[StoredMessage],
    marks: Iterable[StoredMessage],
    messages: Iterable[StoredMessage],
) -> Iterator[tuple[StoredMessage, bool]]:
    """The messages of a queue that are there again.

    @param halves: the half queue.
    @param marks: the op queue.
    @return: of each the message that was there before, and whether its transaction was
        marked as over before: then it is one too many.
    """
    known: dict[int, StoredMessage] = {}
    copies: dict[int, list[StoredMessage]] = {}
    for half in halves:
        known[half.position] = half
        copies.setdefault(root_of(half), []).append(half)
    marked: dict[int, int] = {}
    for mark in marks:
        for offset in offsets_in(mark.body):
            marked.setdefault(offset, mark.position)
    before: dict[str, StoredMessage] = {}
    for message in messages:
        key = message.unique_key or ""
        older = before.get(key)
        if older is not None:
            # All copies but the last are marked because there is another one.
            root = root_of(known[message.prepared_offset])
            there = [c for c in copies[root] if c.position < message.position]
            yield older, marked.get(there[-1].queue_offset, NEVER) < message.position
        before[key] = message
