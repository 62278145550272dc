"""Tests of L{rocketbroker.store.commitlog.writer}."""
