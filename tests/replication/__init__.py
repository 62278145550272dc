"""Tests of L{rocketbroker.replication}."""
