"""Tests of rocketbroker.aio."""
