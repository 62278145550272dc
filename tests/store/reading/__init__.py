"""Tests of L{rocketbroker.store.reading.pull}."""
