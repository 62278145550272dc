# -*- test-case-name: tests.cli.cluster -*-
"""The nouns of a cluster: topics, groups, messages, brokers; of any RocketMQ cluster.

The parts:

  - L{contexts}: which name servers; L{access}: with which TLS and keys; L{secrets}:
    what users give for them.
  - L{options}: what all verbs share: options, output, watching, confirmation, errors.
  - L{cluster}: name servers and brokers, and requests to them.
  - L{outages}: which servers do not answer while a verb goes on, since when.
  - L{requests}: what is asked, a module for each noun.
  - L{verbs}: what users call, a module for each noun.
  - L{doctor}: what is wrong with a machine, a cluster and its replicas.
"""
