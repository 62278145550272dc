"""Tests of L{rocketbroker.broker.diagnostics}."""
