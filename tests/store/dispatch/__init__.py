"""Tests of L{rocketbroker.store.dispatch}."""
