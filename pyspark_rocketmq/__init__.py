# -*- test-case-name: tests.spark.test_source -*-
"""The data source named rocketmq, in the place where Spark looks for it.

It imports every top-level package whose name begins with C{pyspark_} and takes from it
a class named exactly C{DefaultSource}; so this one package has code in its C{__init__}.
Where Spark cannot find it (zipped, or an editable install of the finder kind), register
it: C{spark.dataSource.register(RocketMQDataSource)}.
"""

from contextlib import suppress

# The scan guards nothing: an exception here would stop every query of a Spark that this
# data source does not run on.
with suppress(ImportError):
    from rocketbroker.spark.source import RocketMQDataSource as DefaultSource

__all__ = ["DefaultSource"]
