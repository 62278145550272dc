"""Tests of L{rocketbroker.store.consumequeue.queue}."""
