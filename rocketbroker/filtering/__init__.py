# -*- test-case-name: tests.filtering -*-
"""Which messages a subscription wants.

- L{tags<rocketbroker.filtering.tags>}: expressions over tags, and the filter that the
  broker applies to tag codes and the consumer to tags.
- L{sql<rocketbroker.filtering.sql>}: SQL92 expressions over properties, compiled.
- L{sqltokens<rocketbroker.filtering.sqltokens>}: their words.
- L{sqlvalues<rocketbroker.filtering.sqlvalues>}: how their values compare.
- L{bloom<rocketbroker.filtering.bloom>}: which filters may have matched a message.
"""
