"""Tests of L{rocketbroker.broker.registration.registration}."""
