# -*- test-case-name: tests.export.test_api -*-
"""Exports out of a program, in a Spark session that it has already::

    from rocketbroker.export.api import export

    export(spark, "s3://lake/messages", nameServer="127.0.0.1:9876", subscribe="Orders")

As C{rocketbroker export run}, with the words of C{spark.read.format("rocketmq")}: where
it ended last time it goes on, and each message is exported once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, final

import attrs

from rocketbroker.errors import RocketbrokerError
from rocketbroker.export.copying import CopyJobs, file_columns
from rocketbroker.export.open_storage import open_storage
from rocketbroker.export.planning import TARGET_BYTES
from rocketbroker.export.progress import Done
from rocketbroker.export.runs import DONE, NOTHING_NEW, ExportRuns, Job
from rocketbroker.sources.options import parse_options


class ExportFailed(RocketbrokerError):
    """A topic could not be exported; all that could be is.

    @ivar statuses: of each topic, as those of C{rocketbroker export run}.
    """

    def __init__(self, sentence: str, statuses: Mapping[str, int]) -> None:
        super().__init__(sentence)
        self.statuses = dict(statuses)


@attrs.frozen
class Exported:
    """What an export has done.

    @ivar rows: how many messages it has exported.
    @ivar files: into how many files.
    @ivar statuses: of each topic, 0 or 3: something or nothing was new.
    """

    rows: int
    files: int
    statuses: Mapping[str, int]


@final
class Events:
    """Provides L{Display<rocketbroker.export.progress.Display>}: what is said is kept.

    @ivar said: each event and its values.
    """

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, object]]] = []

    def say(self, text: str, **values: object) -> None:
        """See L{Display.say}."""
        self.said.append((text, values))

    def start(self, rows: int, files: int) -> None:
        """See L{Display.start}."""

    def show(self, done: Done) -> None:
        """See L{Display.show}."""

    def stop(self) -> None:
        """See L{Display.stop}."""

    def sentences(self) -> list[str]:
        """Why something failed."""
        return [str(values["reason"]) for _, values in self.said if "reason" in values]

    def total(self, name: str) -> int:
        """The sum of a value over all commits."""
        found = [values for text, values in self.said if text == "exported"]
        return sum(int(str(values[name])) for values in found)


def export(
    spark: Any, to: str, *, target: int = TARGET_BYTES, **options: object
) -> Exported:
    """Export topics.

    @param spark: a C{SparkSession}, also of Spark Connect. Its workers need this
        package, and reach C{to} under the same address.
    @param to: a directory, or an address that C{pyarrow.fs} knows.
    @param target: how large a file becomes, about, in bytes of the log.
    @param options: as of C{spark.read.format("rocketmq")}: C{nameServer} or C{store},
        C{subscribe}, C{subscribePattern} or C{assign}, and so on.
    @raise ConfigurationError: the options make no sense.
    @raise ExportFailed: a topic could not be exported.
    """
    from rocketbroker.export.spark_jobs import SessionCopyJobs

    return export_with(SessionCopyJobs(spark), to, target, options)


def export_with(
    copying: CopyJobs, to: str, target: int, options: Mapping[str, object]
) -> Exported:
    """See L{export}.

    @param copying: carries out the plans.
    """
    words = {name: word_of(value) for name, value in options.items()}
    parsed = parse_options(words)
    file_columns(parsed)
    events = Events()
    run = ExportRuns(
        open_storage(to),
        copying,
        events,
        lambda: int(time.time() * 1000),
        Job(parsed, target),
    )
    if run.run() not in (DONE, NOTHING_NEW):
        raise ExportFailed("; ".join(events.sentences()), run.statuses)
    return Exported(events.total("rows"), events.total("files"), run.statuses)


def word_of(value: object) -> str:
    """An option's value as text, as Spark makes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
