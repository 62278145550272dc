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

  - L{record_batches}: topics as record batches.
  - L{reading}: a range, read exactly.
  - L{checking}: records where a queue says, seen to be
    what they must be.
  - L{unwrapping}: batches as the messages in them.
  - L{layout}: where everything stands in many records.
  - L{binary_arrays}: pieces of a buffer as Arrow arrays.
  - L{properties}: the properties of many messages.
  - L{columns}: which columns there are, and how each is
    made.
  - L{decoding}: records to Arrow batches.
  - L{message_identity}: what tells a message from another.

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
