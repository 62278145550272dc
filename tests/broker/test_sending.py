"""Tests of L{rocketbroker.broker.sending}."""
