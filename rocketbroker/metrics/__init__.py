# -*- test-case-name: tests.metrics -*-
"""The metrics that Prometheus scrapes, read from the parts' counters at scrape.

L{rocketbroker.metrics.site}: `/metrics` and `/healthz` over HTTP.
L{rocketbroker.metrics.problems}: `/problems` of a broker.
L{rocketbroker.metrics.samples}: the text of one scrape, family by family.
L{rocketbroker.metrics.broker_families}: the metrics of a broker.
L{rocketbroker.metrics.existing}: which topics and groups have some.
L{rocketbroker.metrics.store_families}: of those the store's.
L{rocketbroker.metrics.transactions}: of those the transactions'.
L{rocketbroker.metrics.pops}: of those consumption by POP.
L{rocketbroker.metrics.timers}: of those the timers'.
L{rocketbroker.metrics.retries}: of those messages sent back and dead letters.
L{rocketbroker.metrics.replica_families}: of those masters and slaves.
L{rocketbroker.metrics.failures}: of those periodic work and limits.
L{rocketbroker.metrics.lag}: how far consumer groups are behind.
L{rocketbroker.metrics.namesrv_families}: the metrics of a name server.
L{rocketbroker.metrics.proxy_families}: the metrics of a proxy.
L{rocketbroker.metrics.remoting_families}: the metrics of a port of remoting.
L{rocketbroker.metrics.process_families}: process and build, of each.
L{rocketbroker.files.own_version}: the version of this package.
"""
