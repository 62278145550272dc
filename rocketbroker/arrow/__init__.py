# -*- test-case-name: tests.arrow -*-
"""Stored records as Arrow record batches.

  - L{reading<rocketbroker.arrow.reading>}: a range, read exactly.
  - L{checking<rocketbroker.arrow.checking>}: records where a queue says, seen to be
    what they must be.
  - L{layout<rocketbroker.arrow.layout>}: where everything stands in many records.
  - L{gathering<rocketbroker.arrow.gathering>}: pieces of a buffer as Arrow arrays.
  - L{properties<rocketbroker.arrow.properties>}: the properties of many messages.
  - L{columns<rocketbroker.arrow.columns>}: which columns there are, and how each is
    made.
  - L{decoding<rocketbroker.arrow.decoding>}: records to Arrow batches.
  - L{fingerprints<rocketbroker.arrow.fingerprints>}: what tells a message from another.

This package needs numpy and pyarrow, and nothing of Spark.
"""
