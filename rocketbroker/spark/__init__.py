# -*- test-case-name: tests.spark -*-
"""RocketMQ as a data source of Apache Spark.

  - L{source}: the data source that Spark sees.
  - L{pushdown}: conditions of a query that the source
    sees to.
  - L{stream}: the streaming source.
  - L{microbatches}: where micro-batches end, over
    L{watching}, what brokers have;
    L{limits}, how much of it is taken;
    L{offsets}, what a checkpoint remembers; and
    L{lag}, what is left.
  - L{splits}: what a task reads, in a batch as in a stream.
  - L{sink}: writing, in batches and streams, at least once.
  - L{write_options}: the options and columns of
    writes.
  - L{sessions}: a Spark session on this machine.
  - L{java}: a Java for Spark, also where there is none.

What Spark imports when it looks for data sources imports neither numpy nor pyarrow.
"""
