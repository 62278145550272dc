# -*- test-case-name: tests.broker -*-
"""The broker: one responder for each request code.

One process, one thread: the reactor's. Calls that may wait for the disk run in a thread
that is injected (L{rocketbroker.broker.background_work.InThread}), and come back before
they touch a table. Time, files, store and connections are injected, so that a test is
the whole world.

  - L{broker}: the rooms, the ports, the order of start and stop.
  - L{context}: the effects that are injected.
  - L{room}: what a broker asks of each of its rooms.

Its rooms, each of which imports only those above it in this list:

  - L{messages}: messages that are more than a body.
  - L{metadata}: topics, groups, offsets and their files.
  - L{stats}: figures over time.
  - L{registration}: name servers.
  - L{clients}: producers, consumers, subscriptions.
  - L{replicas}: masters, slaves, and what waits for copies.
  - L{appends}: what is appended, and waits for disk and copies.
  - L{storage}: steps of the store, and when they run.
  - L{timer}: messages for any time.
  - L{schedule}: messages that wait for a delay level.
  - L{transaction}: half messages, their ends, check-backs.
  - L{send}: sends, replies, messages that come back.
  - L{pull}: pulls, and pulls that wait.
  - L{statictopics}: logical queues that move between brokers.
  - L{diagnostics}: problems of groups.
  - L{pop}: each message to one member of a group.
  - L{acting}: the group of one name, and acting in it.
  - L{admin}: administrators' requests.

Beside them: L{rocketbroker.broker.json_table}: a table and its file;
L{rocketbroker.broker.table_files}: the files of all tables;
L{rocketbroker.broker.json_bodies}: JSON bodies, and whose fault a bad one is;
L{rocketbroker.broker.long_requests}: those with long bodies, done in slices;
L{rocketbroker.broker.background_work}: work in threads, which a stop waits for;
L{rocketbroker.broker.wait_limits}: how long requests may wait to be begun;
L{rocketbroker.broker.waiting_requests}: those that wait for a thread or for slices;
L{rocketbroker.broker.running_settings}: the settings in force, and who obeys them;
L{rocketbroker.broker.roles}: what a broker is to the others of its name;
L{rocketbroker.broker.figures}: the room of figures over time;
L{rocketbroker.broker.services}: runs what the rooms do again and again.
"""
