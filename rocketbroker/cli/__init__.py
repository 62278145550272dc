# -*- test-case-name: tests.cli -*-
"""The command C{rocketbroker}: nouns and verbs, for clusters, stores and exports.

A start takes a quarter of a second at most: a noun is imported when it is used, and
nothing but the verbs of servers imports Twisted. The rooms:

  - L{command}: the command itself, and how a program ends.
  - L{server}: the verbs that start servers, which L{app<rocketbroker.app>} makes.
  - L{cluster}: the nouns of any RocketMQ cluster.
  - L{store}: a store's directory, without a broker.
  - L{export}: topics as files.

What they share:

  - L{lazycommands}: groups of commands that are imported when they are wanted.
  - L{rows}: tables for people, JSON for programs; L{formats}: sizes and times.
  - L{progress}: the progress of a long operation.
  - L{exit_status}: exit statuses, and errors with what to do next.
"""
