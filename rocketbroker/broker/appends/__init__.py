# -*- test-case-name: tests.broker.appends -*-
"""Appends to the log: batching, group commit, and the answers of sends.

The modules:

  - L{append_batcher}: the sends of one turn become one append; L{send_answers}: their
    answers. L{overload}: sends that are turned away.
  - L{ack_rule}: how many copies a send needs before it is answered.
  - L{group_commit}: sends that wait for the disk, and the one flush in flight.
  - L{own_appends}: what the broker itself appends, and what follows from it.
"""
