# -*- test-case-name: tests.export.test_resume_point -*-
"""Reads that begin where an export ended: C{startingOffsets=export:DIR}."""

from __future__ import annotations

from collections.abc import Iterable

from rocketbroker.arrow.message_identity import fingerprint_at
from rocketbroker.errors import ConfigurationError
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.open_storage import open_storage
from rocketbroker.export.plans import End
from rocketbroker.sources.option_values import Named
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import DataLoss, Origin


def export_ends(
    origin: Origin, queues: Iterable[Queue], address: str, detect_reset: bool
) -> Named:
    """Where an export ended, of the queues of which it has something.

    @param origin: where the queues are read from.
    @param address: the export's directory, or another address of C{export run --to}.
    @param detect_reset: see that the last message exported is still the one at its
        offset.
    @raise ConfigurationError: there is no export, or not of these queues.
    @raise StoreError: its last commit cannot be read.
    @raise DataLoss: the topic was deleted and created again.
    """
    ends = Ledger(open_storage(address)).ends()
    if not ends:
        raise ConfigurationError(f"{address} holds no export")
    found = [(queue, ends[queue]) for queue in sorted(queues) if queue in ends]
    if not found:
        names = ", ".join(str(queue) for queue in sorted(ends)[:3])
        raise ConfigurationError(
            f"{address} holds nothing of the queues that are read, but {names}"
        )
    if detect_reset:
        for queue, end in found:
            check_last(origin, queue, end)
    return tuple((queue, end.offset) for queue, end in found)


def check_last(origin: Origin, queue: Queue, end: End) -> None:
    """See that the last message exported is still there, or too old to be.

    @raise DataLoss: it is another one.
    """
    first, until = origin.bounds(queue)
    if not end.marks or not first <= end.marks[0].offset < until:
        # What comes of this is for the read to say: it counts the offsets.
        return
    offset, *known = end.marks[0]
    if fingerprint_at(origin, queue, offset) != tuple(known):
        raise DataLoss(
            f"TOPIC_RECREATED: message {offset} of {queue} is another one than the one "
            "exported (detectReset=false: read on)"
        )
