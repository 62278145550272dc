"""Tests of L{rocketbroker.store.recovery.recovery}."""
