# -*- test-case-name: tests.cli.cluster.verbs -*-
"""Requests of verbs to name servers and brokers, a module for each noun.

Functions of a L{Cluster<rocketbroker.cli.cluster.cluster>}; each is one request, or
says which. Their results are values of L{rocketbroker.wire.bodies}.

  - L{topics}: settings, queues, creating, deleting; L{static_topics}: moving.
  - L{groups}: settings, members, progress, resets.
  - L{brokers}: runtime info and settings; L{clients}: connected producers.
  - L{access}: users, policies, and which rule decides.
  - L{messages}: by key, id, offset and time, and as they are shown.
"""
