# -*- test-case-name: tests.spark.test_offsets -*-
"""The offset of a stream: a position in each queue, as it stands in the checkpoint.

JSON with these members::

    {"v": 1,
     "t": {topic: {broker name: {queue: offset}}},
     "fp": {topic: {broker name: {queue: "store time, id"}}},
     "from": {topic: {broker name: {queue: offset}}},
     "holes": {topic: {broker name: {queue: {"from", "until", "reason"}}}}}

Each offset is exclusive: the first message that is not read yet. C{fp} is the
fingerprint of the message before it, for topics have no id
(L{arrow.fingerprints<rocketbroker.arrow.message_identity>}). The last two belong to the
micro-batch that ends here: where it begins in queues that were found since, so that it
has the same messages when it is run again; and what was gone already. They are left out
where empty. Spark compares offsets as text, so equal ones are written equally.
C{docs/facts/spark.md 3}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from rocketbroker.arrow.message_identity import Fingerprint
from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import Hole

VERSION: Final = 1


@attrs.frozen
class StreamOffset:
    """The offset of a stream.

    @ivar positions: of each queue, the first message that is not read.
    @ivar fingerprints: of the message before it, where there was one.
    @ivar begins: where the micro-batch begins in queues that are new in it.
    @ivar holes: what its micro-batch does not have.
    """

    positions: Mapping[Queue, int]
    fingerprints: Mapping[Queue, Fingerprint] = attrs.field(factory=dict)
    begins: Mapping[Queue, int] = attrs.field(factory=dict)
    holes: Mapping[Queue, Hole] = attrs.field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As Spark takes it: dicts of numbers and texts."""
        found: dict[str, Any] = {"v": VERSION, "t": tree(self.positions)}
        found["fp"] = tree(
            {queue: f"{ms},{name}" for queue, (ms, name) in self.fingerprints.items()}
        )
        if self.begins:
            found["from"] = tree(self.begins)
        if self.holes:
            found["holes"] = tree(
                {
                    queue: {
                        "from": hole.start,
                        "until": hole.until,
                        "reason": hole.reason,
                    }
                    for queue, hole in self.holes.items()
                }
            )
        return found


def tree(values: Mapping[Queue, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Values by topic, broker name and queue, sorted."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for topic, broker, queue_id in sorted(values):
        brokers = found.setdefault(topic, {})
        value = values[Queue(topic, broker, queue_id)]
        brokers.setdefault(broker, {})[str(queue_id)] = value
    return found


def leaves(found: Mapping[str, Any]) -> Iterator[tuple[Queue, Any]]:
    """The values of a L{tree}."""
    for topic, brokers in found.items():
        for broker, queues in brokers.items():
            for queue_id, value in queues.items():
                yield Queue(topic, broker, int(queue_id)), value


def read_offset(found: Mapping[str, Any]) -> StreamOffset:
    """The offset of this JSON.

    @raise ConfigurationError: it is none, or of a later version.
    """
    try:
        version = int(found["v"])
        if version > VERSION:
            raise ConfigurationError(
                f"the checkpoint was written by a later version of rocketbroker "
                f"(offsets of version {version})"
            )
        return StreamOffset(
            {queue: int(offset) for queue, offset in leaves(found["t"])},
            {queue: fingerprint(text) for queue, text in leaves(found["fp"])},
            {queue: int(each) for queue, each in leaves(found.get("from", {}))},
            {
                queue: Hole(int(each["from"]), int(each["until"]), str(each["reason"]))
                for queue, each in leaves(found.get("holes", {}))
            },
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"the checkpoint is of another source: no offset of ours ({error!r})"
        ) from None


def fingerprint(text: str) -> Fingerprint:
    """The fingerprint of this text.

    @raise ValueError: it is none.
    """
    store_ms, name = text.split(",", 1)
    return Fingerprint(int(store_ms), name)
