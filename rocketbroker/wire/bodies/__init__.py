# -*- test-case-name: tests.wire.bodies -*-
"""Bodies of commands as values.

- L{topics}, L{groups}, L{heartbeats}: what brokers and clients know.
- L{routes}, L{registration}, L{mappings}: what name servers are told and tell.
- L{queues}: a queue, as a value and as a key.
"""
