# -*- test-case-name: tests.spark -*-
"""Where Spark looks for the data source named rocketmq."""
