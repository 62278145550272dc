"""Tests of rocketbroker.codec."""
