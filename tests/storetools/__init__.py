"""Tests of L{rocketbroker.storetools}."""
