# -*- test-case-name: tests.workers.test_worker_sends -*-
"""Link messages about sends that a worker appends itself, and pulls that it answers
itself: the payloads of ALLOW, ASK, QUEUE and APPENDED, and of PULLS, ASK_PULL, ROUTE
and PULLED, as JSON.

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

#: The settings of a store by which a worker reads.
READ_SETTINGS: Final = (
    "store_path_root_dir",
    "store_path_commit_log",
    "read_only_commit_log_store_paths",
    "mapped_file_size_commit_log",
    "mapped_file_size_consume_queue",
    "access_message_in_memory_max_ratio",
    "max_filter_message_size",
    "travel_cq_file_num_when_get_message",
    "max_transfer_count_on_message_in_memory",
    "max_transfer_bytes_on_message_in_memory",
    "max_transfer_count_on_message_in_disk",
    "max_transfer_bytes_on_message_in_disk",
    "rocketbroker_max_pull_messages",
    "rocketbroker_max_pull_bytes",
)

#: The settings of a broker by which pulls wait.
WAIT_SETTINGS: Final = (
    "pull_thread_pool_queue_capacity",
    "long_polling_enable",
    "short_polling_time_mills",
)


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
    """The owner's answer about a queue.

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


@final
class PullAllowance(msgspec.Struct, frozen=True):
    """Which pulls a worker may answer itself.

    @ivar version: of all that this says, and of routes that follow; 0: none.
    @ivar store: the settings of the store.
    @ivar broker: those of the broker.
    @ivar memory_bytes: the machine's memory.
    """

    version: int
    store: dict[str, Any]
    broker: dict[str, Any]
    memory_bytes: int

    def store_options(self) -> StoreOptions:
        """The settings of the store, all others as they are by default."""
        return StoreOptions(**self.store)


@final
class AskPull(msgspec.Struct, frozen=True, array_like=True):
    """Whether a worker may answer pulls like one that has come.

    @ivar connection: of its client, by its number on the link.
    @ivar is_own: whether the pull brought its subscription along.
    @ivar subscription: that; C{None} if it did not.
    @ivar expression_type: of that.
    @ivar sub_version: of the subscription that the client knows.
    """

    connection: int
    group: str
    topic: str
    queue_id: int
    is_own: bool
    subscription: str | None
    expression_type: str | None
    sub_version: int


@final
class PullRoute(msgspec.Struct, frozen=True, array_like=True):
    """The answer, if it may.

    @ivar version: as long as this is the version.
    @ivar ask: the question.
    @ivar slot: the first word of the queue.
    @ivar trusted_from: the owner has entered all entries from this offset on.
    @ivar from_position: records before it belong to a topic of that name that was
        deleted.
    @ivar expression: what is wanted.
    @ivar expression_type: of that.
    @ivar sub_version: pulls with a later one are not like this.
    @ivar broker_id: what answers say.
    @ivar topic_flag: the same.
    @ivar group_flag: the same.
    """

    version: int
    ask: AskPull
    slot: int
    trusted_from: int
    from_position: int
    expression: str | None
    expression_type: str | None
    sub_version: int
    broker_id: int
    topic_flag: int
    group_flag: int


@final
class QueuePulls(msgspec.Struct, array_like=True):
    """What was pulled from a queue for a group.

    @ivar from_position: of the route: another one by now, if the topic was deleted.
    @ivar next_offset: where the group pulls next.
    @ivar commit_offset: what its last pull has committed; negative: none has.
    """

    group: str
    topic: str
    queue_id: int
    from_position: int
    messages: int
    bytes: int
    pulls: int
    next_offset: int
    commit_offset: int


@final
class Pulled(msgspec.Struct, array_like=True):
    """What a worker has answered since it has said so last.

    @ivar seconds: how long the last of it took.
    @ivar pulls: how many there were.
    @ivar found: how many reads found something for them.
    @ivar missed: how many found nothing; also a pull that waits then.
    @ivar bytes_in: their bytes.
    @ivar answers: how many were answered.
    """

    seconds: float
    pulls: int
    found: int
    missed: int
    bytes_in: int
    answers: int
    queues: list[QueuePulls]


encode: Final = msgspec.json.Encoder().encode
read_allowance: Final = msgspec.json.Decoder(Allowance).decode
read_ask: Final = msgspec.json.Decoder(Ask).decode
read_queue: Final = msgspec.json.Decoder(QueueAnswer).decode
read_appended: Final = msgspec.json.Decoder(Appended).decode
read_pulls: Final = msgspec.json.Decoder(PullAllowance).decode
read_ask_pull: Final = msgspec.json.Decoder(AskPull).decode
read_route: Final = msgspec.json.Decoder(PullRoute).decode
read_pulled: Final = msgspec.json.Decoder(Pulled).decode
