"""Tests of L{rocketbroker.store.retention}."""
