# -*- test-case-name: tests.spark -*-
"""Topics as Spark data: ranges, decoder, source."""
