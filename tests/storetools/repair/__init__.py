"""Tests of L{rocketbroker.storetools.repair}."""
