# -*- test-case-name: tests.store.sharing -*-
"""One store and several processes that append to it.

The I{owner} has opened the store. Only it rolls to a new segment, makes room, flushes,
dispatches and recovers. Other processes I{join} the store, to append and nothing else.

  - L{sharing}: the owner's side.
  - L{append_lock}: the lock between processes, and how an owner takes over from one
    that died.
  - L{joined_processes}: which processes may have joined, to end those that hang.
  - L{append_journal}: what an append has reserved, so that whoever comes next can undo
    an append whose process died.
  - L{joined_store}: the store, as one of the other processes has it.
  - L{joined_reading}: reading it, as one of the other processes does.

What they agree on
==================

Under the append lock, the words of L{rocketbroker.store.shared_positions}: PUBLISHED is
the end of the log, and the NEXT word of a queue the next offset in it. An append exists
from the moment PUBLISHED has moved, by one word, and not before. The word VERSION says
by which version of what the owner has told others may append; each looks at it under
the lock. So the owner changes VERSION first, then the topic or setting, and from then
on nobody appends by what was before.

A process that dies in an append leaves the lock to the kernel, and its mark in
APPENDING. The next one mends before it does anything else, with the journal: NEXT words
go back, zeros take the place of bytes that were written. The owner's own appends have
no journal: when the owner dies, the store is opened anew, and recovered.

A process that hangs in an append keeps the lock. Nobody waits for it without a bound:
the owner refuses its own appends, the others leave theirs to the owner. The kernel
tells which process it is (C{/proc/locks}); it is killed, and then it has died as above.

Rejected
========

  - To note the holder in a word: one that is stopped between the lock and the word has
    not done it, and the word of one that has died stays.

  - Open file description locks (C{F_OFD_SETLKW}): C{flock} excludes in the same way, is
    released by the kernel in the same way, and costs 0.5 us, not 0.8, for each turn.
  - To find the next offsets by reading the log from DISPATCHED to PUBLISHED: only the
    owner knows all queues, so all others would have to wait for it; and offsets in
    LMQs and in batches would have to be found again in properties. The journal costs
    two words for each queue of an append.
"""
