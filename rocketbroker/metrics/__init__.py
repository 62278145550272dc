# -*- test-case-name: tests.metrics -*-
"""What Prometheus scrapes."""
