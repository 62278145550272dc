# -*- test-case-name: tests.arrow.test_record_batches -*-
"""Topics as Arrow record batches, for DuckDB, Polars, pandas and whatever reads Arrow.

What is read is fixed when a reader is made: names are looked up, ends are frozen, and
what is wrong is said then. Batches are read when they are asked for, so a reader that
is dropped after the first costs no more than that one.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final, final

import pyarrow as pa

from rocketbroker.arrow.columns import Columns, arrow_schema, columns_of
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.reading import RangeReader
from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.sources.open_source import open_origin
from rocketbroker.sources.option_table import BATCH, OPTIONS
from rocketbroker.sources.options import ReadOptions, parse_options
from rocketbroker.sources.ranges import Range
from rocketbroker.sources.resolving import resolve
from rocketbroker.sources.source import Origin

logger = logging.getLogger("rocketbroker.arrow")

#: Options that say how Spark shares out a read.
OF_SPARK: Final = frozenset({"pushDown", "maxRecordsPerPartition", "minPartitions"})

#: Options of a batch read by their names in Python.
NAMES: Final[Mapping[str, str]] = {
    re.sub("(?=[A-Z])", "_", option.name.replace(".", "_")).lower(): option.name
    for option in OPTIONS
    if BATCH in option.scope and option.name not in OF_SPARK
}


def read(*topics: str, **options: object) -> Any:
    """Read topics into Arrow batches, as DuckDB, Polars and pandas take them::

        rows = read("Orders", name_server="127.0.0.1:9876", tags="paid")
        duckdb.sql("select tags, count(*) from rows group by tags")

    @param topics: their names; none with C{subscribe_pattern} or C{assign}.
    @param options: those of a batch read (C{docs/spark-options.rst}) by names as Python
        has them: C{starting_offsets} is C{startingOffsets}. One of C{name_server} and
        C{store} is needed. Values are text as there; or truth values, numbers, paths,
        times, lists (C{columns=["body", "tags"]}), dictionaries where text is JSON;
        None is as if it were not given.
    @return: a C{pyarrow.RecordBatchReader}. What it reads ends where topics ended when
        it was made. It can be read once, by one thread at a time. Connections and
        files are closed at its end, or when it is dropped. While it reads it raises
        L{DataLoss<rocketbroker.sources.source.DataLoss>} where messages are gone, and
        other C{RocketbrokerError}s where nobody answers.
    @raise ConfigurationError: an option is unknown, or its value makes no sense.
    @raise TopicNotExist: there is no such topic.
    @raise RocketbrokerError: nobody answers, or there is no store; one sentence.
    """
    given = option_words(options)
    if topics:
        given["subscribe"] = ",".join(topics)
    parsed = parse_options(given)
    columns = columns_of(parsed)
    origin = open_origin(parsed)
    try:
        lost: list[Range] = []
        ranges = resolve(origin, parsed, int(time.time() * 1000), lost)
    except BaseException:
        origin.close()
        raise
    log_lost(parsed, lost)
    batches = Batches(origin, read_ranges(origin, parsed, columns, ranges, log_lost))
    return pa.RecordBatchReader.from_batches(arrow_schema(columns), batches)


def option_words(given: Mapping[str, object]) -> dict[str, str]:
    """Options from keyword arguments, by their own names.

    @raise ConfigurationError: one is unknown, or of a type that none has.
    """
    words = {}
    for name, value in given.items():
        if name not in NAMES:
            known = ", ".join(NAMES)
            raise ConfigurationError(f"unknown option {name!r}; known are {known}")
        if value is not None:
            words[NAMES[name]] = option_text(name, value)
    return words


def option_text(name: str, value: object) -> str:
    """The text of an option's value.

    @raise ConfigurationError: no option has a value of such a type.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    with suppress(TypeError, ValueError):
        if isinstance(value, Mapping):
            return json.dumps(value)
        if isinstance(value, Sequence):
            return ",".join(value)
    raise ConfigurationError(f"{name}={value!r} is of no type that an option has")


def read_ranges(
    origin: Origin,
    options: ReadOptions,
    columns: Columns,
    ranges: Iterable[Range],
    tell: Callable[[ReadOptions, list[Range]], None],
) -> Generator[Any, None, None]:
    """The messages of ranges as record batches, one range after the other.

    @param tell: gets what turned out to be gone, with C{failOnDataLoss=false}.
    @raise DataLoss: as L{RangeReader.layouts}.
    @raise CountMismatch: as there.
    """
    for wanted in ranges:
        decoder = Decoder(columns, wanted.queue.broker, options.decompress)
        reader = RangeReader(origin, wanted, options)
        for layout in reader.layouts():
            yield from decoder.batches(layout)
        tell(options, [Range(wanted.queue, *hole[:2]) for hole in reader.holes])


def log_lost(options: ReadOptions, lost: list[Range]) -> None:
    """Log what is gone, with C{failOnDataLoss=record}."""
    if options.record_data_loss:
        for gone in lost:
            logger.warning("the messages %s are gone", gone)


@final
class Batches:
    """Record batches out of an origin that is closed behind the last one."""

    def __init__(self, origin: Origin, batches: Generator[Any, None, None]) -> None:
        self._origin: Origin | None = origin
        self._batches = batches

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except RocketbrokerError as error:
            self.close()
            # Databases show the trace with the sentence: a short one.
            raise error.with_traceback(None) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Forget what is under way, and close the origin; idempotent."""
        origin, self._origin = self._origin, None
        if origin is not None:
            with closing(origin), closing(self._batches):
                pass

    def __del__(self) -> None:
        self.close()
