# -*- test-case-name: tests.broker.admin -*-
"""Administration, by three rooms: L{tables_room}, L{consumers_room}, L{broker_room}.

The first of the requests in L{codes} imports and makes a room.

The modules:

  - L{topic_admin}: topics. L{group_admin}: groups. L{broker_config}: settings, shown
    and changed (26, 25). L{runtime_info}: figures (28). L{stats_views}: what was
    counted by topics and groups (315).
  - L{queue_admin}: entries of queues (321); questions about RocksDB (354, 355).
  - L{queue_tables}: answers with an entry for each of thousands of queues.
  - L{consume_progress}: the progress of groups (208, 303, 317). L{reset_offset}: sets
    it (222). L{clone_offsets}: copies it from other groups (308, 314).
  - L{client_relay}: questions of operators to members of groups (223, 307, 309).
  - L{message_queries}: requests 12 and 29 to 33."""
