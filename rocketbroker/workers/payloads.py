# -*- test-case-name: tests.workers.test_own_sends -*-
"""What an owner and a worker say of sends that the worker appends itself: the payloads
of ALLOW, ASK, QUEUE and APPENDED, as JSON.

Both are processes of one broker, and of one version.
"""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from rocketbroker.config.store import StoreOptions

#: The settings of a store that a worker appends by.
STORE_SETTINGS: Final = (
    "store_path_root_dir",
    "store_path_commit_log",
    "mapped_file_size_commit_log",
    "max_message_size",
    "enabled_append_prop_crc",
    "auto_message_version_on_topic_len",
)

#: Those of a broker.
BROKER_SETTINGS: Final = ("region_id", "trace_on", "broker_cluster_name")


def some_of(options: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Some settings by name."""
    return {name: getattr(options, name) for name in names}


@final
class Allowance(msgspec.Struct, frozen=True):
    """What a worker may append itself.

    @ivar version: of all that this says, and of answers that follow; 0: nothing.
    @ivar store: the settings of the store.
    @ivar broker: those of the broker.
    @ivar store_host: the broker's address, as records have it, in hex.
    @ivar max_unflushed: nothing is appended while so many bytes are not on the disk.
    """

    version: int
    store: dict[str, Any]
    broker: dict[str, Any]
    store_host: str
    max_unflushed: int

    def store_options(self) -> StoreOptions:
        """The settings of the store, all others as they are by default."""
        return StoreOptions(**self.store)


@final
class Ask(msgspec.Struct, frozen=True, array_like=True):
    """Whether a worker may append to a queue."""

    topic: str
    queue_id: int


@final
class QueueAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer.

    @ivar version: as long as this is the version.
    @ivar slot: the first word of the queue; -1: it may not.
    """

    version: int
    topic: str
    queue_id: int
    slot: int


@final
class QueueCounts(msgspec.Struct, array_like=True):
    """What was stored in a queue, as L{QueueSends<send_answers.QueueSends>} counts."""

    topic: str
    queue_id: int
    message_type: str
    messages: int
    bytes: int
    small: int
    beyond_average: int
    sizes: list[int]


@final
class Appended(msgspec.Struct, array_like=True):
    """What a worker has appended since it has said so last.

    @ivar store_ms: when.
    @ivar seconds: how long that took, for each message.
    @ivar requests: how many requests of each code.
    @ivar bytes_in: their bytes.
    @ivar answers: how many were answered.
    """

    store_ms: int
    seconds: float
    requests: dict[int, int]
    bytes_in: int
    answers: int
    queues: list[QueueCounts]


encode: Final = msgspec.json.Encoder().encode
read_allowance: Final = msgspec.json.Decoder(Allowance).decode
read_ask: Final = msgspec.json.Decoder(Ask).decode
read_queue: Final = msgspec.json.Decoder(QueueAnswer).decode
read_appended: Final = msgspec.json.Decoder(Appended).decode
