# -*- test-case-name: tests.spark.test_sink -*-
"""The options of a write, and the columns that can be written.

Names of options are case-insensitive, and unknown ones are refused, as in reads.
docs/facts/spark.md 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import check_topic
from rocketbroker.blocking.pipeline import PipelineLimits
from rocketbroker.blocking.settings import Settings, name_server_list
from rocketbroker.errors import ConfigurationError, MessageIllegal
from rocketbroker.sources.access import ACCESS, AccessOptions
from rocketbroker.sources.option_values import (
    byte_count,
    duration,
    natural,
    truth,
    word,
)

#: The only guarantee there is.
GUARANTEE: Final = "atleastonce"

#: Bodies longer than this are refused by brokers, and so are longer batches.
MAX_BATCH_BYTES: Final = 4 << 20

TEXT: Final = ("string",)

#: What each column may be.
TYPES: Final[dict[str, tuple[str, ...]]] = {
    "body": ("binary", "string"),
    "topic": TEXT,
    "tags": TEXT,
    "keys": ("array<string>", "string"),
    "properties": ("map<string,string>",),
    "queueId": ("int", "bigint"),
    "brokerName": TEXT,
    "shardingKey": TEXT,
    "delayLevel": ("int", "bigint"),
    "deliverAt": ("timestamp", "bigint"),
}


@attrs.frozen
class WriteOptions(AccessOptions):
    """What a write was told; picklable.

    @ivar topic: empty if a column says it.
    @ivar patience_ms: how long sends that fail are tried again.
    """

    name_server: str = ""
    topic: str = ""
    batch_bytes: int = 1 << 20
    linger_ms: int = 5
    in_flight: int = 8
    send_timeout_ms: int = 3000
    patience_ms: int = 120_000
    idempotent: bool = False
    guarantee: str = GUARANTEE

    @property
    def limits(self) -> PipelineLimits:
        """As L{Pipeline} takes them."""
        return PipelineLimits(
            self.in_flight,
            min(self.batch_bytes, MAX_BATCH_BYTES),
            self.linger_ms / 1000,
            self.patience_ms / 1000,
        )

    def client(self) -> Client:
        """A client for one task."""
        settings = Settings(
            self.name_server,
            seconds=self.send_timeout_ms / 1000,
            tls=self.tls_terms(),
            credentials=self.credentials(),
        )
        return Client(settings)


def guarantee(text: str) -> str:
    """C{atLeastOnce}."""
    if text.lower() != GUARANTEE:
        raise ValueError("atLeastOnce is what there is")
    return text.lower()


#: Each option: its name, its attribute, what reads its value.
OPTIONS: Final[tuple[tuple[str, str, Callable[[str], object]], ...]] = (
    ("nameServer", "name_server", word),
    *(one[:3] for one in ACCESS),
    ("topic", "topic", word),
    ("batchBytes", "batch_bytes", byte_count),
    ("linger", "linger_ms", duration),
    ("maxInFlight", "in_flight", natural),
    ("sendTimeout", "send_timeout_ms", duration),
    ("patience", "patience_ms", duration),
    ("idempotent", "idempotent", truth),
    ("deliveryGuarantee", "guarantee", guarantee),
)

#: Options of Spark itself, which hands them on.
FOR_SPARK: Final = {"checkpointlocation", "path", "querybyid"}


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a write.

    @raise ConfigurationError: one is unknown, or its value makes no sense.
    """
    words = {name.lower(): value for name, value in given.items()}
    known = {name.lower() for name, _, _ in OPTIONS}
    unknown = sorted(set(words) - known - FOR_SPARK)
    if unknown:
        names = ", ".join(name for name, _, _ in OPTIONS)
        raise ConfigurationError(
            f"unknown option {unknown[0]!r} of a write; known are {names}"
        )
    values: dict[str, Any] = {}
    for name, attribute, reader in OPTIONS:
        text = words.get(name.lower())
        if text is not None:
            try:
                values[attribute] = reader(text.strip())
            except ValueError as error:
                raise ConfigurationError(f"{name}={text!r}: {error}") from None
    options = WriteOptions(**values)
    if not options.name_server:
        raise ConfigurationError("nameServer is needed to write")
    name_server_list(options.name_server)
    options.check_access()
    if options.topic:
        try:
            check_topic(options.topic)
        except MessageIllegal as problem:
            raise ConfigurationError(f"topic={options.topic!r}: {problem}") from None
    return options


def check_columns(given: Iterable[tuple[str, str]], options: WriteOptions) -> None:
    """See that the columns of a frame can become messages.

    @param given: name and type of each.
    @raise ConfigurationError: they cannot.
    """
    columns = dict(given)
    for name, kind in columns.items():
        if name not in TYPES:
            raise ConfigurationError(
                f"there is no column {name!r} to write; there are {', '.join(TYPES)}"
            )
        if kind not in TYPES[name]:
            raise ConfigurationError(
                f"column {name} has to be {' or '.join(TYPES[name])}, not {kind}"
            )
    if "body" not in columns:
        raise ConfigurationError("a column body is needed to write")
    if not options.topic and "topic" not in columns:
        raise ConfigurationError("an option or a column topic is needed to write")
    if ("queueId" in columns) != ("brokerName" in columns):
        raise ConfigurationError("queueId and brokerName only go together")
    if "queueId" in columns and "shardingKey" in columns:
        raise ConfigurationError("queueId or shardingKey, not both")
