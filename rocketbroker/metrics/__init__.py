# -*- test-case-name: tests.metrics -*-
"""What Prometheus scrapes, read from the parts' counters at scrape.

L{rocketbroker.metrics.site}: `/metrics` and `/healthz` over HTTP.
"""
