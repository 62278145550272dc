"""Tests of L{rocketbroker.storetools.verify}."""
