# -*- test-case-name: tests.spark.test_columns -*-
"""Which columns there are, and of what type; light: nothing but the standard library.

Names and types: the Spark sheet, section 6. The two sets of columns are that of
RocketMQ's own terms and one in the terms of Kafka's data source, for queries that were
written for it. There, C{partition} is the queue's number, so it is unique only within
one broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rocketbroker.errors import ConfigurationError

#: Column and its type as Spark's SQL says it, in the order of C{SELECT *}.
NATIVE: Final[dict[str, str]] = {
    "topic": "string",
    "brokerName": "string",
    "queueId": "int",
    "queueOffset": "bigint",
    "storeTimestamp": "timestamp",
    "bornTimestamp": "timestamp",
    "tags": "string",
    "keys": "array<string>",
    "msgId": "string",
    "properties": "map<string,string>",
    "body": "binary",
    "bornHost": "string",
    "storeHost": "string",
    "flag": "int",
    "sysFlag": "int",
    "reconsumeTimes": "int",
    "preparedTransactionOffset": "bigint",
    "commitLogOffset": "bigint",
    "bodyCRC": "int",
}

#: The same for queries in Kafka's terms.
KAFKA: Final[dict[str, str]] = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "headers": "array<struct<key:string,value:binary>>",
}

#: Of each of Kafka's columns that is one of ours under another name, ours.
SAME: Final[dict[str, str]] = {
    "value": "body",
    "topic": "topic",
    "partition": "queueId",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp",
}

SETS: Final[dict[str, dict[str, str]]] = {"native": NATIVE, "kafka": KAFKA}


def columns_of(name: str) -> dict[str, str]:
    """The set of columns that option C{columns} names.

    @raise ConfigurationError: there is no such set.
    """
    try:
        return SETS[name.lower()]
    except KeyError:
        raise ConfigurationError(
            f"columns={name!r} is neither native nor kafka"
        ) from None


def ddl(columns: dict[str, str]) -> str:
    """A schema as Spark's SQL writes it."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def check_columns(wanted: Iterable[tuple[str, str]], known: dict[str, str]) -> None:
    """See that each column asked for exists, with the type it has.

    @param wanted: name and type (as Spark's C{simpleString}) of each.
    @raise ConfigurationError: one does not; the sentence names it.
    """
    for name, kind in wanted:
        if name not in known:
            raise ConfigurationError(
                f"there is no column {name!r}; the columns are {', '.join(known)}"
            )
        if kind != known[name]:
            raise ConfigurationError(
                f"column {name!r} is of type {known[name]}, not {kind}"
            )
