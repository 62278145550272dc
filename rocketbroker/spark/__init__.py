# -*- test-case-name: tests.spark -*-
"""RocketMQ as a data source of Apache Spark.

- L{java<rocketbroker.spark.java>}: a Java for Spark, also where there is none.
- L{sessions<rocketbroker.spark.sessions>}: a Spark session on this machine.
- L{columns<rocketbroker.spark.columns>}: which columns there are.
- L{ranges<rocketbroker.spark.ranges>}: offset ranges, cut into splits.
- L{layout<rocketbroker.spark.layout>}: where everything stands in many records.
- L{gathering<rocketbroker.spark.gathering>}: pieces of a buffer as Arrow arrays.
- L{properties<rocketbroker.spark.properties>}: the properties of many messages.
- L{decoding<rocketbroker.spark.decoding>}: records to Arrow batches.
"""
