# -*- test-case-name: tests.export -*-
"""Topics as Parquet files, each message exactly once."""
