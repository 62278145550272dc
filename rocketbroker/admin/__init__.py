# -*- test-case-name: tests.admin -*-
"""The command line: noun and verb, for any RocketMQ cluster.

A start takes a quarter of a second at most: nothing here imports Twisted, and a noun is
imported when it is used.

  - L{lazycommands}: groups of commands that are imported when they are wanted.
  - L{contexts}: which name servers.
  - L{options}: what all verbs share: options, output, watching, confirmation, errors.
  - L{cluster}: name servers and brokers, and requests to them.
  - L{outages}: which servers do not answer while a verb goes on, since when.
  - L{requests}: what is asked, a module for each noun.
  - L{verbs}: what users call, a module for each noun.
  - L{rows}: tables for people, JSON for programs; L{formats}: sizes and times.
  - L{statuses}: exit statuses, and errors with what to do next.
"""
