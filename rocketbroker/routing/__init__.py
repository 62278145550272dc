# -*- test-case-name: tests.routing -*-
"""The name server's table of routes, and a client's view of it."""
