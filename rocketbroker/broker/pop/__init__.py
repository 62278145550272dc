# -*- test-case-name: tests.broker.pop -*-
"""Consumption by POP: a broker hands each message to one member of a group, and again
to another one if it is not acknowledged in time.

L{room} is the map of its parts.
"""
