# -*- test-case-name: tests.arrow -*-
"""Stored records as Arrow record batches, without Spark.

One import suffices to query a topic, or the directory of a store, with what reads
Arrow::

    from rocketbroker.arrow import read

    rows = read("Orders", name_server="127.0.0.1:9876", starting_timestamp="-1h")
    duckdb.sql("select tags, count(*) from rows group by tags").show()

    polars.from_arrow(read("Orders", store="/data/store", columns=["msgId", "body"]))
    read("Orders", store="/data/store", tags="paid").read_pandas()

What L{read<rocketbroker.arrow.record_batches.read>} gives is a
C{pyarrow.RecordBatchReader}: it can be read once, and reads as it is asked.

  - L{record_batches<rocketbroker.arrow.record_batches>}: topics as record batches.
  - L{reading<rocketbroker.arrow.reading>}: a range, read exactly.
  - L{checking<rocketbroker.arrow.checking>}: records where a queue says, seen to be
    what they must be.
  - L{unwrapping<rocketbroker.arrow.unwrapping>}: batches as the messages in them.
  - L{layout<rocketbroker.arrow.layout>}: where everything stands in many records.
  - L{gathering<rocketbroker.arrow.gathering>}: pieces of a buffer as Arrow arrays.
  - L{properties<rocketbroker.arrow.properties>}: the properties of many messages.
  - L{columns<rocketbroker.arrow.columns>}: which columns there are, and how each is
    made.
  - L{decoding<rocketbroker.arrow.decoding>}: records to Arrow batches.
  - L{fingerprints<rocketbroker.arrow.fingerprints>}: what tells a message from another.

This package needs numpy and pyarrow (C{pip install 'rocketbroker[arrow]'}), and nothing
of Spark. Importing it imports none of them: C{read} is imported when it is first used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketbroker.arrow.record_batches import read

__all__ = ["read"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from rocketbroker.arrow.record_batches import read
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error}: pip install 'rocketbroker[arrow]'", name=error.name
        ) from None
    return read
