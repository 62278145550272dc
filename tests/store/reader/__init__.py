"""Tests of L{rocketbroker.store.reader.directory}."""
