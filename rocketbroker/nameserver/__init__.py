# -*- test-case-name: tests.nameserver -*-
"""The name server: who has which topic, and who is alive."""
