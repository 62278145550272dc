"""Tests of the broker for users' tests, without one."""
