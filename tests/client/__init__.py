"""Tests of rocketbroker.client."""
