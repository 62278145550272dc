# -*- test-case-name: tests.wire -*-
"""The remoting protocol: framing, headers, bodies, one connection. No I/O."""
