"""Tests of L{rocketbroker.broker.storage}."""
