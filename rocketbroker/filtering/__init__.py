# -*- test-case-name: tests.filtering -*-
"""Subscriptions by tags and by SQL92: which messages match.

The modules:

  - L{tags}: expressions over tags, and the filter that the
    broker applies to tag codes and the consumer to tags.
  - L{sql}: SQL92 expressions over properties, compiled.
  - L{sqltokens}: the tokens of SQL92.
  - L{sqlconditions}: the source of the function
    that an expression becomes.
  - L{sqlhints}: what to search many records for.
  - L{sqlvalues}: how values of SQL92 compare.
  - L{bloom}: which filters may have matched a message.
"""
