# -*- test-case-name: tests.app -*-
"""Programs: broker, name server, standalone, the rocketbroker command.

The only package that imports the reactor.
"""
