# -*- test-case-name: tests.metrics -*-
"""What Prometheus scrapes, read from the parts' counters at scrape.

L{rocketbroker.metrics.site}: `/metrics` and `/healthz` over HTTP.
L{rocketbroker.metrics.problems}: `/problems` of a broker.
L{rocketbroker.metrics.samples}: families under construction.
L{rocketbroker.metrics.broker_families}: what a broker shows.
L{rocketbroker.metrics.transactions}: of those the transactions.
L{rocketbroker.metrics.retries}: of those what consumers failed at.
L{rocketbroker.metrics.lag}: how far consumer groups are behind.
L{rocketbroker.metrics.namesrv_families}: what a name server shows.
L{rocketbroker.metrics.remoting_families}: what a port shows, of either.
L{rocketbroker.metrics.versions}: the names of clients' releases.
"""
