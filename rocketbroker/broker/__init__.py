# -*- test-case-name: tests.broker -*-
"""The broker: what answers each request code.

One process, one thread: the reactor's. What may wait for the disk runs in a thread that
is injected (L{rocketbroker.broker.storage.group_commit.InThread}), and comes back
before it touches a table. Time, files, store and connections are injected, so that a
test is the whole world.

  - L{rocketbroker.broker.broker}: all parts, the order of start and stop, which port
    answers what. L{rocketbroker.broker.environment}: what it has of the world.

Its rooms, each of which imports only those above it in this list:

  - L{rocketbroker.broker.messages}: messages that are more than a body.
  - L{rocketbroker.broker.metadata}: topics, groups, offsets and their files.
  - L{rocketbroker.broker.stats}: figures over time.
  - L{rocketbroker.broker.storage}: work on the store, waiting for the disk.
  - L{rocketbroker.broker.clients}: producers, consumers, subscriptions.
  - L{rocketbroker.broker.registration}: name servers.
  - L{rocketbroker.broker.send}: sends, replies, messages that come back.
  - L{rocketbroker.broker.pull}: pulls, and pulls that wait.
  - L{rocketbroker.broker.schedule}: messages that wait for a delay level.
  - L{rocketbroker.broker.transaction}: half messages, their ends, check-backs.
  - L{rocketbroker.broker.diagnostics}: what is wrong with groups.
  - L{rocketbroker.broker.admin}: administrators' requests.

Beside them: L{rocketbroker.broker.json_table}: a table and its file;
L{rocketbroker.broker.json_bodies}: JSON bodies, and whose fault a bad one is;
L{rocketbroker.broker.background_work}: threads that a stop has to wait for.
"""
