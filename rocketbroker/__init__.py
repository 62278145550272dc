# -*- test-case-name: tests -*-
"""A message broker, name server, client and exporter compatible with Apache RocketMQ.

Each package's docstring lists its modules; the tiers stand in tests/test_tiers.py.
"""
