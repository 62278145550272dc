"""Tests of access control in the broker."""
