# -*- test-case-name: tests.filtering -*-
"""Which messages a subscription wants.

- L{tags<rocketbroker.filtering.tags>}: expressions over tags, and the filter that the
  broker applies to tag codes and the consumer to tags.
"""
