# -*- test-case-name: tests.broker.stats -*-
"""Statistics: counts over time, for metrics and for operators.

The modules:

  - L{broker_stats}: the statistics that request 28 and the metrics show.
  - L{keyed_stats}: the statistics of topics and groups that request 315 shows, kept as
    samples in L{stats_items}.
  - L{rates}: rates per second. L{day_totals}: totals of today and yesterday.
    L{store_latency}: the distribution of the times that messages took to be stored.
  - L{creation_times}: how long requests took that make topics and groups.
  - L{watermarks}: what waits, for the log.
"""
