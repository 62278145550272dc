# -*- test-case-name: tests.broker.stats -*-
"""Figures over time.

- L{broker_stats}: what request 28 and metrics show. L{rates}: per second, by key.
  L{day_totals}: of today and yesterday.
"""
