"""Tests of L{rocketbroker.broker.send_checks}."""
