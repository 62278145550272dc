# -*- test-case-name: tests.cli.cluster.verbs -*-
"""The nouns of the command C{rocketbroker} and their verbs.

The modules:

  - L{topic}: ls, show, create, update, delete; L{static_topic}: create-static, move.
  - L{group}: the same; L{reset}: of its offsets.
  - L{message}: view and find; L{send}, L{receive}: pipes.
  - L{broker}: also the noun cluster; L{clients}: the nouns consumer and producer.
  - L{top}: rates and lags, live. L{bench}: loads.
  - L{namesrv}: settings, write permissions. L{mqadmin}: RocketMQ's
    spellings; L{mqadmin_names}, L{mqadmin_access}: what becomes of each.
  - L{user}, L{acl}: of ACL 2.0; L{whoami}: also can-i: which rule decides.
  - L{offset}, L{kv}; L{context}: names for clusters, with their TLS and keys.
"""
