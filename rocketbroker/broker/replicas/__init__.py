# -*- test-case-name: tests.broker.replicas -*-
"""The copies of a broker's messages: masters, slaves, and which of them does what.

The bytes are copied by L{rocketbroker.replication}. Which loop runs in which role is a
column of the table in L{rocketbroker.broker.services}.
"""
