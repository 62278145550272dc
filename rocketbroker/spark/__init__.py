# -*- test-case-name: tests.spark -*-
"""RocketMQ as a data source of Apache Spark.

  - L{source<rocketbroker.spark.source>}: the data source that Spark sees.
  - L{sessions<rocketbroker.spark.sessions>}: a Spark session on this machine.
  - L{java<rocketbroker.spark.java>}: a Java for Spark, also where there is none.
  - L{options<rocketbroker.spark.options>}: what a read was told.
  - L{columns<rocketbroker.spark.columns>}: which columns there are.
  - L{planning<rocketbroker.spark.planning>}: from options to offset ranges.
  - L{ranges<rocketbroker.spark.ranges>}: offset ranges, cut into splits.
  - L{origins<rocketbroker.spark.origins>}: where messages come from:
    L{network<rocketbroker.spark.network>} or L{offline<rocketbroker.spark.offline>}.
  - L{open_origins<rocketbroker.spark.open_origins>}: opening them, once per process.
  - L{reading<rocketbroker.spark.reading>}: a range, read exactly.
  - L{layout<rocketbroker.spark.layout>}: where everything stands in many records.
  - L{gathering<rocketbroker.spark.gathering>}: pieces of a buffer as Arrow arrays.
  - L{properties<rocketbroker.spark.properties>}: the properties of many messages.
  - L{decoding<rocketbroker.spark.decoding>}: records to Arrow batches.

Only C{layout}, C{gathering}, C{properties}, C{decoding} and C{reading} need numpy and
pyarrow; what Spark imports when it looks for data sources does not import them.
"""
