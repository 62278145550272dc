"""Tests of L{rocketbroker.store.index.service}."""
