# -*- test-case-name: tests.filtering -*-
"""Subscriptions by tags and by SQL92: which messages match.

The modules:

  - L{tags<rocketbroker.filtering.tags>}: expressions over tags, and the filter that the
    broker applies to tag codes and the consumer to tags.
  - L{sql<rocketbroker.filtering.sql>}: SQL92 expressions over properties, compiled.
  - L{sqltokens<rocketbroker.filtering.sqltokens>}: the tokens of SQL92.
  - L{sqlconditions<rocketbroker.filtering.sqlconditions>}: the source of the function
    that an expression becomes.
  - L{sqlhints<rocketbroker.filtering.sqlhints>}: what to search many records for.
  - L{sqlvalues<rocketbroker.filtering.sqlvalues>}: how values of SQL92 compare.
  - L{bloom<rocketbroker.filtering.bloom>}: which filters may have matched a message.
"""
