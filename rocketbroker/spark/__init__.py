# -*- test-case-name: tests.spark -*-
"""RocketMQ as a data source of Apache Spark.

  - L{source<rocketbroker.spark.source>}: the data source that Spark sees.
  - L{pushdown<rocketbroker.spark.pushdown>}: conditions of a query that the source
    sees to.
  - L{stream<rocketbroker.spark.stream>}: the streaming source.
  - L{microbatches<rocketbroker.spark.microbatches>}: where micro-batches end, over
    L{watching<rocketbroker.spark.watching>}, what brokers have;
    L{limits<rocketbroker.spark.limits>}, how much of it is taken;
    L{offsets<rocketbroker.spark.offsets>}, what a checkpoint remembers; and
    L{lag<rocketbroker.spark.lag>}, what is left.
  - L{splits<rocketbroker.spark.splits>}: what a task reads, in a batch as in a stream.
  - L{sink<rocketbroker.spark.sink>}: writing, in batches and streams, at least once.
  - L{write_options<rocketbroker.spark.write_options>}: the options and columns of
    writes.
  - L{sessions<rocketbroker.spark.sessions>}: a Spark session on this machine.
  - L{java<rocketbroker.spark.java>}: a Java for Spark, also where there is none.

What Spark imports when it looks for data sources imports neither numpy nor pyarrow.
"""
