# -*- test-case-name: tests.blocking -*-
"""A client on a plain socket, without Twisted and without threads."""
