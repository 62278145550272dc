# -*- test-case-name: tests.broker -*-
"""The broker: what answers each request code.

One process, one thread: the reactor's. What may wait for the disk runs in a thread that
is injected (L{durability.InThread}), and comes back before it touches a table. Time,
files, store and connections are injected, so that a test is the whole world.

Put together:

  - L{broker}: all parts, the order of start and stop, which port answers what.
  - L{outside}: what it has of the world; L{regular}: what it does again and again.

Messages in and out (the hot ways stand beside the general ones):

  - L{sending}, L{send_checks}, L{batching}: requests 10, 310, 320 to drafts; L{placed}:
    those of batches that stay one; L{lightqueues}: messages in several queues;
    L{message_types}: as what they count.
  - L{replies}: requests 324 and 325 from the client that answers, and 326 to the one
    that asked.
  - L{intake}: the sends of one turn become one append, and their answers.
  - L{durability}: who waits for the disk, and the one flush in flight.
  - L{pulling}, L{pull_requests}, L{pull_checks}, L{pull_answers}, L{holding}: request
    11, and pulls that wait; L{broadcast_offsets}: where those come from that broadcast.
  - L{upkeep}: who takes which step of the store, and when; L{flush_timing}: when log
    and queues are committed and flushed.
  - L{sendback}: request 36, what consumers give back to have it again; L{dead_letters}:
    what they have given up.
  - L{retention}: when it looks at its disks, and removes what is old.
  - L{message_queries}: requests 29 to 33.
  - L{following}: plug-ins that see what was stored.

Messages that wait for a delay level:

  - L{postponing}: from a message to one that waits, and back.
  - L{delaying}: delivers what is due; L{due} finds it, L{clock_jumps} says when that
    is, L{delay_offsets} keeps how far each level is, L{resuming} finds out what a crash
    has kept it from writing down.

Messages that are visible when their producer says so:

  - L{transactions}: all parts of it: L{transaction_messages}, L{transaction_state},
    L{transaction_marks}, L{transaction_ends} (37), L{transaction_checks} (39),
    L{transaction_counts}.

What is kept beside the messages, each a table and its file (L{state}):

  - L{topics}, L{groups}, L{offsets}; of these, L{resets}: those set by an operator.

Who is there:

  - L{consumers}, L{producers}: registries; L{heartbeats} (34, 35, 46) fills them,
    L{notices} tells members to rebalance; L{filters}: what they want by SQL92.
  - L{discrepancies}: what is wrong with groups and nobody tells, found in what members
    say (L{wants}) by L{group_problems}, in pulls that were refused
    (L{refusals}) and in what name servers know (L{elsewhere}).
  - L{consumer_requests}: what members ask: each other, offsets (38, 14, 15).
  - L{locks}: whose turn it is in a queue that is consumed in order (41, 42).

The outside:

  - L{registration}, by L{outer}: what name servers hear, and when.
  - L{at_work}: the threads that a stop has to wait for.

Administration, put together by L{administration}:

  - L{topic_admin}, L{topic_attributes}; L{group_admin}; L{settings_requests} (26).
  - L{progress}: how far groups have come (208, 303); L{resetting}: sets it (222);
    L{offset_admin}: from that of other groups (308, 314).
  - L{assignments}: who consumes which queue (400, 401), by L{request_modes}.
  - L{relaying}: what members of groups are asked through the broker (223, 307, 309).
  - L{runtime_info}: request 28; L{statistics}: its figures over time, by L{rates},
    L{put_times} and L{day_totals}.
  - L{bodies}: JSON in and out, and whose fault a bad one is.
"""
